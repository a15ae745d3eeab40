// SPDX-License-Identifier: Apache-2.0

package render

import "muster.dev/muster/internal/nodeconfig"

// kubeconfig is the part of a kubeconfig file that a machine needs (client-go's own type would bring its dependencies here).
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
	Token string `json:"token"`
}

// newBootstrapKubeconfig is what the kubelet uses until it has a certificate. The kubelet copies server and authority from
// here to its own kubeconfig (pkg/kubelet/certificate/bootstrap, writeKubeconfigFromBootstrapping).
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
