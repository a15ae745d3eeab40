// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FinalizerAutoScalingGroup keeps an AutoScalingGroup until no Machine is a member of it.
const FinalizerAutoScalingGroup = "muster.dev/autoscalinggroup"

// AutoScalingGroup is an Auto Scaling group that no node group has: it keeps a number of instances of a launch template, spread over
// availability zones. Instances whose user data names a cluster of the account join it as self-managed nodes. Its name follows from spec.name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=asg,categories=muster
// +kubebuilder:printcolumn:name="Group",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.minSize`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.maxSize`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.desiredCapacity`
// +kubebuilder:printcolumn:name="InService",type=integer,JSONPath=`.status.inService`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AutoScalingGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec AutoScalingGroupSpec `json:"spec"`

	// +optional
	Status AutoScalingGroupStatus `json:"status,omitzero"`
}

// AutoScalingGroupSpec is the desired state of an Auto Scaling group.
//
// +kubebuilder:validation:XValidation:rule="self.minSize <= self.maxSize",message="minSize must be at most maxSize",fieldPath=".minSize"
// +kubebuilder:validation:XValidation:rule="self.minSize <= self.desiredCapacity && self.desiredCapacity <= self.maxSize",message="desiredCapacity must be between minSize and maxSize",fieldPath=".desiredCapacity"
// +kubebuilder:validation:XValidation:rule="has(self.launchTemplate) != has(self.mixedInstancesPolicy)",message="a group has either launchTemplate or mixedInstancesPolicy",fieldPath=".launchTemplate"
type AutoScalingGroupSpec struct {
	// Name of the group. It is unique among the Auto Scaling groups of the account.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name cannot be changed; make another group"
	Name string `json:"name"`

	// MinSize is the lowest capacity of the group. Capacity is counted in instances, or in their weights if the policy of mixed
	// instances has weights.
	//
	// +kubebuilder:validation:Minimum=0
	MinSize int32 `json:"minSize"`

	// MaxSize is the highest capacity of the group, also while instances are replaced.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	MaxSize int32 `json:"maxSize"`

	// DesiredCapacity is the capacity that the group is brought to.
	//
	// +kubebuilder:validation:Minimum=0
	DesiredCapacity int32 `json:"desiredCapacity"`

	// Change is the last change of the sizes, for the causes of activities.
	//
	// +optional
	Change *ScalingChange `json:"change,omitempty"`

	// LaunchTemplate of the instances.
	//
	// +optional
	LaunchTemplate *LaunchTemplateReference `json:"launchTemplate,omitempty"`

	// MixedInstancesPolicy has several instance types.
	//
	// +optional
	MixedInstancesPolicy *MixedInstancesPolicy `json:"mixedInstancesPolicy,omitempty"`

	// SubnetIDs are the subnets of the instances, which are spread over the subnets' availability zones.
	//
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	SubnetIDs []SubnetID `json:"subnetIDs"`

	// HealthCheckType is stored and returned: EC2, or ELB, which is the same for a group without load balancers.
	//
	// +optional
	// +kubebuilder:validation:Enum=EC2;ELB
	HealthCheckType string `json:"healthCheckType,omitempty"`

	// HealthCheckGracePeriod is the time in seconds after the launch in which SetInstanceHealth leaves an instance alone, if asked to.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	HealthCheckGracePeriod int32 `json:"healthCheckGracePeriod,omitempty"`

	// DefaultCooldown in seconds is stored and returned: nothing scales the group by itself.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	DefaultCooldown *int32 `json:"defaultCooldown,omitempty"`

	// DefaultInstanceWarmup in seconds is the time until an instance refresh counts an instance in service as healthy.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	DefaultInstanceWarmup *int32 `json:"defaultInstanceWarmup,omitempty"`

	// TerminationPolicies choose the instances that go when the group shrinks, within the availability zone with the most instances. Empty means Default.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Enum=Default;AllocationStrategy;OldestInstance;NewestInstance;OldestLaunchTemplate;OldestLaunchConfiguration;ClosestToNextInstanceHour
	TerminationPolicies []string `json:"terminationPolicies,omitempty"`

	// CapacityRebalance is stored and returned: it is about spot instances, which nobody takes away here.
	//
	// +optional
	CapacityRebalance bool `json:"capacityRebalance,omitempty"`

	// ServiceLinkedRoleARN is stored and returned.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1600
	ServiceLinkedRoleARN string `json:"serviceLinkedRoleARN,omitempty"`

	// AutoScaling holds the settings that node groups' groups have, too.
	//
	// +optional
	AutoScaling AutoScaling `json:"autoScaling,omitzero"`

	// Hooks are the lifecycle hooks of the group.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	Hooks []LifecycleHook `json:"hooks,omitempty"`

	// Refresh is the last instance refresh that was asked for.
	//
	// +optional
	Refresh *InstanceRefresh `json:"refresh,omitempty"`

	// Wishes are what was asked of single instances. The write that adds a wish also changes the desired capacity, if it is to change.
	//
	// +optional
	// +listType=map
	// +listMapKey=instanceID
	// +kubebuilder:validation:MaxItems=1000
	Wishes []InstanceWish `json:"wishes,omitempty"`
}

// ScalingChange is a change of a group's sizes.
type ScalingChange struct {
	// ID tells changes apart.
	//
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`

	// Cause of the change, in the words of Auto Scaling.
	//
	// +kubebuilder:validation:MaxLength=1023
	Cause string `json:"cause"`
}

// LaunchTemplateReference is a launch template and one of its versions.
type LaunchTemplateReference struct {
	// ID of the LaunchTemplate, such as lt-0123456789abcdef0.
	//
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`

	// Name of the launch template.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// Version is a number, $Latest or $Default. $Latest and $Default are resolved at each launch.
	//
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]*|\$Latest|\$Default)$`
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`
}

// MixedInstancesPolicy has the instance types of a group.
type MixedInstancesPolicy struct {
	LaunchTemplate LaunchTemplateReference `json:"launchTemplate"`

	// Overrides of the launch template, by priority: the first that can be launched is.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=40
	Overrides []LaunchTemplateOverride `json:"overrides,omitempty"`

	// +optional
	Distribution InstancesDistribution `json:"distribution,omitzero"`
}

// LaunchTemplateOverride is an instance type of a policy of mixed instances.
type LaunchTemplateOverride struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	InstanceType string `json:"instanceType"`

	// WeightedCapacity is what an instance of the type counts; 1 if it is 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999
	WeightedCapacity int32 `json:"weightedCapacity,omitempty"`

	// LaunchTemplate of the type, if it is another one.
	//
	// +optional
	LaunchTemplate *LaunchTemplateReference `json:"launchTemplate,omitempty"`
}

// InstancesDistribution says which instances are spot ones. Spot instances are a record: they are launched and kept as others are.
type InstancesDistribution struct {
	// +optional
	// +kubebuilder:validation:MaxLength=63
	OnDemandAllocationStrategy string `json:"onDemandAllocationStrategy,omitempty"`

	// +optional
	// +kubebuilder:validation:Minimum=0
	OnDemandBaseCapacity int32 `json:"onDemandBaseCapacity,omitempty"`

	// OnDemandPercentageAboveBaseCapacity is 100 if it is not set.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	OnDemandPercentageAboveBaseCapacity *int32 `json:"onDemandPercentageAboveBaseCapacity,omitempty"`

	// +optional
	// +kubebuilder:validation:MaxLength=63
	SpotAllocationStrategy string `json:"spotAllocationStrategy,omitempty"`

	// +optional
	// +kubebuilder:validation:Minimum=0
	SpotInstancePools int32 `json:"spotInstancePools,omitempty"`

	// +optional
	// +kubebuilder:validation:MaxLength=63
	SpotMaxPrice string `json:"spotMaxPrice,omitempty"`
}

// LifecycleHook holds an instance back at its launch or its termination until somebody completes the action, or time is up.
type LifecycleHook struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`

	Transition LifecycleTransition `json:"transition"`

	// HeartbeatTimeout in seconds is the time until the action is completed with the default result, since its beginning or its last heartbeat.
	//
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=7200
	HeartbeatTimeout int32 `json:"heartbeatTimeout"`

	DefaultResult LifecycleResult `json:"defaultResult"`

	// +optional
	// +kubebuilder:validation:MaxLength=4000
	NotificationMetadata string `json:"notificationMetadata,omitempty"`
}

// LifecycleTransition is when a hook holds an instance back.
//
// +kubebuilder:validation:Enum="autoscaling:EC2_INSTANCE_LAUNCHING";"autoscaling:EC2_INSTANCE_TERMINATING"
type LifecycleTransition string

// The transitions of lifecycle hooks.
const (
	TransitionLaunching   LifecycleTransition = "autoscaling:EC2_INSTANCE_LAUNCHING"
	TransitionTerminating LifecycleTransition = "autoscaling:EC2_INSTANCE_TERMINATING"
)

// LifecycleResult is how a lifecycle action ends.
//
// +kubebuilder:validation:Enum=CONTINUE;ABANDON
type LifecycleResult string

// The results of lifecycle actions.
const (
	LifecycleContinue LifecycleResult = "CONTINUE"
	LifecycleAbandon  LifecycleResult = "ABANDON"
)

// Wish is what was asked of an instance of a group.
//
// +kubebuilder:validation:Enum=Terminated;Standby;Detached;Attached;Unhealthy
type Wish string

// The wishes.
const (
	WishTerminated Wish = "Terminated"
	WishStandby    Wish = "Standby"
	WishDetached   Wish = "Detached"
	WishAttached   Wish = "Attached"
	WishUnhealthy  Wish = "Unhealthy"
)

// InstanceWish is what was asked of an instance.
type InstanceWish struct {
	// +kubebuilder:validation:Pattern=`^i-[0-9a-f]{17}$`
	InstanceID string `json:"instanceID"`

	Wish Wish `json:"wish"`

	// Cause of the activity, in the words of Auto Scaling.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1023
	Cause string `json:"cause,omitempty"`
}

// MachineScalingGroup is the AutoScalingGroup that a Machine is a member of.
type MachineScalingGroup struct {
	// Name is the group's spec.name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`

	// UID of the group, which distinguishes it from an earlier one of the same name.
	UID types.UID `json:"uid"`
}

// AutoScalingGroupSlug returns the name that an AutoScalingGroup has in the management plane, from spec.name.
func AutoScalingGroupSlug(name string) string { return NodeGroupSlug(name) }

// SpecName returns the name that people gave the group.
func (g *AutoScalingGroup) SpecName() string { return g.Spec.Name }

// AutoScalingGroupList is a list of Auto Scaling groups.
//
// +kubebuilder:object:root=true
type AutoScalingGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []AutoScalingGroup `json:"items"`
}
