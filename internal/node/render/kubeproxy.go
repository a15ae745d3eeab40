// SPDX-License-Identifier: Apache-2.0

package render

import "muster.dev/muster/internal/node/nodeconfig"

// kubeProxyConfig is the part of kubeproxy.config.k8s.io/v1alpha1 KubeProxyConfiguration that is set.
type kubeProxyConfig struct {
	APIVersion         string              `json:"apiVersion"`
	Kind               string              `json:"kind"`
	ClientConnection   kubeProxyConnection `json:"clientConnection"`
	ClusterCIDR        string              `json:"clusterCIDR"`
	Conntrack          kubeProxyConntrack  `json:"conntrack"`
	DetectLocal        *kubeProxyLocal     `json:"detectLocal,omitempty"`
	DetectLocalMode    string              `json:"detectLocalMode,omitempty"`
	HealthzBindAddress string              `json:"healthzBindAddress"`
	HostnameOverride   string              `json:"hostnameOverride"`
	MetricsBindAddress string              `json:"metricsBindAddress"`
	Mode               string              `json:"mode"`
}

type kubeProxyConnection struct {
	Kubeconfig string `json:"kubeconfig"`
}

type kubeProxyLocal struct {
	InterfaceNamePrefix string `json:"interfaceNamePrefix"`
}

type kubeProxyConntrack struct {
	MaxPerCore            int    `json:"maxPerCore"`
	Min                   int    `json:"min"`
	TCPCloseWaitTimeout   string `json:"tcpCloseWaitTimeout"`
	TCPEstablishedTimeout string `json:"tcpEstablishedTimeout"`
}

// newKubeProxyConfig configures kube-proxy, which uses the kubelet's credential as on EKS' self-managed nodes.
func newKubeProxyConfig(spec nodeconfig.Spec, instance Instance, layout Layout) kubeProxyConfig {
	config := kubeProxyConfig{
		APIVersion:       "kubeproxy.config.k8s.io/v1alpha1",
		Kind:             "KubeProxyConfiguration",
		ClientConnection: kubeProxyConnection{Kubeconfig: PathKubeconfig},
		ClusterCIDR:      spec.Cluster.PodCIDR,
		// The size of the connection table belongs to the kernel that all machines share, so a machine leaves it alone
		// (0 means that: pkg/proxy/conntrack/sysctls.go). The timeouts are its own network's, and upstream's
		// (pkg/proxy/apis/config/v1alpha1/defaults.go): the kernel itself would forget a half-closed connection after a
		// minute.
		Conntrack:          kubeProxyConntrack{TCPCloseWaitTimeout: "1h0m0s", TCPEstablishedTimeout: "24h0m0s"},
		HealthzBindAddress: "127.0.0.1:10256",
		HostnameOverride:   NodeName(spec, instance),
		MetricsBindAddress: "127.0.0.1:10249",
		Mode:               "nftables",
	}
	if _, given := podRange(instance, layout); given {
		config.ClusterCIDR, config.DetectLocalMode, config.DetectLocal = "", "InterfaceNamePrefix", &kubeProxyLocal{podLinkPrefix}
	}
	return config
}

// podLinkPrefix is what the names of a machine's links to its pods begin with (containernetworking/plugins,
// pkg/ip/link_linux.go). Its pods are known by them where their addresses are like those of any machine: their
// connections to Services are not translated, others' are as they come.
const podLinkPrefix = "veth"
