// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"net/netip"

	"muster.dev/muster/internal/nodecerts"
	"muster.dev/muster/internal/render"
)

// watchNode notices on a machine what its kubelet does not.
func (a *agent) watchNode(ctx context.Context) {
	Watch(ctx, WatchConfig{
		CertDir: nodecerts.DefaultDir, Kubeconfig: render.PathKubeconfig, Authorities: render.PathCA,
		BootstrapKubeconfig: render.PathBootstrapKubeconfig, Notices: PathNotices, Log: a.log,
		NodeIP: func() netip.Addr { return a.instance.PrivateIP },
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
