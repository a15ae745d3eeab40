// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/node/nodeconfig"
)

// File is one file of a machine.
type File struct {
	Path    string
	Mode    fs.FileMode
	Content []byte
}

// Where things are on a machine.
const (
	// ContainerdSocket is where containerd answers.
	ContainerdSocket = "/run/containerd/containerd.sock"
	// PathKubeconfig is written by the kubelet once it has a certificate. A machine that joins by its role has it from
	// the beginning.
	PathKubeconfig = "/var/lib/kubelet/kubeconfig"
	// PathAuthenticator is where aws-iam-authenticator is on EKS's nodes. On muster's machines it is muster, by another
	// name.
	PathAuthenticator = "/usr/bin/aws-iam-authenticator"
	// PathAuthenticatorFallback is where it is on a machine whose /usr/bin cannot be added to.
	PathAuthenticatorFallback = "/etc/eks/aws-iam-authenticator"
	// PathBootstrapKubeconfig holds the bootstrap token until the kubelet has a certificate.
	PathBootstrapKubeconfig = "/var/lib/kubelet/bootstrap-kubeconfig"
	// PathCNIConfig is written by containerd from its template once the node has a range of pod addresses (containerd,
	// internal/cri/server/update_runtime_config.go). A machine that was given a range when it was launched has it from
	// the beginning.
	PathCNIConfig = "/etc/cni/net.d/10-containerd-net.conflist"
	// PathContainerdConfig is containerd's configuration.
	PathContainerdConfig = "/etc/containerd/config.toml"
	// PathCA holds the authorities that the machine trusts for the API server, and for the API server's clients.
	PathCA = "/etc/kubernetes/pki/ca.crt"
	// PathKubeProxyConfig is kube-proxy's configuration.
	PathKubeProxyConfig = "/etc/kubernetes/kube-proxy/config.yaml"
	// PathStaticPods is the directory of static pods of a machine.
	PathStaticPods = "/etc/kubernetes/manifests"
	// PauseImage is the image of pods' sandboxes. It is imported, never pulled.
	PauseImage = "muster.dev/pause:v1"

	pathKubeletConfig  = "/etc/kubernetes/kubelet/config.json"
	pathKubeletDropIns = "/etc/kubernetes/kubelet/config.json.d"
	pathKubeletPKI     = "/var/lib/kubelet/pki"
	pathCNITemplate    = "/etc/containerd/cni.conflist.template"
	pathRuntimeSpec    = "/etc/containerd/base-runtime-spec.json"
)

// Files are all files that a machine needs to become a node, sorted by path. The bootstrap kubeconfig is among them
// only if there is a token: the caller has read spec.join.tokenFile into spec.join.token.
func Files(spec nodeconfig.Spec, instance Instance, facts Facts, layout Layout) ([]File, error) {
	layout = layout.complete()
	if found := problems(spec, instance, layout); len(found) > 0 {
		return nil, lines(found)
	}
	var all []File
	for _, part := range []func() ([]File, error){
		func() ([]File, error) { return kubeletFiles(spec, instance, facts, layout) },
		func() ([]File, error) { return containerdFiles(spec, facts, layout) },
		func() ([]File, error) { return cniFiles(instance, layout) },
		func() ([]File, error) { return kubeProxyFiles(spec, instance, layout) },
		func() ([]File, error) { return resolverFiles(spec, facts, layout), nil },
		func() ([]File, error) { return credentialProviderFiles(instance, layout) },
		func() ([]File, error) { return systemdFiles(spec, instance, layout) },
	} {
		files, err := part()
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// KubeletFiles are the files of the kubelet alone, of a NodeConfig that may lack what is found when the machine joins.
// It must have been validated.
func KubeletFiles(spec nodeconfig.Spec, instance Instance, facts Facts, layout Layout) ([]File, error) {
	return kubeletFiles(spec, instance, facts, layout.complete())
}

// KubeletConfigs are the kubelet's configuration among files, and the drop-ins over it.
func KubeletConfigs(files []File) (config []byte, dropIns [][]byte) {
	for _, file := range files {
		switch {
		case file.Path == pathKubeletConfig:
			config = file.Content
		case strings.HasPrefix(file.Path, pathKubeletDropIns+"/"):
			dropIns = append(dropIns, file.Content)
		}
	}
	return config, dropIns
}

// lines are problems as [nodeconfig.Read] tells them.
func lines(found field.ErrorList) nodeconfig.Problems {
	var all nodeconfig.Problems
	for _, problem := range found {
		if line := problem.Error(); !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return all
}

func kubeletFiles(spec nodeconfig.Spec, instance Instance, facts Facts, layout Layout) ([]File, error) {
	decided, err := newKubeletConfig(spec, instance, facts, layout)
	if err != nil {
		return nil, fmt.Errorf("NodeConfig: %w", err)
	}
	config, err := indented(decided)
	if err != nil {
		return nil, fmt.Errorf("writing kubelet's configuration: %w", err)
	}
	files := []File{
		{Path: PathCA, Mode: 0o644, Content: spec.Cluster.CertificateAuthority},
		{Path: pathKubeletConfig, Mode: 0o644, Content: config},
	}
	for _, dropIn := range kubeletDropIns(spec, instance) {
		content, err := indented(dropIn.config)
		if err != nil {
			return nil, fmt.Errorf("writing kubelet's configuration: %w", err)
		}
		files = append(files, File{Path: pathKubeletDropIns + "/" + dropIn.name, Mode: 0o644, Content: content})
	}
	if spec.Join.InstanceRole {
		content, err := yaml.Marshal(newRoleKubeconfig(spec, instance, facts))
		if err != nil {
			return nil, fmt.Errorf("writing kubeconfig: %w", err)
		}
		files = append(files, File{Path: PathKubeconfig, Mode: 0o600, Content: content})
	}
	if spec.Join.Token != "" {
		content, err := yaml.Marshal(newBootstrapKubeconfig(spec))
		if err != nil {
			return nil, fmt.Errorf("writing bootstrap kubeconfig: %w", err)
		}
		files = append(files, File{Path: PathBootstrapKubeconfig, Mode: 0o600, Content: content})
	}
	return files, nil
}

func kubeProxyFiles(spec nodeconfig.Spec, instance Instance, layout Layout) ([]File, error) {
	content, err := yaml.Marshal(newKubeProxyConfig(spec, instance, layout))
	if err != nil {
		return nil, fmt.Errorf("writing kube-proxy's configuration: %w", err)
	}
	return []File{{Path: PathKubeProxyConfig, Mode: 0o644, Content: content}}, nil
}

func indented(v any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(v)
	return buffer.Bytes(), err
}
