// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"net/netip"

	"muster.dev/muster/internal/node/nodecerts"
	"muster.dev/muster/internal/node/render"
)

// watchNode notices on a machine what its kubelet does not.
func (a *agent) watchNode(ctx context.Context) {
	Watch(ctx, WatchConfig{
		CertDir: nodecerts.DefaultDir, Kubeconfig: render.PathKubeconfig, Authorities: render.PathCA,
		BootstrapKubeconfig: render.PathBootstrapKubeconfig, Owned: true, Notices: PathNotices, Log: a.log,
		Give:      "give it to this machine (`muster node init`), or delete the machine (`muster delete machine`), and its group makes another",
		NodeIP:    func() netip.Addr { return render.NodeIP(a.current(), a.self()) },
		Readdress: a.readdress,
		Token: func(ctx context.Context) (string, error) {
			_, token, err := nodeCredential(ctx, a.current().Cluster.Name, a.self().Region)
			return token, err
		},
		Forget: a.forget,
		Rejoin: func(ctx context.Context) error {
			now, err := a.ask(ctx)
			if err != nil {
				return err
			}
			a.setHeard(now)
			return a.become(ctx, now)
		},
		Restart: func(context.Context) error {
			a.restartKubelet()
			return nil
		},
	})
}

// readdress takes another address, if the metadata service, and so the provider of the machine, has assigned it one.
func (a *agent) readdress(ctx context.Context, old netip.Addr) (netip.Addr, error) {
	identity, err := a.metadata.Identity(ctx)
	if err != nil {
		return netip.Addr{}, err
	}
	self := instance(identity)
	if self.PrivateIP == old || !self.PrivateIP.IsValid() {
		return netip.Addr{}, fmt.Errorf("the metadata service says that this machine's address is still %s: %w", old, ErrNotAssigned)
	}
	before := a.self()
	if render.NodeName(a.current(), self) != render.NodeName(a.current(), before) { // such as one that is made of the address
		self.PrivateDNSName = before.PrivateDNSName
	}
	now, err := a.ask(ctx)
	if err != nil {
		return netip.Addr{}, err
	}
	a.setSelf(self)
	a.setHeard(now)
	if err := a.become(ctx, now); err != nil {
		a.setSelf(before)
		return netip.Addr{}, err
	}
	return self.PrivateIP, nil
}
