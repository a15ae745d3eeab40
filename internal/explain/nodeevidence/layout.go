// SPDX-License-Identifier: Apache-2.0

package nodeevidence

import (
	"bytes"
	"cmp"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/node/nodecerts"
)

// Where nodes keep what is read, the first that exists.
var (
	kubeletConfigs = []string{
		"/etc/kubernetes/kubelet/config.json",         // EKS AL2023 (amazon-eks-ami, nodeadm/internal/kubelet/config.go)
		"/etc/kubernetes/kubelet/kubelet-config.json", // EKS AL2 (amazon-eks-ami, templates/al2/runtime/bootstrap.sh)
		"/var/lib/kubelet/config.yaml",                // kubeadm
		"/var/lib/kubelet/config.json",                // Muster
	}
	bootstraps = []string{"/etc/kubernetes/bootstrap-kubelet.conf", "/var/lib/kubelet/bootstrap-kubeconfig"}
	// environments are what kubelets get their environment from, where a proxy may be.
	environments = []string{
		"/etc/eks/kubelet/environment", "/etc/default/kubelet", "/etc/sysconfig/kubelet", "/etc/environment",
		"/etc/systemd/system/kubelet.service.d/http-proxy.conf", "/etc/systemd/system/kubelet.service.d/proxy.conf",
	}
)

const (
	defaultSocket = "/run/containerd/containerd.sock"
	kubeletLog    = "/var/log/kubelet.log" // of Muster's machines, which have no journal
	cniDir        = "/etc/cni/net.d"
	kubeadmFlags  = "/var/lib/kubelet/kubeadm-flags.env"
)

// kubeconfig is what is read of the kubelet's: where the API server is, whom to trust, and by what it proves itself.
type kubeconfig struct {
	path, server string
	authority    []byte // PEM; nil if the file names none
	byRole       bool   // a program makes its tokens
	certificate  string // path of its client certificate; "" if it has none of its own
	bootstrap    bool   // it is the one for the first certificate
}

// kubeletConfig is what is read of a KubeletConfiguration.
type kubeletConfig struct {
	ContainerRuntimeEndpoint string `json:"containerRuntimeEndpoint"`
	HealthzPort              *int32 `json:"healthzPort"`
	HealthzBindAddress       string `json:"healthzBindAddress"`
	StaticPodPath            string `json:"staticPodPath"`
}

// readKubeconfig reads the kubelet's kubeconfig, or that for its first certificate. The error is fs.ErrNotExist if the
// node has neither.
func (d disk) readKubeconfig() (kubeconfig, error) {
	found := d.first(append(nodecerts.Kubeconfigs(), bootstraps...)...)
	if found == "" {
		return kubeconfig{}, fs.ErrNotExist
	}
	k := kubeconfig{path: found, bootstrap: slices.Contains(bootstraps, found)}
	raw, err := d.read(found)
	if err != nil {
		return k, err
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		return k, fmt.Errorf("%s cannot be read as a kubeconfig", found) // the error of the parser may repeat the file, which has secrets
	}
	at := config.Contexts[config.CurrentContext]
	if at == nil || config.Clusters[at.Cluster] == nil {
		return k, fmt.Errorf("%s has no cluster in its current context", found)
	}
	cluster := config.Clusters[at.Cluster]
	k.server, k.authority = cluster.Server, cluster.CertificateAuthorityData
	if user := config.AuthInfos[at.AuthInfo]; user != nil {
		k.byRole = user.Exec != nil
		if user.ClientCertificate != "" {
			k.certificate = d.beside(found, user.ClientCertificate)
		}
	}
	if len(k.authority) == 0 && cluster.CertificateAuthority != "" {
		if k.authority, err = d.read(d.beside(found, cluster.CertificateAuthority)); err != nil {
			return k, fmt.Errorf("reading whom to trust: %w", err)
		}
	}
	return k, nil
}

// beside is a path that a file names: a relative one begins at the file.
func (disk) beside(file, named string) string {
	if path.IsAbs(named) {
		return named
	}
	return path.Join(path.Dir(file), named)
}

// readKubeletConfig reads the kubelet's configuration; its defaults if the node has none.
func (d disk) readKubeletConfig() (file string, c kubeletConfig, err error) {
	if file = d.first(kubeletConfigs...); file == "" {
		return "", c, nil
	}
	raw, err := d.read(file)
	if err == nil {
		err = yaml.Unmarshal(raw, &c)
	}
	if err != nil {
		return file, kubeletConfig{}, fmt.Errorf("reading the kubelet's configuration: %w", err)
	}
	return file, c, nil
}

// socket is the path of the container runtime's socket.
func (d disk) socket(c kubeletConfig) string {
	endpoint := c.ContainerRuntimeEndpoint
	if flags, err := d.read(kubeadmFlags); err == nil && endpoint == "" {
		if _, rest, ok := bytes.Cut(flags, []byte("--container-runtime-endpoint=")); ok {
			endpoint = string(bytes.TrimRight(firstWord(rest), `"'`))
		}
	}
	return cmp.Or(strings.TrimPrefix(endpoint, "unix://"), defaultSocket)
}

func firstWord(text []byte) []byte {
	if words := bytes.Fields(text); len(words) > 0 {
		return words[0]
	}
	return nil
}

// proxied returns the file by which the kubelet is told of a proxy; "" for none.
func (d disk) proxied() string {
	for _, name := range environments {
		raw, err := d.read(name)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(bytes.ToLower(raw)) {
			if line = bytes.TrimSpace(line); bytes.Contains(line, []byte("https_proxy=")) && !bytes.HasPrefix(line, []byte("#")) && !bytes.HasPrefix(line, []byte(";")) {
				return name
			}
		}
	}
	return ""
}

// errNotPEM says that an authority has no certificate.
var errNotPEM = errors.New("it has no certificate in PEM")

// checkAuthority reports whether the authorities of a kubeconfig can be read.
func checkAuthority(raw []byte) error {
	for rest := raw; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return errNotPEM
		}
		if block.Type == "CERTIFICATE" {
			return nil
		}
	}
}
