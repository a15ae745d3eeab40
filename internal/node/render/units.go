// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/platform/shellquote"
)

const (
	pathUnits              = "/etc/systemd/system"
	pathKubeletEnvironment = "/etc/eks/kubelet/environment"
	variableKubeletArgs    = "NODEADM_KUBELET_ARGS"
)

// systemdFiles are the units of a host and the files that they read. The kubelet's arguments are where EKS has them.
func systemdFiles(spec nodeconfig.Spec, instance Instance, layout Layout) ([]File, error) {
	if !layout.Systemd {
		return nil, nil
	}
	for _, dir := range []string{layout.BinDir, layout.CNIBinDir} {
		if err := checkProgramDir(dir); err != nil {
			return nil, err
		}
	}
	// Where the token is looked for stays there when the token has gone: the host may be given another, to join again.
	args := KubeletArgs(spec, instance, layout, !spec.Join.InstanceRole)
	for i, arg := range args {
		args[i] = shellquote.Quote(arg)
	}
	files := []File{
		{Path: pathKubeletEnvironment, Mode: 0o644, Content: environmentFile([]string{variableKubeletArgs + "=" + strings.Join(args, " ")})},
		{Path: pathUnits + "/kubelet.service", Mode: 0o644, Content: kubeletUnit(layout)},
		{Path: pathUnits + "/kube-proxy.service", Mode: 0o644, Content: kubeProxyUnit(layout)},
	}
	if !layout.ExistingContainerd {
		files = append(files, File{Path: pathUnits + "/containerd.service", Mode: 0o644, Content: containerdUnit(layout)})
	}
	return append(files, environmentFiles(spec, layout)...), nil
}

// checkProgramDir lets only a path into a unit that systemd reads as it is.
func checkProgramDir(dir string) error {
	if !strings.HasPrefix(dir, "/") || strings.ContainsFunc(dir, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"'\\$%;@{}", r)
	}) {
		return fmt.Errorf("directory of programs %q: must be an absolute path of letters, digits and / . _ -", dir)
	}
	return nil
}

// kubeletUnit is the kubelet as a service. It starts after containerd and goes with it; it starts again whatever
// happens, since a host without it is not a node; and pods outlive it (KillMode). The slice is the one that config.json
// calls kubeReservedCgroup. A containerd that is not muster's may be restarted without it.
func kubeletUnit(layout Layout) []byte {
	need := "Requires"
	if layout.ExistingContainerd {
		need = "Wants"
	}
	return unit(`[Unit]
Description=Kubernetes Kubelet
Documentation=https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/
Wants=network-online.target
After=network-online.target containerd.service
`+need+`=containerd.service
StartLimitIntervalSec=0

[Service]
Slice=runtime.slice
EnvironmentFile=`+pathKubeletEnvironment+`
ExecStart=BINDIR/kubelet $`+variableKubeletArgs+`
Restart=always
RestartSec=5
KillMode=process
CPUAccounting=true
MemoryAccounting=true

[Install]
WantedBy=multi-user.target
`, layout)
}

// containerdUnit is containerd as a service. Its containers have control groups of their own (Delegate) and outlive it
// (KillMode). When memory runs out it goes last.
func containerdUnit(layout Layout) []byte {
	return unit(`[Unit]
Description=containerd, which runs the containers of Kubernetes
Documentation=https://containerd.io/docs/
After=network.target local-fs.target
StartLimitIntervalSec=0

[Service]
Type=notify
Slice=runtime.slice
ExecStart=BINDIR/containerd --config=`+PathContainerdConfig+`
Restart=always
RestartSec=5
KillMode=process
Delegate=yes
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999
CPUAccounting=true
MemoryAccounting=true

[Install]
WantedBy=multi-user.target
`, layout)
}

// kubeProxyUnit is kube-proxy as a service. Its credential is the kubelet's, so there is nothing for it to do before
// the kubelet has one.
func kubeProxyUnit(layout Layout) []byte {
	return unit(`[Unit]
Description=Kubernetes kube-proxy
Documentation=https://kubernetes.io/docs/reference/command-line-tools-reference/kube-proxy/
Wants=network-online.target
After=network-online.target kubelet.service
StartLimitIntervalSec=0

[Service]
Slice=runtime.slice
ExecStart=BINDIR/kube-proxy --config=`+PathKubeProxyConfig+`
Restart=always
RestartSec=5
CPUAccounting=true
MemoryAccounting=true

[Install]
WantedBy=multi-user.target
`, layout)
}

func unit(text string, layout Layout) []byte {
	return []byte(strings.ReplaceAll(text, "BINDIR", layout.BinDir))
}
