// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Isolation is what separates a local machine from the host and from other machines.
//
// +kubebuilder:validation:Enum=none;user-namespace
type Isolation string

const (
	// IsolationNone makes root on the machine root on the host, in namespaces: it can get out.
	IsolationNone Isolation = "none"
	// IsolationUserNamespace makes root on the machine a user of the host that nobody else is.
	IsolationUserNamespace Isolation = "user-namespace"
)

// NodeGroup keeps a number of like machines running in the cluster of its namespace. [NodeGroupSlug] derives metadata.name from spec.name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.scalingConfig.desiredSize,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:scope=Namespaced,shortName=ng,categories=muster
// +kubebuilder:printcolumn:name="NodeGroup",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.scalingConfig.desiredSize`
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.spec.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$') && !self.spec.name.contains('--') ? self.metadata.name == self.spec.name : self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,49}[a-z0-9])?--[0-9a-f]{10}$')",message="metadata.name must be spec.name, or for a spec.name that is not a DNS label or has -- in it its slug BASE--HASH, as docs/service.md describes it"
type NodeGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec NodeGroupSpec `json:"spec"`

	// +optional
	Status NodeGroupStatus `json:"status,omitzero"`
}

// MaxDrainTimeout is how long a machine waits for its pods, as on EKS, unless its node group says less.
const MaxDrainTimeout = 15 * time.Minute

// NodeGroupSpec is the desired state of a node group.
//
// +kubebuilder:validation:XValidation:rule="self.provider != 'simulated' || !has(self.bootstrap) || self.bootstrap != 'Role'",message="simulated machines have no instance metadata to get a role's credentials from; leave bootstrap out",fieldPath=".bootstrap"
// +kubebuilder:validation:XValidation:rule="self.provider != 'simulated' || !has(self.isolation)",message="simulated machines run no programs; leave isolation out",fieldPath=".isolation"
// +kubebuilder:validation:XValidation:rule="!has(self.warmPool) || !has(self.warmPool.minSize) || self.warmPool.minSize <= self.scalingConfig.maxSize",message="a warm pool is not larger than its node group: warmPool.minSize must be at most scalingConfig.maxSize",fieldPath=".warmPool.minSize"
// +kubebuilder:validation:XValidation:rule="!has(self.warmPool) || !has(self.warmPool.maxGroupPreparedCapacity) || self.warmPool.maxGroupPreparedCapacity <= self.scalingConfig.maxSize",message="a warm pool is not larger than its node group: warmPool.maxGroupPreparedCapacity must be at most scalingConfig.maxSize",fieldPath=".warmPool.maxGroupPreparedCapacity"
// +kubebuilder:validation:XValidation:rule="!has(self.warmPool) || !has(self.instanceTypes) || size(self.instanceTypes) <= 1",message="a node group with several instanceTypes has no warm pool, as EC2 Auto Scaling has none for mixed instances; give one type",fieldPath=".warmPool"
// +kubebuilder:validation:XValidation:rule="self.provider == 'simulated' || !has(self.simulatePods) || !self.simulatePods",message="only simulated machines simulate pods; leave simulatePods out",fieldPath=".simulatePods"
// +kubebuilder:validation:XValidation:rule="!has(self.nodeRole) || self.provider != 'simulated' && (!has(self.bootstrap) || self.bootstrap != 'Token')",message="machines that join by a bootstrap token have no role; leave nodeRole out",fieldPath=".nodeRole"
type NodeGroupSpec struct {
	// Name of the node group, unique within its cluster. EKS's rules for names apply.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z_-]*$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name cannot be changed; make a new node group"
	Name string `json:"name"`

	// Provider of the machines.
	// +optional
	// +kubebuilder:default=local
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="provider cannot be changed; make a new node group"
	Provider Provider `json:"provider,omitempty"`

	// Version is the minor version of Kubernetes of machines that are made from now on, such as "1.36": not newer than the cluster's, and
	// three minors older at most. Empty means the version in the status, which stays when the cluster is upgraded.
	// +optional
	// +kubebuilder:validation:Pattern=`^1\.[0-9]{1,6}$`
	Version string `json:"version,omitempty"`

	// Isolation of the machines from the host. Empty means user-namespace for local machines. A change does not affect machines that exist. The
	// cluster's machines may have none only if the owner of the host allows it (muster up --allow-host-root).
	// +optional
	Isolation Isolation `json:"isolation,omitempty"`

	// SimulatePods lets simulated machines take pods: pods are scheduled to their nodes, and reported as a kubelet reports them, until they are
	// deleted or evicted. No process is behind, so nothing answers at a pod's address. Otherwise the nodes have the taint muster.dev/simulated,
	// and take none. A change does not affect running machines.
	//
	// +optional
	SimulatePods bool `json:"simulatePods,omitempty"`

	ScalingConfig ScalingConfig `json:"scalingConfig"`

	// Labels that nodes of the group register with. A change is applied to existing nodes: new labels are added and removed ones deleted,
	// unless the label on the node has been given another value since.
	//
	// +optional
	Labels NodeLabels `json:"labels,omitempty"`

	// Taints that nodes of the group register with. A change is applied to existing nodes in the same way as a change of labels.
	//
	// +optional
	Taints NodeTaints `json:"taints,omitempty"`

	// SubnetIDs are the subnets for new machines, which are spread over availability zones. They belong to the cluster's VPC. A change does not
	// affect running machines. Empty means the subnets of the cluster.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(id, self.exists_one(other, other == id))",message="a subnet must be named once"
	SubnetIDs []SubnetID `json:"subnetIDs,omitempty"`

	// LaunchTemplate configures new machines. A change does not affect running machines.
	//
	// +optional
	LaunchTemplate *NodeGroupLaunchTemplate `json:"launchTemplate,omitempty"`

	// InstanceTypes as in the EKS API. Machines have the first type, unless the launch template names one.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	InstanceTypes []string `json:"instanceTypes,omitempty"`

	// Bootstrap is the way in which machines of the group prove their identity when they join: by the role of their instance profile, or by a
	// bootstrap token for each machine. Empty means Role for local machines, and Token for simulated ones, which have no instance metadata
	// service. A change does not affect running machines.
	//
	// +optional
	Bootstrap Bootstrap `json:"bootstrap,omitempty"`

	// NodeRole is the IAM role, by name or ARN, of machines that join by role. Empty means the cluster's own role, which the service makes:
	// muster-node- and the name of the cluster. A change does not affect running machines.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(arn:aws[a-z-]*:iam::[0-9]{12}:role/([!-~]+/)?)?[A-Za-z0-9_+=,.@-]{1,64}$`
	NodeRole string `json:"nodeRole,omitempty"`

	// Rollout replaces the machines that were made before it, as eks.updateConfig says: additional machines become Ready, then old ones are
	// cordoned, drained and terminated. EKS's UpdateNodegroupVersion sets it.
	//
	// +optional
	Rollout *NodeGroupRollout `json:"rollout,omitempty"`

	// DrainTimeout is how long a machine that is replaced or deleted waits for its pods. Empty means 15 minutes, as on EKS, which is also the
	// maximum.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('15m')",message="must be from 1s to 15m"
	DrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`

	// WarmPool keeps machines beside the group that have booted and join in a second or two. Empty means no pool.
	//
	// +optional
	WarmPool *WarmPool `json:"warmPool,omitempty"`

	// AutoScaling holds the settings that Auto Scaling's API keeps of the node group's Auto Scaling group.
	//
	// +optional
	AutoScaling *AutoScaling `json:"autoScaling,omitempty"`

	// EKS holds settings of the EKS API. Of these updateConfig and nodeRepairConfig have an effect in Muster.
	//
	// +optional
	EKS NodeGroupEKS `json:"eks,omitzero"`

	// Tags are the node group's tags in the AWS API. They are not copied to machines.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// Bootstrap is the way in which a machine proves its identity when it joins.
//
// +kubebuilder:validation:Enum=Role;Token
type Bootstrap string

const (
	// BootstrapRole uses the credentials of the role of the machine's instance profile.
	BootstrapRole Bootstrap = "Role"
	// BootstrapToken uses a bootstrap token in the machine's user data.
	BootstrapToken Bootstrap = "Token"
)

// JoinsByRole reports whether machines of the group prove their identity by a role.
func (s NodeGroupSpec) JoinsByRole() bool {
	return s.Bootstrap == BootstrapRole || s.Bootstrap == "" && s.Provider.Can(JoinNetwork)
}

// Role returns the role of machines that are made from now on, by name or ARN as the spec has it, or "" if they join by token. The default
// is the role of the cluster, which the namespace of the group names.
func (g *NodeGroup) Role() string {
	switch {
	case !g.Spec.JoinsByRole():
		return ""
	case g.Spec.NodeRole == "":
		return ClusterNodeRole(g.Namespace)
	}
	return g.Spec.NodeRole
}

// NodeGroupLaunchTemplate configures the launch of machines, in EC2's terms. If ID is set, it is a copy of one version of a LaunchTemplate;
// later versions do not change it.
//
// +kubebuilder:validation:XValidation:rule="has(self.id) == has(self.version) && has(self.id) == has(self.name)",message="id, name and version belong together: they say which LaunchTemplate this is a copy of"
type NodeGroupLaunchTemplate struct {
	// ID of the LaunchTemplate that was copied.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^lt-[0-9a-f]{17}$`
	ID string `json:"id,omitempty"`

	// Name of the LaunchTemplate that was copied.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// Version of the LaunchTemplate that was copied.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Version int64 `json:"version,omitempty"`

	// InstanceType is an instance type of EC2, such as m5.large. It determines the maximum number of pods of a machine, which is 110 without a
	// type.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	InstanceType string `json:"instanceType,omitempty"`

	// DiskSize is the size of a machine's disk in GiB, 20 if it is 0: the VolumeSize of the root device.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16384
	DiskSize int32 `json:"diskSize,omitempty"`

	// KeyName is the key pair of EC2 whose owner may log in to the machines by SSH, as ec2-user.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	KeyName string `json:"keyName,omitempty"`

	// MetadataOptions configure the instance metadata service.
	//
	// +optional
	MetadataOptions MetadataOptions `json:"metadataOptions,omitzero"`

	// UserData is run before Muster's own user data: scripts run once, and a NodeConfig is merged with Muster's, which takes precedence. It is
	// plain text or base64, and may be MIME multipart. Everyone who can read node groups can read it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=21848
	UserData string `json:"userData,omitempty"`

	// SecurityGroupIDs of the machines. Empty means the cluster security group.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Pattern=`^sg-[0-9a-f]{8,17}$`
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`

	// Tags of the machines, in addition to those that Muster sets.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// Type is the instance type of the group's machines; empty for all of the host.
func (s NodeGroupSpec) Type() string {
	return MachineSpec{LaunchTemplate: s.Launched()}.Type()
}

// Launched returns the configuration of new machines: the launch template, with the first of the instance types if the template names none.
func (s NodeGroupSpec) Launched() *NodeGroupLaunchTemplate {
	template := s.LaunchTemplate.DeepCopy()
	if len(s.InstanceTypes) == 0 {
		return template
	}
	if template == nil {
		template = &NodeGroupLaunchTemplate{}
	}
	template.InstanceType = cmp.Or(template.InstanceType, s.InstanceTypes[0])
	return template
}

// MetadataOptions configure the instance metadata service for a machine.
type MetadataOptions struct {
	// HTTPPutResponseHopLimit is the hop limit of responses. 1, the default, reaches the machine only; 2 reaches its pods too.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	HTTPPutResponseHopLimit int32 `json:"httpPutResponseHopLimit,omitempty"`
}

// ScalingConfig sets the number of machines of a group.
//
// +kubebuilder:validation:XValidation:rule="self.minSize <= self.desiredSize && self.desiredSize <= self.maxSize",message="desiredSize must be from minSize to maxSize",fieldPath=".desiredSize"
type ScalingConfig struct {
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinSize int32 `json:"minSize"`

	// MaxSize is the most that desiredSize may become. Every stored group has one: the API server writes it where an object leaves it out. That is 5000 for
	// simulated machines, and for local ones, which share one host, 5, or minSize or desiredSize if those are larger. A group that exists keeps its own.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	MaxSize int32 `json:"maxSize"`

	// +kubebuilder:validation:Minimum=0
	DesiredSize int32 `json:"desiredSize"`
}

// NodeGroupStatus is the observed state of a node group.
type NodeGroupStatus struct {
	// Replicas is the number of machines, without those being deleted and those of the warm pool.
	// +optional
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the number of machines whose Node is Ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// WarmReplicas is the number of machines in the warm pool, without those being deleted.
	// +optional
	WarmReplicas int32 `json:"warmReplicas,omitempty"`

	// WarmReadyReplicas is the number of machines in the warm pool that have booted, and are in the state of the pool.
	// +optional
	WarmReadyReplicas int32 `json:"warmReadyReplicas,omitempty"`

	// UpdatedReplicas is the number of machines whose Node has, or will register with, the labels and taints in the spec.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// Version is the minor version of Kubernetes that new machines have.
	// +optional
	Version string `json:"version,omitempty"`

	// Rollout is the progress of the rollout.
	// +optional
	Rollout *NodeGroupRolloutStatus `json:"rollout,omitempty"`

	// Repair is what node auto repair has found and does. It is there while that is on, or a repair is under way.
	// +optional
	Repair *NodeGroupRepairStatus `json:"repair,omitempty"`

	// Selector is the label selector of the group's machines, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SpecName returns the name that people gave the node group.
func (g *NodeGroup) SpecName() string { return g.Spec.Name }

// NodeGroupList is a list of node groups.
//
// +kubebuilder:object:root=true
type NodeGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NodeGroup `json:"items"`
}
