// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"

	"muster.dev/muster/internal/platform/shellquote"
)

// KubeletConfigAlias is the name of the kubelet's configuration on Amazon Linux 2.
const KubeletConfigAlias = "/etc/kubernetes/kubelet/kubelet-config.json"

// KubeletConfigName is the file beside it that it means.
const KubeletConfigName = "config.json"

// ShownUnits are the units of a machine's programs, for people who log in to it and look: no systemd reads them. Program returns the path of
// a program.
func ShownUnits(program func(name string) string) []File {
	unit := func(name, text string) File {
		return File{Path: pathUnits + "/" + name + ".service", Mode: 0o644, Content: []byte(shownBy + text)}
	}
	return []File{
		unit("kubelet", `[Unit]
Description=Kubernetes Kubelet
Documentation=https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/
After=containerd.service
Wants=containerd.service

[Service]
EnvironmentFile=`+pathKubeletEnvironment+`
ExecStart=`+program("kubelet")+` $`+variableKubeletArgs+`
Restart=always
`),
		unit("containerd", `[Unit]
Description=containerd, which runs the containers of Kubernetes
Documentation=https://containerd.io/docs/

[Service]
ExecStart=`+program("containerd")+` --config=`+PathContainerdConfig+`
Restart=always
`),
		unit("kube-proxy", `[Unit]
Description=Kubernetes kube-proxy
Documentation=https://kubernetes.io/docs/reference/command-line-tools-reference/kube-proxy/
After=kubelet.service

[Service]
ExecStart=`+program("kube-proxy")+` --config=`+PathKubeProxyConfig+`
Restart=always
`),
	}
}

const shownBy = `# Written by muster for people. There is no systemd on this machine: process number one, muster's agent,
# starts the program as this says, and again whenever it ends.
`

// ShownKubeletArgs is the file with the arguments that a machine's kubelet was started with, where EKS has them.
func ShownKubeletArgs(args []string) File {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = shellquote.Quote(arg)
	}
	return File{Path: pathKubeletEnvironment, Mode: 0o644, Content: environmentFile([]string{variableKubeletArgs + "=" + strings.Join(quoted, " ")})}
}
