// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/node/render"
)

// Units of a machine say which program is started and how, and that no systemd reads them.
func TestShownUnits(t *testing.T) {
	t.Parallel()
	starts := map[string]string{
		"/etc/systemd/system/kubelet.service":    "ExecStart=/opt/muster/bin/1.36/kubelet $NODEADM_KUBELET_ARGS",
		"/etc/systemd/system/containerd.service": "ExecStart=/opt/muster/bin/containerd --config=/etc/containerd/config.toml",
		"/etc/systemd/system/kube-proxy.service": "ExecStart=/opt/muster/bin/kube-proxy --config=/etc/kubernetes/kube-proxy/config.yaml",
	}
	units := render.ShownUnits(func(name string) string {
		if name == "kubelet" {
			return "/opt/muster/bin/1.36/kubelet"
		}
		return "/opt/muster/bin/" + name
	})
	if len(units) != len(starts) {
		t.Errorf("%d units", len(units))
	}
	for _, unit := range units {
		if text := string(unit.Content); !strings.Contains(text, "\n"+starts[unit.Path]+"\n") || !strings.Contains(text, "no systemd") || unit.Mode != 0o644 {
			t.Errorf("%s, mode %o:\n%s", unit.Path, unit.Mode, text)
		}
	}
	args := render.ShownKubeletArgs([]string{"--node-labels=a=b", "--v=2", "a b"})
	if got := string(args.Content); args.Path != "/etc/eks/kubelet/environment" || !strings.Contains(got, "NODEADM_KUBELET_ARGS=") || !strings.Contains(got, "--node-labels=a=b --v=2") {
		t.Errorf("%s:\n%s", args.Path, got)
	}
}
