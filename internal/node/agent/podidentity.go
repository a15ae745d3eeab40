// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net"
	"net/netip"
	"time"

	"muster.dev/muster/internal/node/podidentityagent"
)

const (
	// accountCA is the file with the authority of what the account serves.
	accountCA = "/etc/aws/ca.pem"
	// podIdentityRetry is the pause before the addresses of the pod identity agent are tried again.
	podIdentityRetry = 5 * time.Second
	// podIdentityCheck is the time between two looks at whether its addresses lead to the pod identity agent: firewalls
	// of hosts flush all rules when they start.
	podIdentityCheck = 30 * time.Second
)

// servePodIdentities is the EKS Pod Identity agent of this machine, until the context ends. Where it cannot listen, it
// logs that and tries again; the machine is a good node all the same, and the add-on of this name is not healthy.
func (a *agent) servePodIdentities(ctx context.Context) {
	server, err := podidentityagent.New(podidentityagent.Config{
		Ask: &podidentityagent.EKSAuth{
			Region: a.self().Region, Cluster: func() string { return a.current().Cluster.Name }, Authorities: accountCA, Role: a.metadata.RoleCredentials,
		},
		Pods: podidentityagent.NewAddresses(podidentityagent.DefaultResults),
		Own: func(address netip.Addr) bool {
			return address.IsLoopback() || address == a.self().PrivateIP || address.String() == podidentityagent.AddressIPv4 || address.String() == podidentityagent.AddressIPv6
		},
		Log: a.log,
	})
	if err != nil {
		a.log.Error("pods get no credentials by EKS Pod Identity", "error", err)
		return
	}
	said := ""
	for ctx.Err() == nil {
		err := a.servePodIdentitiesOnce(ctx, server)
		if ctx.Err() != nil {
			return
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			a.log.Warn("pods get no credentials by EKS Pod Identity; it is tried again", "error", err)
		}
		sleep(ctx, podIdentityRetry)
	}
}

// servePodIdentitiesOnce listens, where the addresses lead to, and answers until the context or a listener ends.
func (a *agent) servePodIdentitiesOnce(ctx context.Context, server *podidentityagent.Server) error {
	listeners, err := podidentityagent.Listen(ctx, a.log, a.runTool)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.log.Info("pods get credentials by EKS Pod Identity", "addresses", len(listeners))
	go func() {
		for sleep(ctx, podIdentityCheck) {
			why := podidentityagent.Redirected(ctx, a.runTool)
			if why == nil {
				why = podidentityagent.Probe(ctx, new(net.Dialer).DialContext)
			}
			if why == nil || ctx.Err() != nil {
				continue
			}
			a.log.Warn("the pod identity agent's address does not lead to it; its rules are made again", "error", why)
			if err := podidentityagent.Redirect(ctx, a.runTool); err != nil {
				a.log.Warn("pods get no credentials by EKS Pod Identity; it is tried again", "error", err)
			}
		}
	}()
	return server.Serve(ctx, listeners...)
}
