// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoScalingGroupStatus is the observed state of an Auto Scaling group, and what its controller has begun. An instance is in it before
// its Machine is made, so that a controller that is killed in between makes the same Machine again, and no other.
type AutoScalingGroupStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// InService is how many instances are in service.
	//
	// +optional
	InService int32 `json:"inService,omitempty"`

	// Instances of the group.
	//
	// +optional
	// +listType=map
	// +listMapKey=id
	Instances []ScalingInstance `json:"instances,omitempty"`

	// Activities that do not follow from Machines, the newest last.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Activities []ScalingActivity `json:"activities,omitempty"`

	// Failures are subnets and instance types in which the last launch failed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Failures []LaunchFailure `json:"failures,omitempty"`

	// Settled is the id of the last change of sizes after which the group had its desired capacity.
	//
	// +optional
	Settled string `json:"settled,omitempty"`

	// Refreshes are instance refreshes, the newest last.
	//
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=20
	Refreshes []RefreshStatus `json:"refreshes,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LifecycleState is the state of an instance in its group.
type LifecycleState string

// The states of instances.
const (
	LifecyclePending         LifecycleState = "Pending"
	LifecyclePendingWait     LifecycleState = "Pending:Wait"
	LifecycleInService       LifecycleState = "InService"
	LifecycleStandby         LifecycleState = "Standby"
	LifecycleTerminatingWait LifecycleState = "Terminating:Wait"
	LifecycleTerminating     LifecycleState = "Terminating"
)

// ScalingInstance is an instance of a group.
type ScalingInstance struct {
	// ID is the instance id, and the name of the Machine.
	ID string `json:"id"`

	State LifecycleState `json:"state"`

	// Since is when the state began.
	Since metav1.Time `json:"since"`

	// Launched is when the instance was asked for.
	Launched metav1.Time `json:"launched"`

	// Requested is true until the Machine was seen.
	//
	// +optional
	Requested bool `json:"requested,omitempty"`

	SubnetID SubnetID `json:"subnetID"`

	// +optional
	InstanceType string `json:"instanceType,omitempty"`

	// Weight is what the instance counts.
	Weight int32 `json:"weight"`

	// LaunchTemplate that the instance was launched with, with a number as its version.
	//
	// +optional
	LaunchTemplate *LaunchTemplateReference `json:"launchTemplate,omitempty"`

	// Spot marks an instance that counts as a spot one.
	//
	// +optional
	Spot bool `json:"spot,omitempty"`

	// Spare marks an instance that was launched before another one goes.
	//
	// +optional
	Spare bool `json:"spare,omitempty"`

	// Named is the instance type that the group's policy names; empty for that of the launch template.
	//
	// +optional
	Named string `json:"named,omitempty"`

	// Cause of the launch, or of the termination if the instance is ending, in the words of Auto Scaling.
	//
	// +optional
	Cause string `json:"cause,omitempty"`

	// Refresh is the id of the instance refresh that launched the instance.
	//
	// +optional
	Refresh string `json:"refresh,omitempty"`

	// Ending reports whether the instance's end is decided.
	//
	// +optional
	Ending bool `json:"ending,omitempty"`

	// Actions of lifecycle hooks that hold the instance back.
	//
	// +optional
	// +listType=map
	// +listMapKey=hook
	Actions []LifecycleAction `json:"actions,omitempty"`
}

// LifecycleAction is a hook's holding back of one instance.
type LifecycleAction struct {
	// Hook is the name of the lifecycle hook.
	Hook string `json:"hook"`

	// Token is the lifecycle action token, a UUID.
	Token string `json:"token"`

	// Deadline is when the action ends with the default result. A heartbeat moves it.
	Deadline metav1.Time `json:"deadline"`

	// Last is when the action ends whatever heartbeats come: after 48 hours, or 100 times the hook's timeout.
	Last metav1.Time `json:"last"`

	DefaultResult LifecycleResult `json:"defaultResult"`

	// Result of the action; empty until it is completed.
	//
	// +optional
	Result LifecycleResult `json:"result,omitempty"`
}

// ScalingActivity is an activity of a group.
type ScalingActivity struct {
	ID          string      `json:"id"`
	Description string      `json:"description"`
	Cause       string      `json:"cause"`
	StatusCode  string      `json:"statusCode"`
	StartTime   metav1.Time `json:"startTime"`

	// +optional
	StatusMessage string `json:"statusMessage,omitempty"`

	// +optional
	SubnetID SubnetID `json:"subnetID,omitempty"`
}

// LaunchFailure is a subnet and an instance type in which a launch failed.
type LaunchFailure struct {
	SubnetID SubnetID `json:"subnetID"`

	// +optional
	InstanceType string `json:"instanceType,omitempty"`

	// Until is when the next launch is tried there.
	Until metav1.Time `json:"until"`

	// Count of failures, one after the other.
	Count int32 `json:"count"`
}

// InstanceRefresh is an instance refresh as it was asked for.
type InstanceRefresh struct {
	// ID is a UUID.
	//
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`

	StartTime metav1.Time `json:"startTime"`

	// +optional
	Preferences RefreshPreferences `json:"preferences,omitzero"`

	// LaunchTemplate that the group gets when the refresh has succeeded, if it is to have another one.
	//
	// +optional
	LaunchTemplate *LaunchTemplateReference `json:"launchTemplate,omitempty"`

	// MixedInstancesPolicy that the group gets when the refresh has succeeded, if it is to have another one.
	//
	// +optional
	MixedInstancesPolicy *MixedInstancesPolicy `json:"mixedInstancesPolicy,omitempty"`

	// Ended asks for the refresh to end: Cancelled, or RolledBack, after which the instances are those of the group's own template again.
	//
	// +optional
	// +kubebuilder:validation:Enum=Cancelled;RolledBack
	Ended RefreshEnd `json:"ended,omitempty"`
}

// RefreshEnd says how a refresh is to end.
type RefreshEnd string

// The ends of refreshes.
const (
	RefreshCancelled  RefreshEnd = "Cancelled"
	RefreshRolledBack RefreshEnd = "RolledBack"
)

// RefreshPreferences are how a refresh goes on.
type RefreshPreferences struct {
	// MinHealthyPercentage of the desired capacity that stays in service. 90 if it is not set.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MinHealthyPercentage *int32 `json:"minHealthyPercentage,omitempty"`

	// MaxHealthyPercentage of the desired capacity that the group may have; 100 if it is not set. The group's maximum holds all the same.
	//
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=200
	MaxHealthyPercentage *int32 `json:"maxHealthyPercentage,omitempty"`

	// InstanceWarmup in seconds; the group's if it is not set.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	InstanceWarmup *int32 `json:"instanceWarmup,omitempty"`

	// SkipMatching leaves instances alone that are of the wanted launch template.
	//
	// +optional
	SkipMatching bool `json:"skipMatching,omitempty"`

	// AutoRollback goes back by itself if the refresh fails.
	//
	// +optional
	AutoRollback bool `json:"autoRollback,omitempty"`

	// ScaleInProtectedInstances are replaced (Refresh), left alone (Ignore), or waited for (Wait, the default).
	//
	// +optional
	// +kubebuilder:validation:Enum=Refresh;Ignore;Wait
	ScaleInProtectedInstances string `json:"scaleInProtectedInstances,omitempty"`
}

// RefreshState is the state of an instance refresh.
type RefreshState string

// The states of instance refreshes.
const (
	RefreshPending            RefreshState = "Pending"
	RefreshInProgress         RefreshState = "InProgress"
	RefreshSuccessful         RefreshState = "Successful"
	RefreshFailed             RefreshState = "Failed"
	RefreshCancelledState     RefreshState = "Cancelled"
	RefreshRollbackInProgress RefreshState = "RollbackInProgress"
	RefreshRollbackSuccessful RefreshState = "RollbackSuccessful"
	RefreshRollbackFailed     RefreshState = "RollbackFailed"
)

// Runs reports whether a refresh in the state goes on.
func (s RefreshState) Runs() bool {
	return s == RefreshPending || s == RefreshInProgress || s == RefreshRollbackInProgress
}

// RefreshStatus is an instance refresh as it goes on, or as it ended.
type RefreshStatus struct {
	ID     string       `json:"id"`
	Status RefreshState `json:"status"`

	// +optional
	Reason string `json:"reason,omitempty"`

	StartTime metav1.Time `json:"startTime"`

	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// Total is how many instances were to be replaced when it began, or when it began to go back.
	Total int32 `json:"total"`

	// Left is how many of these are still to be replaced.
	Left int32 `json:"left"`

	// Asked is what was asked for.
	Asked InstanceRefresh `json:"asked"`
}
