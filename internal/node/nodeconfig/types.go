// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The two spellings of a NodeConfig. Fields that EKS's nodes take mean the same here; muster's own has more fields,
// those of joining a cluster that is not EKS. Documents of both kinds may be merged.
const (
	APIVersionEKS = "node.eks.aws/v1alpha1"
	APIVersion    = "node.muster.dev/v1alpha1"
	Kind          = "NodeConfig"
	// MediaType is that of a NodeConfig among the parts of multipart user data.
	MediaType = "application/node.eks.aws"
)

// NodeConfig is one document.
type NodeConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec Spec `json:"spec,omitzero"`
}

// Spec is what a machine is told: one document of it, or what all documents together say.
type Spec struct {
	Cluster    Cluster    `json:"cluster,omitzero"`
	Containerd Containerd `json:"containerd,omitzero"`
	Kubelet    Kubelet    `json:"kubelet,omitzero"`
	Instance   Instance   `json:"instance,omitzero"`
	// FeatureGates are InstanceIdNodeName and FastImagePull.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Join is how a machine finds its cluster and proves itself. Muster's own.
	Join Join `json:"join,omitzero"`
	// Logging is where logs of containers go. Muster's own.
	Logging Logging `json:"logging,omitzero"`
}

// Logging configures the log router of a machine of Fargate, by the values of the ConfigMap aws-logging. Without an output there is none.
type Logging struct {
	Output  string `json:"output,omitempty"`
	Filters string `json:"filters,omitempty"`
	Parsers string `json:"parsers,omitempty"`
}

// Cluster is which cluster the machine joins.
type Cluster struct {
	Name string `json:"name,omitempty"`
	// APIServerEndpoint is the URL of the API server, as the machine reaches it.
	APIServerEndpoint string `json:"apiServerEndpoint,omitempty"`
	// CertificateAuthority is PEM (base64 in YAML): the authorities that the machine trusts for the API server. It may
	// hold several.
	CertificateAuthority []byte `json:"certificateAuthority,omitempty"`
	// CIDR is the range of Services' addresses.
	CIDR          string `json:"cidr,omitempty"`
	EnableOutpost *bool  `json:"enableOutpost,omitempty"`
	ID            string `json:"id,omitempty"`
	// PodCIDR is the range of all pods' addresses. Muster's own.
	PodCIDR string `json:"podCIDR,omitempty"`
	// Domain of Services' names, cluster.local if empty. Muster's own.
	Domain string `json:"domain,omitempty"`
}

// Containerd is what may be chosen of containerd.
type Containerd struct {
	// Config is TOML that is merged over muster's.
	Config string `json:"config,omitempty"`
	// BaseRuntimeSpec is an OCI runtime specification that every container begins with.
	BaseRuntimeSpec map[string]any `json:"baseRuntimeSpec,omitempty"`
}

// Kubelet is what may be chosen of the kubelet.
type Kubelet struct {
	// Config is a KubeletConfiguration, merged over muster's.
	Config map[string]any `json:"config,omitempty"`
	// Flags come after muster's, so that they win.
	Flags []string `json:"flags,omitempty"`
	// MaxPodsExpression is CEL over default_enis, ips_per_eni and max_pods.
	MaxPodsExpression string `json:"maxPodsExpression,omitempty"`
}

// Instance is what may be chosen of the machine.
type Instance struct {
	LocalStorage LocalStorage `json:"localStorage,omitzero"`
	// Environment of services, by name; "default" is everybody's.
	Environment map[string]map[string]string `json:"environment,omitempty"`
	Network     Network                      `json:"network,omitzero"`
	// UserDataFailurePolicy is what becomes of a machine whose user data fails: Fail, or Ignore. Muster's own.
	UserDataFailurePolicy string `json:"userDataFailurePolicy,omitempty"`
}

// The fate of a machine whose user data fails: a script that ends with an error, arguments of bootstrap.sh that are
// refused, or a part that nothing carries out.
const (
	// Fail keeps the machine from becoming a node. It is the default.
	Fail = "Fail"
	// Ignore makes a node of it nevertheless.
	Ignore = "Ignore"
)

// LocalStorage is what becomes of disks of the instance.
type LocalStorage struct {
	// Strategy is RAID0, RAID10 or Mount.
	Strategy  string `json:"strategy,omitempty"`
	MountPath string `json:"mountPath,omitempty"`
	// DisabledMounts are Containerd, PodLogs and SOCI.
	DisabledMounts []string `json:"disabledMounts,omitempty"`
}

// Network is what the resolver is told.
type Network struct {
	Nameservers []string `json:"nameservers,omitempty"`
	Domains     []string `json:"domains,omitempty"`
}

// Join is how a machine finds its cluster and proves itself: by its role, as EKS's nodes do, or by a bootstrap token,
// as kubeadm's. A machine that has joined by a token needs none of it.
type Join struct {
	// InstanceRole has the machine prove itself by the role that it was launched with, for as long as it lives: the
	// kubelet gets its tokens from aws-iam-authenticator, which signs with the credentials in the instance's metadata.
	// There is no bootstrap token and no client certificate.
	InstanceRole bool `json:"instanceRole,omitempty"`
	// Token is a bootstrap token; TokenFile names a file that holds one, for user data that must not.
	Token     string `json:"token,omitempty"`
	TokenFile string `json:"tokenFile,omitempty"`
	// CACertHashes pin the authority, like sha256:<hex of its public key's hash>: the one that discovery finds, or the
	// one that is told.
	CACertHashes []string `json:"caCertHashes,omitempty"`
	// UnsafeSkipCAVerification believes what discovery by token finds without a pin.
	UnsafeSkipCAVerification bool `json:"unsafeSkipCAVerification,omitempty"`
	// DiscoveryFile is a kubeconfig, a file or an https URL, that says where the cluster is and which authorities to
	// trust. It is asked even beside a certificateAuthority, such as that of a launch template, which it must then
	// agree with.
	DiscoveryFile string `json:"discoveryFile,omitempty"`
	// NodeName is the name that the node registers by; the machine's own (host name, private DNS name) if empty.
	NodeName string `json:"nodeName,omitempty"`
}
