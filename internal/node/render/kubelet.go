// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"net/netip"
	"strconv"

	"muster.dev/muster/internal/node/nodeconfig"
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
	ClusterDNS               []string              `json:"clusterDNS,omitempty"`
	ClusterDomain            string                `json:"clusterDomain"`
	ContainerRuntimeEndpoint string                `json:"containerRuntimeEndpoint"`
	EvictionHard             map[string]string     `json:"evictionHard"`
	FailCgroupV1             *bool                 `json:"failCgroupV1,omitempty"`
	FailSwapOn               bool                  `json:"failSwapOn"`
	FeatureGates             map[string]bool       `json:"featureGates,omitempty"`
	HairpinMode              string                `json:"hairpinMode"`
	KubeReserved             map[string]string     `json:"kubeReserved"`
	KubeReservedCgroup       string                `json:"kubeReservedCgroup,omitempty"`
	Logging                  kubeletLogging        `json:"logging"`
	MakeIPTablesUtilChains   bool                  `json:"makeIPTablesUtilChains"`
	MaxPods                  int32                 `json:"maxPods"`
	PodPidsLimit             int64                 `json:"podPidsLimit,omitempty"`
	ProtectKernelDefaults    bool                  `json:"protectKernelDefaults"`
	ProviderID               string                `json:"providerID,omitempty"`
	ReadOnlyPort             int                   `json:"readOnlyPort"`
	ResolverConfig           string                `json:"resolvConf"`
	RotateCertificates       bool                  `json:"rotateCertificates"`
	SeccompDefault           bool                  `json:"seccompDefault"`
	SerializeImagePulls      bool                  `json:"serializeImagePulls"`
	ServerTLSBootstrap       bool                  `json:"serverTLSBootstrap"`
	ShutdownGracePeriod      string                `json:"shutdownGracePeriod,omitempty"`
	ShutdownCriticalPods     string                `json:"shutdownGracePeriodCriticalPods,omitempty"`
	StaticPodPath            string                `json:"staticPodPath,omitempty"`
	SystemReservedCgroup     string                `json:"systemReservedCgroup,omitempty"`
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

// newKubeletConfig is what muster decides. The user's wishes are in a file of their own, which the kubelet merges over this.
func newKubeletConfig(spec nodeconfig.Spec, instance Instance, facts Facts, layout Layout) (kubeletConfig, error) {
	dns, err := clusterDNS(spec)
	if err != nil {
		return kubeletConfig{}, err
	}
	pods, err := MaxPods(spec, instance)
	if err != nil {
		return kubeletConfig{}, err
	}
	k := kubeletConfig{
		Kind:       nodeconfig.KubeletKind,
		APIVersion: nodeconfig.KubeletAPIVersion,

		Address:                  "0.0.0.0",
		CgroupDriver:             layout.cgroupDriver(),
		CgroupRoot:               "/", // of the machine's own cgroup namespace
		ClusterDNS:               dns,
		ClusterDomain:            clusterDomain(spec),
		ContainerRuntimeEndpoint: "unix://" + ContainerdSocket,
		EvictionHard: map[string]string{
			"memory.available":  "100Mi",
			"nodefs.available":  "10%",
			"nodefs.inodesFree": "5%",
		},
		// Pods have no swap in any case (memorySwap.swapBehavior is NoSwap); whether the host has any is not a machine's business.
		FailSwapOn:   layout.Systemd,
		HairpinMode:  "hairpin-veth",
		KubeReserved: nodeconfig.Reserved(facts.CPUs, facts.MemoryBytes, pods),
		Logging:      kubeletLogging{Verbosity: 2},
		// CIS 3.2.6 and EKS have it. kube-proxy and portmap speak nftables, so the chains are for other programs that use iptables.
		MakeIPTablesUtilChains: facts.IPTables,
		MaxPods:                pods,
		// A machine's own view of those settings has the values that the kubelet demands; see internal/machine/machine/local. On a host
		// the kubelet sets them itself, as on kubeadm's nodes: EKS's images have them set when they boot, other hosts do not.
		ProtectKernelDefaults: !layout.Systemd,
		ProviderID:            instance.ProviderID(),
		ReadOnlyPort:          0,
		ResolverConfig:        resolverConfig(facts),
		// With it the kubelet would ask for a client certificate and forget the exec plugin of its kubeconfig
		// (cmd/kubelet/app/server.go, buildKubeletClientConfig): a machine that joins by its role has no such certificate, as on EKS.
		RotateCertificates: !spec.Join.InstanceRole,
		// Off on EKS. All machines share the host's kernel, and some of what it has is not in namespaces.
		SeccompDefault:      true,
		SerializeImagePulls: false,
		ServerTLSBootstrap:  true,
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
	if facts.UserNamespace { // it goes on without the kernel's log and settings of the whole kernel, which are not the machine's
		k.FeatureGates = map[string]bool{"KubeletInUserNamespace": true}
	}
	if layout.Systemd {
		k.underSystemd(spec)
	} else { // a host may have manifests of kubeadm's there, which a kubelet would run
		k.StaticPodPath = PathStaticPods
		k.boundProcesses(facts.PIDs)
	}
	k.Authentication.Webhook.CacheTTL = "2m0s"
	k.Authentication.Webhook.Enabled = true
	k.Authentication.X509.ClientCAFile = PathCA
	k.Authorization.Mode = "Webhook"
	k.Authorization.Webhook.CacheAuthorizedTTL = "5m0s"
	k.Authorization.Webhook.CacheUnauthorizedTTL = "30s"
	return k, nil
}

// underSystemd is what only a host has: slices of systemd's for what is not a pod, and a logind that the kubelet asks to wait for
// pods when the host shuts down. The figures are EKS's.
func (k *kubeletConfig) underSystemd(spec nodeconfig.Spec) {
	k.ShutdownGracePeriod, k.ShutdownCriticalPods = "2m30s", "30s"
	_, byFlag := lastFlag(spec.Kubelet.Flags, flagReservedCPUs)
	if _, byConfig := spec.Kubelet.Config["reservedSystemCPUs"]; byFlag || byConfig {
		return // the kubelet refuses to have both (cmd/kubelet/app/server.go), and AL2's bootstrap.sh decided so too
	}
	k.KubeReservedCgroup, k.SystemReservedCgroup = "/runtime", "/system"
}

// processShare is the part of a machine's processes that no pod gets, and that one pod gets at most: one in so many.
const processShare = 4

// boundProcesses keeps pods from taking all processes of a machine, without which kubelet and containerd cannot go on: all pods together leave a part, which
// the kubelet subtracts from kernel.threads-max (pkg/kubelet/cm, getNodeAllocatableInternalAbsolute), and one pod gets no more than that. EKS bounds neither.
func (k *kubeletConfig) boundProcesses(pids int64) {
	if part := pids / processShare; part > 0 {
		k.KubeReserved["pid"], k.PodPidsLimit = strconv.FormatInt(part, 10), part
	}
}

func (l Layout) cgroupDriver() string {
	if l.Systemd {
		return "systemd"
	}
	return "cgroupfs"
}

func clusterDomain(spec nodeconfig.Spec) string {
	if spec.Cluster.Domain == "" {
		return "cluster.local"
	}
	return spec.Cluster.Domain
}

func resolverConfig(facts Facts) string {
	if facts.ResolverConfig == "" {
		return "/etc/resolv.conf"
	}
	return facts.ResolverConfig
}

// clusterDNS is none if the user has set it and there is no range of Services' addresses to take it from.
func clusterDNS(spec nodeconfig.Spec) ([]string, error) {
	if spec.Cluster.CIDR == "" {
		return nil, nil
	}
	cidr, err := netip.ParsePrefix(spec.Cluster.CIDR)
	if err != nil {
		return nil, fmt.Errorf("spec.cluster.cidr: %w", err)
	}
	dns, err := nodeconfig.ClusterDNS(cidr)
	if err != nil {
		return nil, fmt.Errorf("spec.cluster.cidr: %w", err)
	}
	return []string{dns.String()}, nil
}

// kubeletDropIn is a document that the kubelet merges over its configuration, and over the drop-ins whose names sort before its own.
type kubeletDropIn struct {
	name   string
	config map[string]any
}

// kubeletDropIns are the fields of the machine's release, and the user's.
func kubeletDropIns(spec nodeconfig.Spec, instance Instance) []kubeletDropIn {
	var all []kubeletDropIn
	for _, d := range []kubeletDropIn{{"20-release.conf", instance.Release.Kubelet}, {"40-nodeadm.conf", spec.Kubelet.Config}} {
		if len(d.config) > 0 {
			d.config = maps.Clone(d.config)
			d.config["kind"], d.config["apiVersion"] = nodeconfig.KubeletKind, nodeconfig.KubeletAPIVersion
			all = append(all, d)
		}
	}
	return all
}
