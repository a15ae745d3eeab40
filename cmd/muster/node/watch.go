// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/join"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/agent"
	"muster.dev/muster/internal/node/hostjoin"
	"muster.dev/muster/internal/node/nodecerts"
)

// newNodeWatchCommand is the watch of a machine without muster's agent. On a local machine the agent itself watches.
func newNodeWatchCommand(o *terminal.Options) *cobra.Command {
	c := agent.WatchConfig{Notices: agent.PathNotices, Restart: nodecerts.RestartKubelet}
	var address string
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Watch this node for what its kubelet does not notice, until stopped",
		Long: `Watch this node for what its kubelet does not notice, and repair what can be repaired:

  a rotation that was killed half way     is completed; the kubelet could not start without
  a client certificate that has expired   the kubelet asks for another, if its bootstrap kubeconfig has a token that is still good;
                                          it is let in if that was made with --rejoin, or by muster csr approve
  other authorities of the API server     are taken from kube-public/cluster-info, if the present ones verify that server
  another address than --node-ip          on a host of muster join the kubelet is given the new one, if the cluster issues a certificate
                                          for it; otherwise it is reported
  certificates that are overdue           are reported

A report is one line in the log and an Event of the Node; "muster node certs" shows it for as long as it lasts. Hosts of
muster join run this as muster-node-watch.service; local machines do all of it by themselves.`,
		Example: `  muster node watch
  muster node watch --node-ip 172.31.0.200`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if address != "" {
				ip, err := netip.ParseAddr(address)
				if err != nil {
					return terminal.UsageError{Err: fmt.Errorf("invalid --node-ip %q: must be an IP address", address)}
				}
				c.NodeIP = func() netip.Addr { return ip }
			}
			if os.Geteuid() != 0 {
				return errors.New("reading the kubelet's certificates needs root: run muster as root")
			}
			if c.Kubeconfig == "" {
				var err error
				if c.Kubeconfig, err = nodecerts.FindKubeconfig(); err != nil {
					return err
				}
			}
			c.Give = "put it into " + c.BootstrapKubeconfig + ", from where its kubelet takes it"
			if _, err := hostjoin.ReadLedger(""); err == nil {
				c.Owned, c.Give = !cmd.Flags().Changed("bootstrap-kubeconfig"), "run `muster join` with it on this host"
				h, err := join.NewHost(o)
				if err != nil {
					return err
				}
				c.Busy = h.Busy
				if address == "" && c.Readdress == nil {
					followAddress(h, &c)
				}
			}
			c.Log = slog.New(slog.NewTextHandler(o.Err, nil))
			agent.Watch(cmd.Context(), c)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.CertDir, "cert-dir", nodecerts.DefaultDir, "directory of the kubelet's certificates")
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "the kubelet's kubeconfig (default: where kubelets have it)")
	flags.StringVar(&c.BootstrapKubeconfig, "bootstrap-kubeconfig", "/var/lib/kubelet/bootstrap-kubeconfig", "a kubeconfig with a bootstrap token, if there is one")
	flags.StringVar(&c.Authorities, "authorities", "/etc/kubernetes/pki/ca.crt", "file of the authorities that the API server is verified with")
	flags.DurationVar(&c.Interval, "interval", 0, "time between two looks (default 30s)")
	flags.StringVar(&address, "node-ip", "", "the address that the kubelet was told to use, if it was (default on a host of muster join: by its arguments)")
	return cmd
}

// assignedPatience is how long the cluster may take to say whether an address is this host's. Nothing else is looked at
// meanwhile.
const assignedPatience = 20 * time.Second

// followAddress has a host of muster join take over another address, if the cluster issues a certificate for it.
func followAddress(h *hostjoin.Host, c *agent.WatchConfig) {
	asking := nodecerts.RotateConfig{
		Dir: c.CertDir, Kubeconfig: c.Kubeconfig, Timeout: assignedPatience, Now: time.Now,
		Say: func(format string, args ...any) {
			c.Log.Info("asking the cluster for another address", "what", fmt.Sprintf(format, args...))
		},
	}
	c.NodeIP = h.NodeIP
	c.Readdress = func(ctx context.Context, old netip.Addr) (netip.Addr, error) {
		address, err := h.Readdress(ctx, old, func(ctx context.Context, address netip.Addr) error {
			return nodecerts.Assigned(ctx, asking, old, address)
		})
		if errors.Is(err, nodecerts.ErrNotAssigned) || errors.Is(err, hostjoin.ErrSameAddress) {
			err = fmt.Errorf("%w: %w", agent.ErrNotAssigned, err)
		}
		return address, err
	}
}
