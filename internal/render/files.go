// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/netip"

	"sigs.k8s.io/yaml"
)

// File is one file of a machine.
type File struct {
	Path    string
	Mode    fs.FileMode
	Content []byte
}

// Where things are on a machine.
const (
	// BinDir holds muster's and Kubernetes' programs, read-only.
	BinDir = "/opt/muster/bin"
	// SeedDir holds what the provider told the machine, read-only.
	SeedDir = "/run/muster/seed"
	// ContainerdSocket is where containerd answers.
	ContainerdSocket = "/run/containerd/containerd.sock"
	// PathKubeconfig is written by the kubelet once it has a certificate.
	PathKubeconfig = "/var/lib/kubelet/kubeconfig"
	// PathBootstrapKubeconfig holds the bootstrap token until the kubelet has a certificate.
	PathBootstrapKubeconfig = "/var/lib/kubelet/bootstrap-kubeconfig"
	// PathCNIConfig is written by containerd from its template once the node has a range of pod addresses
	// (containerd, internal/cri/server/update_runtime_config.go).
	PathCNIConfig = "/etc/cni/net.d/10-containerd-net.conflist"
	// PathContainerdConfig is containerd's configuration.
	PathContainerdConfig = "/etc/containerd/config.toml"
	// PathKubeProxyConfig is kube-proxy's configuration.
	PathKubeProxyConfig = "/etc/kubernetes/kube-proxy/config.yaml"
	// PauseImage is the image of pods' sandboxes. It is imported, never pulled.
	PauseImage = "muster.dev/pause:v1"

	pathKubeletConfig = "/etc/kubernetes/kubelet/config.json"
	pathKubeletPKI    = "/var/lib/kubelet/pki"
	pathCA            = "/etc/kubernetes/pki/ca.crt"
	pathCNITemplate   = "/etc/containerd/cni.conflist.template"
)

// Files are all files that a machine needs to become a node, sorted by path. The bootstrap kubeconfig is among them only if
// the configuration has a token.
func Files(config NodeConfig, instance Instance, facts Facts) ([]File, error) {
	serviceCIDR, err := netip.ParsePrefix(config.Cluster.ServiceCIDR)
	if err != nil {
		return nil, fmt.Errorf("service CIDR: %w", err)
	}
	dns, err := ClusterDNS(serviceCIDR)
	if err != nil {
		return nil, err
	}
	kubelet, err := indented(newKubeletConfig(config, instance, facts, dns))
	if err != nil {
		return nil, fmt.Errorf("writing kubelet's configuration: %w", err)
	}
	containerd, err := containerdConfig(facts)
	if err != nil {
		return nil, fmt.Errorf("writing containerd's configuration: %w", err)
	}
	cni, err := indented(newCNITemplate())
	if err != nil {
		return nil, fmt.Errorf("writing template of network configuration: %w", err)
	}
	proxy, err := yaml.Marshal(newKubeProxyConfig(config, instance))
	if err != nil {
		return nil, fmt.Errorf("writing kube-proxy's configuration: %w", err)
	}
	files := []File{
		{Path: pathCNITemplate, Mode: 0o644, Content: cni},
		{Path: PathContainerdConfig, Mode: 0o644, Content: containerd},
		{Path: PathKubeProxyConfig, Mode: 0o644, Content: proxy},
		{Path: pathKubeletConfig, Mode: 0o644, Content: kubelet},
		{Path: pathCA, Mode: 0o644, Content: config.Cluster.CertificateAuthority},
	}
	if config.Bootstrap != nil {
		bootstrap, err := yaml.Marshal(newBootstrapKubeconfig(config))
		if err != nil {
			return nil, fmt.Errorf("writing bootstrap kubeconfig: %w", err)
		}
		files = append(files, File{Path: PathBootstrapKubeconfig, Mode: 0o600, Content: bootstrap})
	}
	return files, nil
}

func indented(v any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(v)
	return buffer.Bytes(), err
}
