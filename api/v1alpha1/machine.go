// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// LabelCluster on a Machine and on a cluster's namespace is the cluster's slug.
	LabelCluster = "muster.dev/cluster"
	// LabelNodeGroup on a Machine and on its Node is the slug of its node group.
	LabelNodeGroup = "muster.dev/nodegroup"
	// LabelMachine on a bootstrap token's Secret names the Machine it was made for.
	LabelMachine = "muster.dev/machine"
	// FinalizerMachine keeps a Machine until its instance, Node, token and pending CSRs are gone.
	FinalizerMachine = "muster.dev/machine"
	// FinalizerNodeGroup keeps a NodeGroup until its Machines are gone.
	FinalizerNodeGroup = "muster.dev/nodegroup"
	// ConditionIdentity on a Machine that joins by role reports whether the cluster's authenticator lets it in; if not, which rule
	// refused it and why.
	ConditionIdentity = "Identity"
	// ConditionDrained on a Machine that is being deleted reports whether its pods are gone; if not, how many are left and what they wait
	// for. While that goes on, its last transition is when it began.
	ConditionDrained = "Drained"
	// ConditionWarmed on a Machine of a warm pool reports whether it has booted and is prepared to join; if not, what it waits for.
	ConditionWarmed = "Warmed"
	// BootstrapGroupPrefix followed by a Machine's name is the extra group of that machine's bootstrap token. The API server
	// writes it into every CSR made with the token, so it binds the CSR to the machine.
	BootstrapGroupPrefix = "system:bootstrappers:muster:"
)

// Machine is one instance of a provider, and its progress toward being a node. Its name is the instance id. Only the service writes its
// status, because the certificate controller decides by the names and addresses in it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ma,categories=muster
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="NodeGroup",type=string,JSONPath=`.spec.nodeGroup`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`,priority=1
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.addresses[?(@.type=="InternalIP")].address`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^i-[0-9a-f]{17}$')",message="a machine's name is its instance id: i- and 17 hexadecimal digits"
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec MachineSpec `json:"spec"`

	// +optional
	Status MachineStatus `json:"status,omitzero"`
}

// MachineSpec is the desired state of a machine. Power state, reboots, tags, security groups, the two protections, the Auto Scaling group and the source check can be
// changed; other fields cannot. The API server skips a field's own rule if the field is added or removed, so the spec has a rule for each optional field.
//
// +kubebuilder:validation:XValidation:rule="!has(self.nodeGroup) || has(self.clusterName)",message="a machine of a node group names its cluster",fieldPath=".clusterName"
// +kubebuilder:validation:XValidation:rule="has(self.clusterName) == has(oldSelf.clusterName)",message="clusterName cannot be changed; replace the machine",fieldPath=".clusterName"
// +kubebuilder:validation:XValidation:rule="has(self.nodeGroup) == has(oldSelf.nodeGroup)",message="nodeGroup cannot be changed; replace the machine",fieldPath=".nodeGroup"
// +kubebuilder:validation:XValidation:rule="has(self.nodeGroupUID) == has(oldSelf.nodeGroupUID)",message="nodeGroupUID cannot be changed; replace the machine",fieldPath=".nodeGroupUID"
// +kubebuilder:validation:XValidation:rule="has(self.isolation) == has(oldSelf.isolation)",message="isolation cannot be changed; replace the machine",fieldPath=".isolation"
// +kubebuilder:validation:XValidation:rule="(has(self.simulatePods) && self.simulatePods) == (has(oldSelf.simulatePods) && oldSelf.simulatePods)",message="simulatePods cannot be changed; replace the machine",fieldPath=".simulatePods"
// +kubebuilder:validation:XValidation:rule="has(self.subnetID) == has(oldSelf.subnetID)",message="subnetID cannot be changed; replace the machine",fieldPath=".subnetID"
// +kubebuilder:validation:XValidation:rule="has(self.labels) == has(oldSelf.labels)",message="labels cannot be changed; replace the machine",fieldPath=".labels"
// +kubebuilder:validation:XValidation:rule="has(self.taints) == has(oldSelf.taints)",message="taints cannot be changed; replace the machine",fieldPath=".taints"
// +kubebuilder:validation:XValidation:rule="has(self.launchTemplate) == has(oldSelf.launchTemplate)",message="launchTemplate cannot be changed; replace the machine",fieldPath=".launchTemplate"
// +kubebuilder:validation:XValidation:rule="has(self.rollout) == has(oldSelf.rollout)",message="rollout cannot be changed; replace the machine",fieldPath=".rollout"
// +kubebuilder:validation:XValidation:rule="has(self.instanceProfile) == has(oldSelf.instanceProfile)",message="instanceProfile cannot be changed; replace the machine",fieldPath=".instanceProfile"
// +kubebuilder:validation:XValidation:rule="has(self.instanceType) == has(oldSelf.instanceType)",message="instanceType cannot be changed; replace the machine",fieldPath=".instanceType"
// +kubebuilder:validation:XValidation:rule="has(self.diskSize) == has(oldSelf.diskSize)",message="diskSize cannot be changed; replace the machine",fieldPath=".diskSize"
// +kubebuilder:validation:XValidation:rule="has(self.imageID) == has(oldSelf.imageID)",message="imageID cannot be changed; replace the machine",fieldPath=".imageID"
// +kubebuilder:validation:XValidation:rule="has(self.keyName) == has(oldSelf.keyName)",message="keyName cannot be changed; replace the machine",fieldPath=".keyName"
// +kubebuilder:validation:XValidation:rule="has(self.userData) == has(oldSelf.userData)",message="userData cannot be changed; replace the machine",fieldPath=".userData"
// +kubebuilder:validation:XValidation:rule="has(self.metadataOptions) == has(oldSelf.metadataOptions)",message="metadataOptions cannot be changed; replace the machine",fieldPath=".metadataOptions"
// +kubebuilder:validation:XValidation:rule="!has(self.drill) || self.provider != 'simulated'",message="simulated machines run no programs, and have no drills",fieldPath=".drill"
// +kubebuilder:validation:XValidation:rule="has(self.marketType) == has(oldSelf.marketType)",message="marketType cannot be changed; replace the machine",fieldPath=".marketType"
// +kubebuilder:validation:XValidation:rule="has(self.fargate) == has(oldSelf.fargate)",message="fargate cannot be changed; replace the machine",fieldPath=".fargate"
// +kubebuilder:validation:XValidation:rule="!has(self.fargate) || has(self.clusterName) && !has(self.nodeGroup)",message="a machine of a pod names its cluster, and no node group",fieldPath=".fargate"
// +kubebuilder:validation:XValidation:rule="has(self.reservation) == has(oldSelf.reservation)",message="reservation cannot be changed; replace the machine",fieldPath=".reservation"
type MachineSpec struct {
	// ClusterName is the spec.name of the Cluster that the machine joins. It is empty for an instance of EC2's RunInstances whose user data
	// names no cluster of the account. Muster launches and terminates such an instance, and does nothing else with it.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z_-]*$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterName cannot be changed; replace the machine"
	ClusterName string `json:"clusterName,omitempty"`

	// NodeGroup is the spec.name of the machine's NodeGroup. It is empty for a machine of RunInstances.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z_-]*$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="nodeGroup cannot be changed; replace the machine"
	NodeGroup string `json:"nodeGroup,omitempty"`

	// NodeGroupUID is the UID of the NodeGroup, which distinguishes it from an earlier one of the same name. It replaces an owner reference,
	// which a cluster-scoped object cannot have to a namespaced one. If empty, the name decides.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="nodeGroupUID cannot be changed; replace the machine"
	NodeGroupUID types.UID `json:"nodeGroupUID,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="provider cannot be changed; replace the machine"
	Provider Provider `json:"provider"`

	// Isolation of the machine from the host. Empty means user-namespace for a local machine. A machine that an earlier version made has that from its next boot on.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="isolation cannot be changed; replace the machine"
	Isolation Isolation `json:"isolation,omitempty"`

	// SimulatePods lets a simulated machine take pods, which no process is behind, copied from the node group when the machine was made.
	//
	// +optional
	SimulatePods bool `json:"simulatePods,omitempty"`

	// SubnetID is the subnet of the machine. It determines the machine's address range and availability zone.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="subnetID cannot be changed; replace the machine"
	SubnetID SubnetID `json:"subnetID,omitempty"`

	// Labels that the machine's node registers with, copied from the node group when the machine was made.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="labels cannot be changed; replace the machine"
	Labels NodeLabels `json:"labels,omitempty"`

	// Taints that the machine's node registers with, copied from the node group when the machine was made.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="taints cannot be changed; replace the machine"
	Taints NodeTaints `json:"taints,omitempty"`

	// LaunchTemplate that the machine is launched with, copied from the node group when the machine was made.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="launchTemplate cannot be changed; replace the machine"
	LaunchTemplate *NodeGroupLaunchTemplate `json:"launchTemplate,omitempty"`

	// Rollout is the id of the node group's rollout at the time when the machine was made.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="rollout cannot be changed; replace the machine"
	Rollout string `json:"rollout,omitempty"`

	// InstanceProfile is the name of the machine's instance profile. The instance metadata service serves credentials of the profile's role,
	// and the machine joins with them. A machine of a node group without a profile joins with a bootstrap token.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+=,.@-]+$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="instanceProfile cannot be changed; replace the machine"
	InstanceProfile string `json:"instanceProfile,omitempty"`

	// InstanceType is an instance type of EC2, such as m5.large. Empty means that of the launch template.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="instanceType cannot be changed; replace the machine"
	InstanceType string `json:"instanceType,omitempty"`

	// DiskSize is the size of the machine's disk in GiB. 0 means that of the launch template, and 20 if that has none.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16384
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="diskSize cannot be changed; replace the machine"
	DiskSize int32 `json:"diskSize,omitempty"`

	// ImageID is the machine image.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^ami-[0-9a-f]{8,17}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="imageID cannot be changed; replace the machine"
	ImageID string `json:"imageID,omitempty"`

	// SecurityGroupIDs are the security groups of the machine's network interface. Empty means the default group of the VPC, or for a machine
	// of a node group the cluster security group.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^sg-[0-9a-f]{8,17}$`
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`

	// KeyName is the key pair of EC2 whose owner may log in to the machine by SSH, as ec2-user.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="keyName cannot be changed; replace the machine"
	KeyName string `json:"keyName,omitempty"`

	// UserData of a machine of no node group, passed on unchanged. Everyone who can read machines can read it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=21848
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="userData cannot be changed; replace the machine"
	UserData []byte `json:"userData,omitempty"`

	// MetadataOptions configure the instance metadata service. Empty means those of the launch template.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="metadataOptions cannot be changed; replace the machine"
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`

	// MarketType is on-demand or spot, and on-demand if it is empty. A spot instance is launched and charged as any other: nothing. It says so
	// to those who ask, and can be told that it will be interrupted.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="marketType cannot be changed; replace the machine"
	MarketType MarketType `json:"marketType,omitempty"`

	// Reservation identifies the request of RunInstances that made the machine.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="reservation cannot be changed; replace the machine"
	Reservation *Reservation `json:"reservation,omitempty"`

	// PowerState says whether the machine is to run, which is so if it is empty. A stopped machine has no programs and no memory, and keeps its
	// disk, addresses and identity. A node group replaces a stopped machine of its own.
	//
	// +optional
	PowerState PowerState `json:"powerState,omitempty"`

	// WarmPool is set while the machine waits in the warm pool of its node group, to the state in which it waits. It has no Node then, and
	// counts neither as a machine of the group nor in desiredSize. The group's controller clears it when the group takes the machine.
	//
	// +optional
	WarmPool WarmPoolState `json:"warmPool,omitempty"`

	// Reboots is how often the machine was asked to reboot. It is rebooted while status.reboots is another number.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Reboots int64 `json:"reboots,omitempty"`

	// Drill is a trouble that somebody has the machine have for a while.
	//
	// +optional
	Drill *MachineDrill `json:"drill,omitempty"`

	// Tags are the instance's tags in the AWS API, without the tags that AWS sets itself, such as aws:autoscaling:groupName.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`

	// DisableSourceCheck is stored and returned, and has no effect: source addresses are always checked.
	//
	// +optional
	DisableSourceCheck bool `json:"disableSourceCheck,omitempty"`

	// DisableAPITermination prevents termination by EC2's TerminateInstances.
	//
	// +optional
	DisableAPITermination bool `json:"disableAPITermination,omitempty"`

	// ProtectedFromScaleIn prevents termination of the machine when its group scales in.
	//
	// +optional
	ProtectedFromScaleIn bool `json:"protectedFromScaleIn,omitempty"`

	// Fargate is the pod that the machine was made for, on Fargate. Such a machine takes no other pod.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="fargate cannot be changed; replace the machine"
	Fargate *MachineFargate `json:"fargate,omitempty"`

	// ScalingGroup is the AutoScalingGroup that the machine is a member of. A machine of a node group has none.
	//
	// +optional
	ScalingGroup *MachineScalingGroup `json:"scalingGroup,omitempty"`
}

// Rendered reports whether Muster renders the machine's user data: that of a machine of a node group or of Fargate.
func (s MachineSpec) Rendered() bool { return s.NodeGroup != "" || s.Fargate != nil }

// TakesPods reports whether pods are bound to the machine's node, so that they are evicted before it goes.
func (s MachineSpec) TakesPods() bool { return s.Provider.Can(RunPods) || s.SimulatePods }

// MachineStatus is the observed state of a machine.
type MachineStatus struct {
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`

	// Reboots is the number of spec.reboots for which the machine was shut down last.
	// +optional
	Reboots int64 `json:"reboots,omitempty"`

	// Drill is how far the machine's drill is.
	// +optional
	Drill *MachineDrillStatus `json:"drill,omitempty"`

	// StartedAt is the time of the machine's last start after it had been stopped. A machine that was never stopped does not have it.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// NodeName is the name of the machine's Node: its private DNS name. No other machine may register it.
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// Addresses that the provider assigned: one InternalIP and one InternalDNS.
	// +optional
	// +listType=atomic
	Addresses []corev1.NodeAddress `json:"addresses,omitempty"`

	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// Isolation that the machine has from the host. A simulated one has none: it runs no programs.
	// +optional
	Isolation Isolation `json:"isolation,omitempty"`

	// DiskSize is the size of the machine's disk in GiB. It is 0 if the disk is a directory of the host, which has no bound.
	// +optional
	DiskSize int32 `json:"diskSize,omitempty"`

	// PodCIDR is the address range of the machine's pods, which the VPC routes to the machine. A simulated one has none.
	// +optional
	PodCIDR string `json:"podCIDR,omitempty"`

	// Node records the labels and taints that the node group has set on the Node since it registered. If empty, the Node has the labels and
	// taints of the machine's spec.
	// +optional
	Node *MachineNode `json:"node,omitempty"`

	// BootstrapTokenID is the public half of the machine's bootstrap token while the token exists.
	// +optional
	BootstrapTokenID string `json:"bootstrapTokenID,omitempty"`

	// Join lists the steps of the join in order, each with the time at which it was first observed.
	// +optional
	// +listType=map
	// +listMapKey=step
	Join []JoinRecord `json:"join,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MachineNode records the labels and taints that a Node has from its node group, so that a change of the group leaves those of others
// alone. The record is not on the Node itself, because the machine can write to that.
type MachineNode struct {
	// UID of the Node that the record is about. A Node with another UID has the labels and taints that it registered with.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// +optional
	Labels NodeLabels `json:"labels,omitempty"`

	// +optional
	Taints NodeTaints `json:"taints,omitempty"`

	// Next is the change being applied to the Node, which may have taken effect already.
	// +optional
	Next *MachineNodeNext `json:"next,omitempty"`
}

// MachineNodeNext is a change being applied to a Node.
type MachineNodeNext struct {
	// +optional
	Labels NodeLabels `json:"labels,omitempty"`

	// +optional
	Taints NodeTaints `json:"taints,omitempty"`
}

// JoinRecord is one step of a join and its time.
type JoinRecord struct {
	Step JoinStep         `json:"step"`
	Time metav1.MicroTime `json:"time"`
}

// MachineList is a list of machines.
//
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Machine `json:"items"`
}
