// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FinalizerCluster keeps a Cluster until its control plane is removed.
const FinalizerCluster = "muster.dev/cluster"

// ConditionAPIServerMemoryLimited on a Cluster is True while its API server is held to the memory that its spec allows. The message says also when
// the API server was ended at its limit.
const ConditionAPIServerMemoryLimited = "APIServerMemoryLimited"

// ConditionEtcdSpace on a Cluster is True while the file of its etcd is well below its quota, and False when it is nearly full or when etcd has
// raised the alarm NOSPACE.
const ConditionEtcdSpace = "EtcdSpace"

// ConditionReady on a Cluster, NodeGroup or Machine is True while the object serves its purpose.
const ConditionReady = "Ready"

// Cluster is one Kubernetes cluster: its control plane and the network of its machines. It has a namespace of its own, which also holds its
// NodeGroups. [ClusterSlug] derives metadata.name and the namespace from spec.name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=muster
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.spec.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$') && !self.spec.name.contains('--') && self.spec.name != 'default' && !self.spec.name.startsWith('kube-') && !self.spec.name.startsWith('muster-') ? self.metadata.name == self.spec.name : self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,49}[a-z0-9])?--[0-9a-f]{10}$')",message="metadata.name must be spec.name, or for a spec.name that is not a DNS label, has -- in it, or is a reserved namespace (default, kube-*, muster-*) its slug BASE--HASH, as docs/service.md describes it"
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec ClusterSpec `json:"spec"`

	// +optional
	Status ClusterStatus `json:"status,omitzero"`
}

// ClusterSpec is the desired state of a cluster.
type ClusterSpec struct {
	// Name of the cluster, as command lines and tokens use it. EKS's rules for names apply.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z_-]*$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the name of a cluster cannot be changed; make a new cluster"
	Name string `json:"name"`

	// Version is the minor version of Kubernetes, such as "1.36". Its patch is the one that Muster has, and changes with Muster; a patch of
	// the minor that is named here, such as "v1.36.3", stands for the minor. Empty means the version that the cluster has, and for a new
	// cluster the default one.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^(1\.[0-9]+|v?1\.[0-9]+\.[0-9]+)$`
	Version string `json:"version,omitempty"`

	// Network cannot be changed once the cluster exists: machines and Services hold addresses from it.
	// +optional
	// +kubebuilder:default={serviceCIDR: "10.100.0.0/16", clusterDomain: "cluster.local"}
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the network of a cluster cannot be changed; make a new cluster"
	Network ClusterNetwork `json:"network,omitzero"`

	// ControlPlane sets the size of the control plane.
	//
	// +optional
	ControlPlane ClusterControlPlane `json:"controlPlane,omitzero"`

	// APIServer sets the address, the memory and the settings of the API server.
	//
	// +optional
	APIServer ClusterAPIServer `json:"apiServer,omitzero"`

	// ControllerManager holds the settings of kube-controller-manager.
	//
	// +optional
	ControllerManager ControllerManagerSettings `json:"controllerManager,omitzero"`

	// Scheduler holds the settings of kube-scheduler.
	//
	// +optional
	Scheduler SchedulerSettings `json:"scheduler,omitzero"`

	// FeatureGates are set for all programs of the control plane. A gate that the minor's programs do not know, or that they have locked, is
	// refused by its name.
	//
	// +optional
	FeatureGates FeatureGates `json:"featureGates,omitempty"`

	// Certificates sets the lifetime of kubelets' certificates.
	//
	// +optional
	// +kubebuilder:default={clientDuration: "168h", servingDuration: "168h"}
	Certificates ClusterCertificates `json:"certificates,omitzero"`

	// AccessConfig configures access by IAM.
	//
	// +optional
	// +kubebuilder:default={authenticationMode: "API_AND_CONFIG_MAP", bootstrapClusterCreatorAdminPermissions: true}
	AccessConfig ClusterAccessConfig `json:"accessConfig,omitzero"`

	// SecurityGroupIDs are security groups of the API server's addresses in the VPC, beside the cluster's own group.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=20
	// +kubebuilder:validation:items:Pattern=`^sg-[0-9a-f]{17}$`
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`

	// KubeletAuthority requests one step of rotating the certificate authority of kubelets, as the EKS API does. The result is in
	// status.kubeletAuthority.
	//
	// +optional
	KubeletAuthority *KubeletAuthorityRequest `json:"kubeletAuthority,omitempty"`

	// BootstrapSelfManagedAddons installs CoreDNS as a self-managed add-on when the cluster is made, and is not read afterwards. kube-proxy and
	// the network plugins run on every machine, outside of pods. Defaults to true.
	//
	// +optional
	BootstrapSelfManagedAddons *bool `json:"bootstrapSelfManagedAddons,omitempty"`

	// DeletionProtection prevents deletion of the cluster while it is true, as on EKS.
	//
	// +optional
	DeletionProtection bool `json:"deletionProtection,omitempty"`

	// ZonalShift configures zonal shifts, which is the zonalShiftConfig of EKS. Left out, none can be started.
	//
	// +optional
	ZonalShift *ClusterZonalShift `json:"zonalShift,omitempty"`

	// Compute configures the machines that the control plane launches for pending pods, which is the computeConfig of EKS. Left out, it launches
	// none.
	//
	// +optional
	Compute *ClusterCompute `json:"compute,omitempty"`

	// Tags are the cluster's tags in the AWS API. Policies match them by the condition key aws:ResourceTag/KEY. Kubernetes does not use them.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`

	// EKS holds settings that the EKS API stores and returns. Besides loggingTypes they have no effect.
	//
	// +optional
	EKS ClusterEKS `json:"eks,omitzero"`
}

// AuthenticationMode names the sources that map an IAM identity to a user of the cluster.
//
// +kubebuilder:validation:Enum=CONFIG_MAP;API_AND_CONFIG_MAP;API
type AuthenticationMode string

// The modes, in the order in which a cluster may go through them.
const (
	AuthenticationConfigMap       AuthenticationMode = "CONFIG_MAP"         // IAMIdentityMapping, aws-auth, files
	AuthenticationAPIAndConfigMap AuthenticationMode = "API_AND_CONFIG_MAP" // access entries before those
	AuthenticationAPI             AuthenticationMode = "API"                // access entries only
)

// AuthenticationModes lists the modes in the order in which a cluster may go through them.
func AuthenticationModes() []AuthenticationMode {
	return []AuthenticationMode{AuthenticationConfigMap, AuthenticationAPIAndConfigMap, AuthenticationAPI}
}

// ClusterAccessConfig is the accessConfig of EKS.
type ClusterAccessConfig struct {
	// AuthenticationMode can only move forward: from CONFIG_MAP to API_AND_CONFIG_MAP to API.
	//
	// +optional
	// +kubebuilder:default=API_AND_CONFIG_MAP
	// +kubebuilder:validation:XValidation:rule="self == oldSelf || self == 'API' || oldSelf == 'CONFIG_MAP'",message="authenticationMode goes one way, from CONFIG_MAP to API_AND_CONFIG_MAP to API: entries of a source that is left behind would come back unseen"
	AuthenticationMode AuthenticationMode `json:"authenticationMode,omitempty"`

	// BootstrapClusterCreatorAdminPermissions creates an access entry with AmazonEKSClusterAdminPolicy for the creator of the cluster,
	// arn:aws:iam::000000000000:user/admin. The entry is created once; if it is deleted, it is not created again.
	//
	// +optional
	// +kubebuilder:default=true
	BootstrapClusterCreatorAdminPermissions *bool `json:"bootstrapClusterCreatorAdminPermissions,omitempty"`
}

// SubnetID is the id of a subnet.
//
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:Pattern=`^subnet-[0-9a-f]{17}$`
type SubnetID string

// ClusterNetwork sets the subnets and the address ranges of a cluster. Ranges are IPv4 networks in CIDR notation and must not overlap. An
// omitted value is chosen once, when the cluster is made; the status has the result.
// A pod network is at most a /8 because the controller manager hands out at most 2^16 ranges for nodes (kubernetes
// pkg/controller/nodeipam/ipam/cidrset), a service network at most a /12 by the API server's own rule.
//
// +kubebuilder:validation:XValidation:rule="!has(self.podCIDR) || size(self.podCIDR) == 0 || isCIDR(self.podCIDR) && cidr(self.podCIDR).ip().family() == 4 && cidr(self.podCIDR) == cidr(self.podCIDR).masked() && cidr(self.podCIDR).ip().isGlobalUnicast() && cidr(self.podCIDR).prefixLength() >= 8 && cidr(self.podCIDR).prefixLength() <= 22",message="podCIDR must be an IPv4 network from /8 to /22, as 10.244.0.0/16: each node takes a /24 of it",fieldPath=".podCIDR"
// +kubebuilder:validation:XValidation:rule="isCIDR(self.serviceCIDR) && cidr(self.serviceCIDR).ip().family() == 4 && cidr(self.serviceCIDR) == cidr(self.serviceCIDR).masked() && cidr(self.serviceCIDR).ip().isGlobalUnicast() && cidr(self.serviceCIDR).prefixLength() >= 12 && cidr(self.serviceCIDR).prefixLength() <= 24",message="serviceCIDR must be an IPv4 network from /12 to /24, as 10.100.0.0/16",fieldPath=".serviceCIDR"
// +kubebuilder:validation:XValidation:rule="!has(self.podCIDR) || !isCIDR(self.podCIDR) || !isCIDR(self.serviceCIDR) || cidr(self.podCIDR).ip().family() != cidr(self.serviceCIDR).ip().family() || !(cidr(self.podCIDR).containsIP(cidr(self.serviceCIDR).ip()) || cidr(self.serviceCIDR).containsIP(cidr(self.podCIDR).ip()))",message="podCIDR and serviceCIDR must not overlap",fieldPath=".serviceCIDR"
// +kubebuilder:validation:XValidation:rule="!has(self.podSubnetIDs) || size(self.podSubnetIDs) == 0 || !has(self.podCIDR) || size(self.podCIDR) == 0",message="pods have addresses of podCIDR or of podSubnetIDs: give one of the two",fieldPath=".podSubnetIDs"
type ClusterNetwork struct {
	// SubnetIDs are the subnets of the cluster. They belong to one VPC and cover at least two availability zones. The API server has an address
	// in two of them. Machines are launched in them unless their node group names other subnets. Empty means all subnets of the account's
	// default VPC, except those in podSubnetIDs.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(id, self.exists_one(other, other == id))",message="a subnet must be named once"
	SubnetIDs []SubnetID `json:"subnetIDs,omitempty"`

	// PodSubnetIDs are the subnets for the addresses of pods, if these are to differ from the machines' own. They belong to the cluster's VPC,
	// with at least one in each availability zone of the cluster's subnets. A machine takes a range for its pods from a subnet of its zone: the
	// first one in this list that has room. Machines, and pods in the network of their machine, have addresses of the machines' subnets. It
	// excludes podCIDR.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(id, self.exists_one(other, other == id))",message="a subnet must be named once"
	PodSubnetIDs []SubnetID `json:"podSubnetIDs,omitempty"`

	// PodCIDR is the address range of pods. Each node gets a /24 of it. It must not overlap the pod range of another cluster in the VPC. If
	// omitted, pods have addresses in the subnets of their machines. Simulated machines and hosts that joined by themselves then get a /24 each of
	// the first of 10.244.0.0/16, 10.245.0.0/16 and so on that overlaps no other range.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=18
	PodCIDR string `json:"podCIDR,omitempty"`

	// ServiceCIDR is the address range of Services. The first address is the API server's, the tenth the cluster DNS's.
	// +kubebuilder:default="10.100.0.0/16"
	// +kubebuilder:validation:MaxLength=18
	ServiceCIDR string `json:"serviceCIDR,omitempty"`

	// ClusterDomain is the suffix of the DNS names of Services.
	// +kubebuilder:default="cluster.local"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ClusterDomain string `json:"clusterDomain,omitempty"`
}

// ClusterAPIServer sets the address, the memory and the settings of the API server of a cluster.
type ClusterAPIServer struct {
	// Port on the loopback address. 0 means a free port, which is chosen once and does not change.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// MemoryLimit is the memory that kube-apiserver may have, such as 6Gi or 1536Mi. At this limit the kernel ends kube-apiserver, and it is started
	// again. A change takes effect at once, without a restart; a limit below what kube-apiserver uses takes effect when it is started next. Empty
	// means 6Gi, or a quarter of the host's memory where that is less.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[1-9][0-9]{0,8}(Mi|Gi)$') && quantity(self).compareTo(quantity('512Mi')) >= 0 && quantity(self).compareTo(quantity('1024Gi')) <= 0",message="must be from 512Mi to 1024Gi, in whole Mi or Gi, as 4Gi; or left out"
	MemoryLimit string `json:"memoryLimit,omitempty"`

	APIServerSettings `json:",inline"`
}

// ClusterCertificates sets the lifetime of kubelets' certificates. The pattern of a duration is what Go can
// parse and no more: the schema's own format "duration" also takes "2 weeks", which no client could read back.
type ClusterCertificates struct {
	// ClientDuration is the lifetime of kubelets' client certificates.
	//
	// +optional
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10m') && duration(self) <= duration('8760h')",message="must be from 10m to 8760h (a year)"
	ClientDuration *metav1.Duration `json:"clientDuration,omitempty"`

	// ServingDuration is the lifetime of kubelets' serving certificates.
	//
	// +optional
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10m') && duration(self) <= duration('8760h')",message="must be from 10m to 8760h (a year)"
	ServingDuration *metav1.Duration `json:"servingDuration,omitempty"`
}

// ClusterStatus is the observed state of a cluster.
type ClusterStatus struct {
	// Endpoint is the URL of the API server for clients on this host.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// PrivateEndpoint is the URL of the API server for machines in the VPC.
	// +optional
	PrivateEndpoint string `json:"privateEndpoint,omitempty"`

	// EndpointAddresses are the addresses of the API server in the VPC.
	// +optional
	// +listType=atomic
	EndpointAddresses []string `json:"endpointAddresses,omitempty"`

	// VPCID is the id of the cluster's VPC.
	// +optional
	VPCID string `json:"vpcID,omitempty"`

	// SubnetIDs are the subnets of the cluster: those in its spec, or those that were chosen.
	// +optional
	// +listType=atomic
	SubnetIDs []SubnetID `json:"subnetIDs,omitempty"`

	// ClusterSecurityGroupID is the id of the cluster security group. Its members are the API server and the machines of node groups.
	// +optional
	ClusterSecurityGroupID string `json:"clusterSecurityGroupID,omitempty"`

	// SecurityGroupIDs are the security groups in force for the API server's addresses: the cluster security group, and the groups in the spec.
	// +optional
	// +listType=atomic
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`

	// PodCIDR is the address range of pods: the range in the spec, or the VPC's.
	// +optional
	PodCIDR string `json:"podCIDR,omitempty"`

	// Version is the Kubernetes version that the API server reports.
	// +optional
	Version string `json:"version,omitempty"`

	// CertificateAuthority verifies the API server's certificate.
	// +optional
	CertificateAuthority ClusterCertificateAuthority `json:"certificateAuthority,omitzero"`

	// KubeletAuthorities are the certificate authorities of kubelets: the one that signs, and during a rotation a second one.
	// +optional
	// +listType=map
	// +listMapKey=name
	KubeletAuthorities []KubeletAuthority `json:"kubeletAuthorities,omitempty"`

	// KubeletAuthority is the result of the last request in spec.kubeletAuthority.
	// +optional
	KubeletAuthority *KubeletAuthorityAnswer `json:"kubeletAuthority,omitempty"`

	// AuthenticationMode is the mode that the authenticator runs in. It is set once all components with that configuration are ready.
	// +optional
	AuthenticationMode AuthenticationMode `json:"authenticationMode,omitempty"`

	// ShiftedZones are the names of the availability zones that an active zonal shift moves the cluster away from. Nothing is launched or repaired
	// there.
	// +optional
	// +listType=atomic
	ShiftedZones []string `json:"shiftedZones,omitempty"`

	// Identity is the field identity of EKS's DescribeCluster.
	// +optional
	Identity ClusterIdentity `json:"identity,omitzero"`

	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterIdentity describes the issuer of the identities of the cluster's workloads.
type ClusterIdentity struct {
	// OIDC is the OpenID Connect issuer of service account tokens.
	// +optional
	OIDC ClusterOIDC `json:"oidc,omitzero"`
}

// ClusterOIDC is an OpenID Connect issuer.
type ClusterOIDC struct {
	// Issuer is the URL of the issuer, which is the claim iss of each token. It does not change.
	// +optional
	Issuer string `json:"issuer,omitempty"`
}

// SpecName returns the name that people gave the cluster.
func (c *Cluster) SpecName() string { return c.Spec.Name }

// ClusterList is a list of clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Cluster `json:"items"`
}
