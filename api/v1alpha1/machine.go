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
	// BootstrapGroupPrefix followed by a Machine's name is the extra group of that machine's bootstrap token. The API server
	// writes it into every CSR made with the token, so it binds the CSR to the machine.
	BootstrapGroupPrefix = "system:bootstrappers:muster:"
)

// MachinePhase is the stage of a machine's life.
type MachinePhase string

// The phases of a machine, in the order it passes through them.
const (
	MachinePending     MachinePhase = "Pending"     // nothing runs yet
	MachineJoining     MachinePhase = "Joining"     // it runs; its Node is not Ready yet
	MachineReady       MachinePhase = "Ready"       // its Node is Ready
	MachineNotReady    MachinePhase = "NotReady"    // its Node was Ready and is not any more
	MachineTerminating MachinePhase = "Terminating" // it is being deleted
)

// JoinStep is a step on a machine's way into the cluster.
type JoinStep string

// The steps of a join, in order.
const (
	StepLaunched           JoinStep = "Launched"
	StepAPIReached         JoinStep = "APIReached"
	StepClientCSRCreated   JoinStep = "ClientCSRCreated"
	StepClientCSRApproved  JoinStep = "ClientCSRApproved"
	StepClientCSRIssued    JoinStep = "ClientCSRIssued"
	StepNodeRegistered     JoinStep = "NodeRegistered"
	StepServingCSRCreated  JoinStep = "ServingCSRCreated"
	StepServingCSRApproved JoinStep = "ServingCSRApproved"
	StepServingCSRIssued   JoinStep = "ServingCSRIssued"
	StepReady              JoinStep = "Ready"
)

// JoinSteps lists every step of a join, in order.
func JoinSteps() []JoinStep {
	return []JoinStep{
		StepLaunched, StepAPIReached,
		StepClientCSRCreated, StepClientCSRApproved, StepClientCSRIssued,
		StepNodeRegistered,
		StepServingCSRCreated, StepServingCSRApproved, StepServingCSRIssued,
		StepReady,
	}
}

// Machine is one instance that a provider runs, and its progress to being a node. Its name is the instance id.
// Only the service writes its status: the certificate controller decides by the names and addresses in it.
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

// MachineSpec is fixed when the machine is made.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a machine cannot be changed; delete it, and its group replaces it"
type MachineSpec struct {
	// ClusterName is the spec.name of the Cluster that the machine joins.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z_-]*$`
	ClusterName string `json:"clusterName"`

	// NodeGroup is the spec.name of the machine's NodeGroup.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z_-]*$`
	NodeGroup string `json:"nodeGroup"`

	// NodeGroupUID tells a node group from an earlier one of the same name. It stands in for an owner reference, which an object without a
	// namespace cannot have to one in a namespace. A machine without it belongs to the group that has the name.
	//
	// +optional
	NodeGroupUID types.UID `json:"nodeGroupUID,omitempty"`

	Provider Provider `json:"provider"`

	// SubnetID is the subnet that it was launched in: its address and its availability zone are of it.
	//
	// +optional
	SubnetID SubnetID `json:"subnetID,omitempty"`

	// Labels its node registers with, copied from the group when the machine was made.
	//
	// +optional
	Labels NodeLabels `json:"labels,omitempty"`

	// Taints that the machine's node registers with, copied from the group when the machine was made.
	//
	// +optional
	Taints NodeTaints `json:"taints,omitempty"`

	// LaunchTemplate that the machine was launched by, copied from the group when the machine was made.
	//
	// +optional
	LaunchTemplate *LaunchTemplate `json:"launchTemplate,omitempty"`

	// InstanceProfile of the machine. Instance metadata serves credentials of the profile's role, and the machine joins by them. A machine
	// without a profile joins by a bootstrap token.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+=,.@-]+$`
	InstanceProfile string `json:"instanceProfile,omitempty"`
}

// MachineStatus holds what the provider assigned and what the service observed.
type MachineStatus struct {
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`

	// NodeName is the name of the Node that this machine, and no other, may register: its private DNS name.
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// Addresses that the provider assigned: one InternalIP and one InternalDNS.
	// +optional
	// +listType=atomic
	Addresses []corev1.NodeAddress `json:"addresses,omitempty"`

	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// PodCIDR is the range of addresses of the machine's pods. The VPC routes it to the machine.
	// +optional
	PodCIDR string `json:"podCIDR,omitempty"`

	// BootstrapTokenID is the public half of the machine's bootstrap token while the token exists.
	// +optional
	BootstrapTokenID string `json:"bootstrapTokenID,omitempty"`

	// Join holds the steps of the machine's join, each with the time at which it was first seen, in the order of JoinSteps.
	// +optional
	// +listType=map
	// +listMapKey=step
	Join []JoinRecord `json:"join,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
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
