// SPDX-License-Identifier: Apache-2.0

package render

import (
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/node/nodeconfig"
)

// kubeconfig is the part of a kubeconfig file that a machine needs (client-go's own type would bring its dependencies
// here).
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	Clusters       []namedCluster `json:"clusters"`
	Contexts       []namedContext `json:"contexts"`
	CurrentContext string         `json:"current-context"`
	Users          []namedUser    `json:"users"`
}

type namedCluster struct {
	Name    string            `json:"name"`
	Cluster kubeconfigCluster `json:"cluster"`
}

type kubeconfigCluster struct {
	CertificateAuthority string `json:"certificate-authority"`
	Server               string `json:"server"`
}

type namedContext struct {
	Name    string            `json:"name"`
	Context kubeconfigContext `json:"context"`
}

type kubeconfigContext struct {
	Cluster string `json:"cluster"`
	User    string `json:"user"`
}

type namedUser struct {
	Name string         `json:"name"`
	User kubeconfigUser `json:"user"`
}

type kubeconfigUser struct {
	Token string          `json:"token,omitempty"`
	Exec  *kubeconfigExec `json:"exec,omitempty"`
}

type kubeconfigExec struct {
	APIVersion         string   `json:"apiVersion"`
	Command            string   `json:"command"`
	Args               []string `json:"args"`
	InteractiveMode    string   `json:"interactiveMode"`
	ProvideClusterInfo bool     `json:"provideClusterInfo"`
}

// JoinsByRole reports whether a kubeconfig is that of a machine that joins by its role: its user comes from a program
// (exec).
func JoinsByRole(content []byte) bool {
	var k kubeconfig
	if err := yaml.Unmarshal(content, &k); err != nil {
		return false
	}
	return len(k.Users) == 1 && k.Users[0].User.Exec != nil
}

// newRoleKubeconfig is that of EKS's nodes of Amazon Linux 2 (amazon-eks-ami,
// templates/al2/runtime/kubelet-kubeconfig), in a version of the exec plugin's interface that Kubernetes still has:
// their v1alpha1 went with 1.24.
func newRoleKubeconfig(spec nodeconfig.Spec, instance Instance, facts Facts) kubeconfig {
	const cluster, user, context = "kubernetes", "kubelet", "kubelet"
	command := facts.Authenticator
	if command == "" {
		command = PathAuthenticator
	}
	exec := &kubeconfigExec{
		APIVersion: "client.authentication.k8s.io/v1", Command: command,
		Args:            []string{"token", "-i", spec.Cluster.Name, "--region", instance.Region},
		InteractiveMode: "Never", // there is nobody to ask
	}
	return kubeconfig{
		APIVersion:     "v1",
		Kind:           "Config",
		Clusters:       []namedCluster{{cluster, kubeconfigCluster{CertificateAuthority: PathCA, Server: spec.Cluster.APIServerEndpoint}}},
		Contexts:       []namedContext{{context, kubeconfigContext{Cluster: cluster, User: user}}},
		CurrentContext: context,
		Users:          []namedUser{{user, kubeconfigUser{Exec: exec}}},
	}
}

// newBootstrapKubeconfig is what the kubelet uses until it has a certificate. The kubelet copies server and authority
// from here to its own kubeconfig (pkg/kubelet/certificate/bootstrap, writeKubeconfigFromBootstrapping).
func newBootstrapKubeconfig(spec nodeconfig.Spec) kubeconfig {
	const cluster, user, context = "kubernetes", "kubelet-bootstrap", "bootstrap"
	return kubeconfig{
		APIVersion:     "v1",
		Kind:           "Config",
		Clusters:       []namedCluster{{cluster, kubeconfigCluster{CertificateAuthority: PathCA, Server: spec.Cluster.APIServerEndpoint}}},
		Contexts:       []namedContext{{context, kubeconfigContext{Cluster: cluster, User: user}}},
		CurrentContext: context,
		Users:          []namedUser{{user, kubeconfigUser{Token: spec.Join.Token}}},
	}
}
