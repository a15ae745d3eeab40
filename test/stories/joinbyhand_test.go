// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"testing"

	"muster.dev/muster/test/host"
)

// podNetwork is one for the pods of a host that is alone.
const podNetwork = `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [{"type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.200.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]
}
`

// joinByHand runs what docs/join-by-hand.md shows: a kubelet joins by a token and files that a person wrote, with no
// inventory that knows the host, so that a person approves its requests. It is the cluster's first node: the page shows
// all requests that there are. When the host has joined end is called, if there is one.
func joinByHand(t *testing.T, i *installation, hash string, end func(guest)) {
	g := newGuest(t, i, hash, "test-node", "172.31.0.205", append(host.ContainerdPrograms(), "kubectl", "kubelet")...)
	if err := g.host.InstallContainerd(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.host.Write("/etc/cni/net.d/10-pods.conflist", podNetwork, 0o644); err != nil {
		t.Fatal(err)
	}
	g.must("mkdir", "-p", "/var/lib/kubelet")
	i.follow(page{name: "join-by-hand.md", least: 25, there: func(line, _ string) (string, error) {
		return g.host.Run(t.Context(), "timeout", "20", "sh", "-c", line)
	}})
	if end != nil {
		end(g)
	}
	g.must("systemctl", "stop", "kubelet")
	i.mustKubectl("delete", "node", "test-node")
	i.muster("delete", "host", "test-node")
}
