// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"time"
)

// ContainerdPrograms are what the package containerd installs, by names for [Config.Install]; KubeadmPrograms are those
// of a host on which kubeadm is to be run.
func ContainerdPrograms() []string {
	return []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc"}
}

// KubeadmPrograms are those of ContainerdPrograms and kubeadm's.
func KubeadmPrograms() []string {
	return append(ContainerdPrograms(), "kubeadm", "kubectl", "kubelet")
}

// packaged is a file of a package. Packages' files are where an administrator installs.
type packaged struct{ path, content string }

const containerdConfig = `version = 3

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
  bin_dirs = ["/opt/cni/bin", "` + BinDir + `/cni"]
  conf_dir = "/etc/cni/net.d"
`

func containerdPackage() []packaged {
	return []packaged{
		{"/etc/systemd/system/containerd.service", `[Unit]
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
`},
		{"/etc/containerd/config.toml", containerdConfig},
	}
}

// kubeadmPackages are containerd, kubelet and kubeadm, with the drop-in by which kubeadm tells kubelet where its files
// are (kubernetes/release, cmd/krel/templates/latest/kubeadm), and a network for pods.
func kubeadmPackages() []packaged {
	return append(containerdPackage(),
		packaged{"/etc/systemd/system/kubelet.service", `[Unit]
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
`},
		packaged{"/etc/systemd/system/kubelet.service.d/10-kubeadm.conf", `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`},
		packaged{"/etc/containerd/config.toml", containerdConfig + "  conf_template = \"/etc/containerd/cni.template\"\n"},
		packaged{"/etc/containerd/cni.template", `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [{
    "type": "ptp",
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "{{.PodCIDR}}"}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
`})
}

// InstallContainerd runs containerd as a distribution's package does, with the images that there is no registry for.
// The host's programs include [ContainerdPrograms].
func (h *Host) InstallContainerd(ctx context.Context) error {
	return h.install(ctx, containerdPackage())
}

// InstallKubeadm prepares a host, as packages and an administrator do, so that kubeadm can be run. Its programs are
// [KubeadmPrograms].
func (h *Host) InstallKubeadm(ctx context.Context) error {
	if err := h.install(ctx, kubeadmPackages()); err != nil {
		return err
	}
	return h.each(ctx,
		[]string{"sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"},
		[]string{"mkdir", "-p", "/etc/kubernetes/manifests"},
		[]string{"systemctl", "enable", "kubelet"},
	)
}

func (h *Host) install(ctx context.Context, files []packaged) error {
	for _, file := range files {
		if err := h.Write(file.path, file.content, 0o644); err != nil {
			return err
		}
	}
	commands := [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "enable", "--now", "containerd"}}
	for _, image := range []string{"pause", "workload", "coredns"} {
		commands = append(commands, []string{"ctr", "--namespace=k8s.io", "images", "import", "--no-unpack", "--label=io.cri-containerd.pinned=pinned", BinDir + "/images/" + image + ".tar"})
	}
	return h.each(ctx, commands...)
}

func (h *Host) each(ctx context.Context, commands ...[]string) error {
	for _, command := range commands {
		if _, err := h.Run(ctx, command...); err != nil {
			return err
		}
	}
	return nil
}

// KubeadmJoin is what kubeadm is told.
type KubeadmJoin struct {
	Endpoint, Token, Hash string
	// Discovery is how long kubeadm may look for the cluster.
	Discovery time.Duration
}

// KubeadmCommand is kubeadm join as its documentation says, with the token in a file that only root can read.
func (h *Host) KubeadmCommand(j KubeadmJoin) ([]string, error) {
	config := fmt.Sprintf(`apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: %s
    token: %s
    caCertHashes: ["%s"]
timeouts:
  discovery: %s
`, j.Endpoint, j.Token, j.Hash, j.Discovery)
	if err := h.Write("/root/join.yaml", config, 0o600); err != nil {
		return nil, err
	}
	return append([]string{"kubeadm", "join", "--config=/root/join.yaml"}, h.KubeadmIgnored()...), nil
}

// KubeadmIgnored is what kubeadm demands of those who join with control groups of version 1: that they say so
// (k8s.io/system-validators, cgroup_validator_linux.go).
func (h *Host) KubeadmIgnored() []string {
	if h.cgroups.Version() == 1 {
		return []string{"--ignore-preflight-errors=SystemVerification"}
	}
	return nil
}
