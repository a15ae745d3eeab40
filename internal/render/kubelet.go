// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// kubeletConfig is the part of kubelet.config.k8s.io/v1beta1 KubeletConfiguration that is set. The type of upstream writes
// out every field it has, set or not, so the file would say more than is meant.
type kubeletConfig struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`

	Address                  string                `json:"address"`
	Authentication           kubeletAuthentication `json:"authentication"`
	Authorization            kubeletAuthorization  `json:"authorization"`
	CgroupDriver             string                `json:"cgroupDriver"`
	CgroupRoot               string                `json:"cgroupRoot"`
	ClusterDNS               []string              `json:"clusterDNS"`
	ClusterDomain            string                `json:"clusterDomain"`
	ContainerRuntimeEndpoint string                `json:"containerRuntimeEndpoint"`
	EvictionHard             map[string]string     `json:"evictionHard"`
	FailCgroupV1             *bool                 `json:"failCgroupV1,omitempty"`
	FailSwapOn               bool                  `json:"failSwapOn"`
	HairpinMode              string                `json:"hairpinMode"`
	KubeReserved             map[string]string     `json:"kubeReserved"`
	Logging                  kubeletLogging        `json:"logging"`
	MakeIPTablesUtilChains   bool                  `json:"makeIPTablesUtilChains"`
	MaxPods                  int32                 `json:"maxPods"`
	ProtectKernelDefaults    bool                  `json:"protectKernelDefaults"`
	ProviderID               string                `json:"providerID"`
	ReadOnlyPort             int                   `json:"readOnlyPort"`
	RegisterWithTaints       []corev1.Taint        `json:"registerWithTaints,omitempty"`
	ResolverConfig           string                `json:"resolvConf"`
	RotateCertificates       bool                  `json:"rotateCertificates"`
	SerializeImagePulls      bool                  `json:"serializeImagePulls"`
	ServerTLSBootstrap       bool                  `json:"serverTLSBootstrap"`
	TLSCipherSuites          []string              `json:"tlsCipherSuites"`
	TLSMinVersion            string                `json:"tlsMinVersion"`
}

type kubeletAuthentication struct {
	Anonymous struct {
		Enabled bool `json:"enabled"`
	} `json:"anonymous"`
	Webhook struct {
		CacheTTL string `json:"cacheTTL"`
		Enabled  bool   `json:"enabled"`
	} `json:"webhook"`
	X509 struct {
		ClientCAFile string `json:"clientCAFile"`
	} `json:"x509"`
}

type kubeletAuthorization struct {
	Mode    string `json:"mode"`
	Webhook struct {
		CacheAuthorizedTTL   string `json:"cacheAuthorizedTTL"`
		CacheUnauthorizedTTL string `json:"cacheUnauthorizedTTL"`
	} `json:"webhook"`
}

type kubeletLogging struct {
	Verbosity int `json:"verbosity"`
}

func newKubeletConfig(config NodeConfig, instance Instance, facts Facts, dns netip.Addr) kubeletConfig {
	k := kubeletConfig{
		Kind:       "KubeletConfiguration",
		APIVersion: "kubelet.config.k8s.io/v1beta1",

		Address:                  "0.0.0.0",
		CgroupDriver:             "cgroupfs", // there is no systemd on a machine
		CgroupRoot:               "/",        // of the machine's own cgroup namespace
		ClusterDNS:               []string{dns.String()},
		ClusterDomain:            config.Cluster.ClusterDomain,
		ContainerRuntimeEndpoint: "unix://" + ContainerdSocket,
		EvictionHard: map[string]string{
			"memory.available":  "100Mi",
			"nodefs.available":  "10%",
			"nodefs.inodesFree": "5%",
		},
		// Pods have no swap in any case (memorySwap.swapBehavior is NoSwap); whether the host has any is not the node's business.
		FailSwapOn:   false,
		HairpinMode:  "hairpin-veth",
		KubeReserved: facts.reserved(config.Kubelet.MaxPods),
		Logging:      kubeletLogging{Verbosity: 2},
		// For iptables only, which machines do not have: kube-proxy and portmap speak nftables.
		MakeIPTablesUtilChains: false,
		MaxPods:                config.Kubelet.MaxPods,
		// The machine's own view of those settings has the values that the kubelet demands; see internal/machine/local.
		ProtectKernelDefaults: true,
		ProviderID:            instance.ProviderID(),
		ReadOnlyPort:          0,
		RegisterWithTaints:    slices.Clone(config.Kubelet.Taints),
		ResolverConfig:        "/etc/resolv.conf",
		RotateCertificates:    true,
		SerializeImagePulls:   false,
		ServerTLSBootstrap:    true,
		// EKS also allows TLS_RSA_WITH_AES_{128,256}_GCM_SHA{256,384}. Key exchange by RSA has no forward secrecy, Go disables
		// it by default since 1.22, and no client of a kubelet needs it.
		TLSCipherSuites: []string{
			"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
			"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
			"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
			"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
			"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
			"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
		},
		TLSMinVersion: "VersionTLS12",
	}
	if facts.CgroupVersion == 1 {
		k.FailCgroupV1 = new(bool)
	}
	k.Authentication.Webhook.CacheTTL = "2m0s"
	k.Authentication.Webhook.Enabled = true
	k.Authentication.X509.ClientCAFile = pathCA
	k.Authorization.Mode = "Webhook"
	k.Authorization.Webhook.CacheAuthorizedTTL = "5m0s"
	k.Authorization.Webhook.CacheUnauthorizedTTL = "30s"
	return k
}

// KubeletArgs are the kubelet's arguments. With bootstrap it may ask for a certificate by its token.
func KubeletArgs(config NodeConfig, instance Instance, bootstrap bool) []string {
	args := []string{
		"--cert-dir=" + pathKubeletPKI,
		"--config=" + pathKubeletConfig,
		"--hostname-override=" + instance.PrivateDNSName,
		"--kubeconfig=" + PathKubeconfig,
		"--node-ip=" + instance.PrivateIP.String(),
	}
	if bootstrap {
		args = append(args, "--bootstrap-kubeconfig="+PathBootstrapKubeconfig)
	}
	if len(config.Kubelet.Labels) > 0 {
		labels := make([]string, 0, len(config.Kubelet.Labels))
		for _, key := range slices.Sorted(maps.Keys(config.Kubelet.Labels)) {
			labels = append(labels, key+"="+config.Kubelet.Labels[key])
		}
		args = append(args, "--node-labels="+strings.Join(labels, ","))
	}
	slices.Sort(args)
	return args
}
