// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// FargateScheduler is the spec.schedulerName of pods that have a machine each, as on EKS.
	FargateScheduler = "fargate-scheduler"
	// LabelFargateProfile on a pod is the name of the profile that selects it, as on EKS.
	LabelFargateProfile = "eks.amazonaws.com/fargate-profile"
	// LabelComputeType is the key of a label and of a taint of nodes of Fargate, whose value is fargate, as on EKS.
	LabelComputeType = "eks.amazonaws.com/compute-type"
	// AnnotationCapacityProvisioned on a pod is the size of its machine, such as "0.25vCPU 0.5GB", as on EKS.
	AnnotationCapacityProvisioned = "CapacityProvisioned"
	// AnnotationLogging on a pod says whether its machine sends its logs, and if not, why, as on EKS.
	AnnotationLogging = "Logging"
	// FargateNodePrefix begins the private DNS name of a machine of Fargate, and so the name of its Node, as on EKS.
	FargateNodePrefix = "fargate-"
	// ReasonPodExecutionRole is the reason of the condition Ready of a profile whose role cannot be used, by EKS's code of the
	// issue.
	ReasonPodExecutionRole = "AccessDenied"
	// ReasonPodExecutionRoleInUse is the reason of one whose role the cluster lets other machines in by.
	ReasonPodExecutionRoleInUse = "PodExecutionRoleAlreadyInUse"
	// FinalizerFargateProfile keeps a FargateProfile until its pods and their Machines are gone.
	FinalizerFargateProfile = "muster.dev/fargateprofile"

	// MaxFargateProfileName is the maximum number of characters of a Fargate profile's spec.name.
	MaxFargateProfileName = 63
	// MaxFargateSelectors is EKS's limit of the selectors of a Fargate profile, and of the labels of a selector.
	MaxFargateSelectors = 5
	// MaxFargateProfiles is EKS's limit of the Fargate profiles of a cluster.
	MaxFargateProfiles = 10
)

// FargateProfile gives each pod that one of its selectors selects a machine of its own. It is in the namespace of its cluster. Its
// metadata.name follows from spec.name as that of a NodeGroup does. Except for its tags it cannot be changed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=fp,categories=muster
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.podExecutionRoleARN`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FargateProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec FargateProfileSpec `json:"spec"`

	// +optional
	Status FargateProfileStatus `json:"status,omitzero"`
}

// FargateProfileSpec names pods, and the role and the subnets of their machines.
//
// +kubebuilder:validation:XValidation:rule="has(self.subnetIDs) == has(oldSelf.subnetIDs)",message="subnetIDs cannot be changed; make a new profile",fieldPath=".subnetIDs"
type FargateProfileSpec struct {
	// Name in the EKS API.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z]([-0-9A-Za-z_]*[0-9A-Za-z])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name cannot be changed; make a new profile"
	Name string `json:"name"`

	// ClusterName is the spec.name of the cluster.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterName cannot be changed; make a new profile"
	ClusterName string `json:"clusterName"`

	// PodExecutionRoleARN is the role of the machines: the kubelet joins and pulls images with it, and pods do not get it. Its trust policy
	// must allow eks-fargate-pods.amazonaws.com to assume it.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:aws[a-z-]*:iam::[0-9]{12}:role/([!-~]+/)?[A-Za-z0-9_+=,.@-]{1,64}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="podExecutionRoleARN cannot be changed; make a new profile"
	PodExecutionRoleARN string `json:"podExecutionRoleARN"`

	// SubnetIDs are the private subnets that machines may be in. Empty means those of the cluster.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="subnetIDs cannot be changed; make a new profile"
	SubnetIDs []SubnetID `json:"subnetIDs,omitempty"`

	// Selectors select pods. A pod has a machine of its own if one of them selects it.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="selectors cannot be changed; make a new profile"
	Selectors []FargateSelector `json:"selectors"`

	// Tags are the profile's tags in the AWS API.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// FargateSelector selects pods by their namespace and labels. In every pattern, * stands for any number of characters and ? for one.
type FargateSelector struct {
	// Namespace is a pattern of namespaces.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9*?]([-a-z0-9*?]*[a-z0-9*?])?$`
	Namespace string `json:"namespace"`

	// Labels are patterns of the values of labels, by key. All must match.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=5
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue())",message="a label's key is a name of at most 63 letters, digits, -, _ and ., after an optional DNS name and /"
	Labels map[string]FargateLabel `json:"labels,omitempty"`
}

// FargateLabel is a pattern of the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[-A-Za-z0-9_.*?]*$`
type FargateLabel string

// FargateProfileStatus is the observed state of a profile.
type FargateProfileStatus struct {
	// InstanceProfile gives machines the pod execution role. It is there once the role can be used.
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SpecName returns the name that people gave the profile.
func (p *FargateProfile) SpecName() string { return p.Spec.Name }

// FargateProfileList is a list of profiles.
//
// +kubebuilder:object:root=true
type FargateProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []FargateProfile `json:"items"`
}

// MachineFargate is the pod that a machine was made for. The machine is deleted when the pod is gone.
type MachineFargate struct {
	// Profile is the spec.name of the FargateProfile that selected the pod.
	//
	// +kubebuilder:validation:MaxLength=63
	Profile string `json:"profile"`

	// ProfileUID is the UID of the FargateProfile.
	ProfileUID types.UID `json:"profileUID"`

	// PodNamespace is the namespace of the pod.
	//
	// +kubebuilder:validation:MaxLength=63
	PodNamespace string `json:"podNamespace"`

	// PodName is the name of the pod.
	//
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName"`

	// PodUID is the UID of the pod.
	PodUID types.UID `json:"podUID"`

	// MilliCPU is the size of the machine in thousandths of a vCPU.
	//
	// +kubebuilder:validation:Minimum=250
	// +kubebuilder:validation:Maximum=16000
	MilliCPU int64 `json:"milliCPU"`

	// MemoryMiB is the size of the machine in MiB of memory, 256 of which are for the kubelet.
	//
	// +kubebuilder:validation:Minimum=512
	// +kubebuilder:validation:Maximum=122880
	MemoryMiB int64 `json:"memoryMiB"`

	// Logging is where the logs of the pod go, as the ConfigMap aws-logging of the cluster said when the machine was made.
	//
	// +optional
	Logging *FargateLogging `json:"logging,omitempty"`
}

// FargateLogging is the configuration of a machine's log router. Without an output the machine has none.
type FargateLogging struct {
	// Disabled is why there is none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Disabled string `json:"disabled,omitempty"`

	// Output is the value of the ConfigMap's key output.conf.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=5300
	Output string `json:"output,omitempty"`

	// Filters is the value of the ConfigMap's key filters.conf.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=5300
	Filters string `json:"filters,omitempty"`

	// Parsers is the value of the ConfigMap's key parsers.conf.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=5300
	Parsers string `json:"parsers,omitempty"`
}
