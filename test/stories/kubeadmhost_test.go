// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	machine "muster.dev/muster/internal/host"
	"muster.dev/muster/internal/vpc"
	"muster.dev/muster/test/host"
)

// What the packages containerd, kubelet and kubeadm put on a host, in the places where an administrator installs: units, the
// drop-in by which kubeadm tells kubelet where its files are (kubernetes/release, cmd/krel/templates/latest/kubeadm), kernel settings.
var packaged = map[string]string{
	"/etc/systemd/system/containerd.service": `[Unit]
Description=containerd container runtime
After=network.target local-fs.target

[Service]
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
`,
	"/etc/systemd/system/kubelet.service": `[Unit]
Description=kubelet: The Kubernetes Node Agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/local/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
`,
	"/etc/systemd/system/kubelet.service.d/10-kubeadm.conf": `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`,
	"/etc/containerd/config.toml": `version = 3

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "muster.dev/pause:v1"

[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  # Where this machine is a container itself, nothing may be made less likely to be killed than what starts it (CAP_SYS_RESOURCE).
  restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  SystemdCgroup = true

[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/opt/muster/bin/cni"]
  conf_dir = "/etc/cni/net.d"
  conf_template = "/etc/containerd/cni.template"
`,
	"/etc/containerd/cni.template": `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [{
    "type": "ptp",
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "{{.PodCIDR}}"}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
`,
}

// kubeadmHost is a host that muster did not make, prepared as by packages, on which kubeadm is run.
type kubeadmHost struct {
	*host.Host
	t *testing.T
}

// newKubeadmHost starts a host in the cluster's VPC. The story must end before the cluster does.
func newKubeadmHost(t *testing.T, i *installation, name, address string) *kubeadmHost {
	t.Helper()
	network, err := vpc.New(vpc.Config{Dir: i.dir.VPC(), CIDR: netip.MustParsePrefix("192.168.64.0/18")})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Start(t.Context(), host.Config{
		Name: name, Address: netip.MustParseAddr(address), Network: network, Bin: i.bin,
		Install: []string{"containerd", "containerd-shim-runc-v2", "ctr", "kubeadm", "kubectl", "kubelet", "runc"},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &kubeadmHost{Host: h, t: t}
	t.Cleanup(func() {
		if t.Failed() {
			w.tell()
		}
		if err := h.Close(); err != nil {
			t.Errorf("closing host %s: %v", name, err)
		}
	})
	for path, content := range packaged {
		if err := h.Write(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.must("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
	w.must("mkdir", "-p", "/etc/kubernetes/manifests")
	w.must("systemctl", "daemon-reload")
	w.must("systemctl", "enable", "--now", "containerd")
	w.must("systemctl", "enable", "kubelet")
	for _, image := range []string{"pause", "workload", "coredns"} {
		w.must("ctr", "--namespace=k8s.io", "images", "import", "--no-unpack", "--label=io.cri-containerd.pinned=pinned", host.BinDir+"/images/"+image+".tar")
	}
	return w
}

// tell logs what happened on a host whose story failed.
func (w *kubeadmHost) tell() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), 10*time.Second)
	defer cancel()
	for _, args := range [][]string{
		{"systemctl", "status", "--no-pager", "kubelet", "containerd"},
		{"journalctl", "--no-pager", "--output=cat", "--lines=60", "--unit=kubelet"},
	} {
		out, err := w.Run(ctx, args...)
		w.t.Logf("%s:\n%s%v", strings.Join(args, " "), out, err)
	}
}

func (w *kubeadmHost) must(args ...string) string {
	w.t.Helper()
	out, err := w.Run(w.t.Context(), args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// join runs kubeadm as its documentation says. patience is how long discovery may take.
func (w *kubeadmHost) join(ctx context.Context, token, hash string, patience time.Duration) (string, error) {
	config := fmt.Sprintf(`apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: 192.168.64.2:443
    token: %s
    caCertHashes: ["%s"]
timeouts:
  discovery: %s
`, token, hash, patience)
	if err := w.Write("/root/join.yaml", config, 0o600); err != nil {
		return "", err
	}
	return w.Run(ctx, append([]string{"kubeadm", "join", "--config=/root/join.yaml"}, w.ignored()...)...)
}

// ignored is what kubeadm demands of those who join with control groups of version 1: that they say so
// (k8s.io/system-validators, cgroup_validator_linux.go).
func (w *kubeadmHost) ignored() []string {
	w.t.Helper()
	groups, err := machine.ReadCgroups()
	if err != nil {
		w.t.Fatal(err)
	}
	if groups.Version() == 1 {
		return []string{"--ignore-preflight-errors=SystemVerification"}
	}
	return nil
}
