// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/netip"
	"time"

	"muster.dev/muster/internal/node/podidentityagent"
)

const (
	// accountCA is the file with the authority of what the account serves.
	accountCA = "/etc/aws/ca.pem"
	// podIdentityRetry is the pause before the addresses of the pod identity agent are tried again, such as when a pod has the port.
	podIdentityRetry = 5 * time.Second
)

// servePodIdentities is the EKS Pod Identity agent of this machine, until the context ends. Where it cannot listen, such as when a pod of the host
// network has the port, it logs that and tries again; the machine is a good node all the same, and the add-on of this name is not healthy.
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
		listeners, err := podidentityagent.Listen(ctx, a.log)
		if err == nil {
			a.log.Info("pods get credentials by EKS Pod Identity", "addresses", len(listeners))
			err = server.Serve(ctx, listeners...)
		}
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
