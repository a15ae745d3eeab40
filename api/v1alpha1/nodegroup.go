// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Provider names the source of machines.
//
// +kubebuilder:validation:Enum=local;simulated
type Provider string

const (
	// ProviderLocal makes machines out of namespaces of this host, with a real kubelet and containerd each. Needs root.
	ProviderLocal Provider = "local"
	// ProviderSimulated makes machines that join by the same protocol but run no kubelet and no pods. Needs no root.
	ProviderSimulated Provider = "simulated"
)

// NodeGroup keeps a number of machines of one kind running, in the cluster whose namespace it is in. Its name follows from spec.name, by
// [NodeGroupSlug].
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.scalingConfig.desiredSize,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:scope=Namespaced,shortName=ng,categories=muster
// +kubebuilder:printcolumn:name="NodeGroup",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
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

// NodeGroupSpec is the desired state of a node group.
//
// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && self.provider == oldSelf.provider",message="name and provider cannot be changed; make a new node group"
// +kubebuilder:validation:XValidation:rule="self.provider != 'simulated' || !has(self.bootstrap) || self.bootstrap != 'Role'",message="simulated machines have no instance metadata to get a role's credentials from; leave bootstrap out",fieldPath=".bootstrap"
// +kubebuilder:validation:XValidation:rule="!has(self.nodeRole) || self.provider != 'simulated' && (!has(self.bootstrap) || self.bootstrap != 'Token')",message="machines that join by a bootstrap token have no role; leave nodeRole out",fieldPath=".nodeRole"
type NodeGroupSpec struct {
	// Name of the node group, by EKS's rules. Groups of two clusters may have the same name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z_-]*$`
	Name string `json:"name"`

	// Provider of the machines.
	// +optional
	// +kubebuilder:default=local
	Provider Provider `json:"provider,omitempty"`

	ScalingConfig ScalingConfig `json:"scalingConfig"`

	// Labels that every node of the group registers with. A change reaches the nodes that there are: they get those that are new, and lose those
	// that are gone, unless somebody has given them another value on the node since.
	//
	// +optional
	Labels NodeLabels `json:"labels,omitempty"`

	// Taints that every node of the group registers with. A change reaches the nodes that there are, as one of labels does.
	//
	// +optional
	Taints NodeTaints `json:"taints,omitempty"`

	// SubnetIDs are the subnets of the cluster's VPC that machines are launched in from now on, spread over availability zones; those that run
	// stay where they are. Empty means the cluster's.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(id, self.exists_one(other, other == id))",message="a subnet must be named once"
	SubnetIDs []SubnetID `json:"subnetIDs,omitempty"`

	// LaunchTemplate says how machines are launched from now on; those that run stay as they are.
	//
	// +optional
	LaunchTemplate *NodeGroupLaunchTemplate `json:"launchTemplate,omitempty"`

	// InstanceTypes are EKS's: machines are of the first one. A launch template that names a type has precedence.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	InstanceTypes []string `json:"instanceTypes,omitempty"`

	// Bootstrap is how machines of the group prove their identity when they join: by the role that they were launched with, or by a
	// bootstrap token of their own. Empty means Role for local machines and Token for simulated ones, which have no
	// instance metadata to get a role's credentials from. A change does not affect running machines.
	//
	// +optional
	Bootstrap Bootstrap `json:"bootstrap,omitempty"`

	// NodeRole is the IAM role of machines that join by role: its name, or its ARN. Empty means muster-node.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(arn:aws[a-z-]*:iam::[0-9]{12}:role/([!-~]+/)?)?[A-Za-z0-9_+=,.@-]{1,64}$`
	NodeRole string `json:"nodeRole,omitempty"`

	// Rollout has the machines replaced that were not made for it, one at a time: another machine becomes Ready, then one that is replaced is cordoned,
	// its pods are evicted, and it is terminated. EKS's UpdateNodegroupVersion sets it.
	//
	// +optional
	Rollout *NodeGroupRollout `json:"rollout,omitempty"`

	// AutoScaling is what Auto Scaling's API keeps of the node group's Auto Scaling group.
	//
	// +optional
	AutoScaling *AutoScaling `json:"autoScaling,omitempty"`

	// Tags are those of the AWS API, see a Cluster's. They do not go to machines.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// NodeGroupRollout is a replacement of the machines of a node group.
type NodeGroupRollout struct {
	// ID of the rollout. Another one begins another rollout.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`

	// Force terminates a machine whose pods are not gone in time. Without it the rollout fails, and that machine takes pods again.
	//
	// +optional
	Force bool `json:"force,omitempty"`

	// Stopped leaves the machines that are there.
	//
	// +optional
	Stopped bool `json:"stopped,omitempty"`
}

// Bootstrap is how a machine proves its identity when it joins.
//
// +kubebuilder:validation:Enum=Role;Token
type Bootstrap string

const (
	// BootstrapRole is by the credentials of the role that the machine was launched with.
	BootstrapRole Bootstrap = "Role"
	// BootstrapToken is by a bootstrap token in its user data.
	BootstrapToken Bootstrap = "Token"
)

// DefaultNodeRole is the role of machines whose group names none. The service makes it, with an instance profile of the same name.
const DefaultNodeRole = "muster-node"

// Role is the role by which the machines of the group join, as it was written, or "" if they join by token.
func (s NodeGroupSpec) Role() string {
	how := s.Bootstrap
	if how == "" && s.Provider == ProviderLocal {
		how = BootstrapRole
	}
	switch {
	case how != BootstrapRole:
		return ""
	case s.NodeRole == "":
		return DefaultNodeRole
	}
	return s.NodeRole
}

// NodeGroupLaunchTemplate describes how machines are launched, with the names of EC2. It is what a version of a LaunchTemplate says, if ID is
// set: a copy, which later versions do not change.
//
// +kubebuilder:validation:XValidation:rule="has(self.id) == has(self.version) && has(self.id) == has(self.name)",message="id, name and version belong together: they say which LaunchTemplate this is a copy of"
type NodeGroupLaunchTemplate struct {
	// ID of the LaunchTemplate that this is a copy of.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^lt-[0-9a-f]{17}$`
	ID string `json:"id,omitempty"`

	// Name of the LaunchTemplate that this is a copy of.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// Version of the LaunchTemplate that this is a copy of.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Version int64 `json:"version,omitempty"`

	// InstanceType of the machines, such as m5.large. It decides how many pods a machine takes; without a type that is 110.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	InstanceType string `json:"instanceType,omitempty"`

	// MetadataOptions of the instance metadata service.
	//
	// +optional
	MetadataOptions MetadataOptions `json:"metadataOptions,omitzero"`

	// UserData runs before muster's own: scripts, once, and NodeConfigs, in which muster's own has precedence. It is plain text or
	// base64, and may be MIME multipart. Everyone who may read node groups can read it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=21848
	UserData string `json:"userData,omitempty"`

	// SecurityGroupIDs of the machines. Empty means the cluster's own.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Pattern=`^sg-[0-9a-f]{8,17}$`
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`

	// Tags that the machines have beside those of Muster's own.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// Launched is how a machine of the group is launched now: by the launch template, with the first of the instance types if that names none.
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
	// HTTPPutResponseHopLimit is the hop limit of answers, by default 1: 1 reaches the machine alone, 2 its pods too.
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

	// +optional
	// +kubebuilder:default=5000
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	MaxSize int32 `json:"maxSize"`

	// +kubebuilder:validation:Minimum=0
	DesiredSize int32 `json:"desiredSize"`
}

// NodeGroupStatus is the observed state of a node group.
type NodeGroupStatus struct {
	// Replicas counts the machines of the group that are not being deleted.
	// +optional
	Replicas int32 `json:"replicas"`

	// ReadyReplicas counts the machines of the group whose Node is Ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// UpdatedReplicas counts the machines whose Node has the labels and taints of the group's spec, or registers with them.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// Rollout is how far the replacement of machines is.
	// +optional
	Rollout *NodeGroupRolloutStatus `json:"rollout,omitempty"`

	// Selector finds the group's machines, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodeGroupRolloutStatus is how far a replacement of machines is.
type NodeGroupRolloutStatus struct {
	// ID of the rollout.
	ID string `json:"id"`

	// Outdated counts the machines that are to be replaced.
	// +optional
	Outdated int32 `json:"outdated"`

	// Draining is the machine whose pods are being evicted, or that is about to go.
	// +optional
	Draining string `json:"draining,omitempty"`

	// StepTime is when the rollout went on last.
	// +optional
	StepTime metav1.Time `json:"stepTime,omitzero"`

	// Code is set when the rollout has failed: EKS's code, PodEvictionFailure or NodeCreationFailure. Machines stay as they are then.
	// +optional
	Code string `json:"code,omitempty"`

	// Message says why it has failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// NodeGroupList is a list of node groups.
//
// +kubebuilder:object:root=true
type NodeGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NodeGroup `json:"items"`
}
