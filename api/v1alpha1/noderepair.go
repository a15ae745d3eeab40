// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Conditions of a Node for which node auto repair repairs its machine. All but NodeReady are those of EKS's node monitoring agent.
const (
	NodeReady                    = "Ready"
	NodeAcceleratedHardwareReady = "AcceleratedHardwareReady"
	NodeContainerRuntimeReady    = "ContainerRuntimeReady"
	NodeKernelReady              = "KernelReady"
	NodeNetworkingReady          = "NetworkingReady"
	NodeStorageReady             = "StorageReady"
)

// RepairConditions lists the conditions for which node auto repair repairs, sorted.
func RepairConditions() []string {
	return []string{NodeAcceleratedHardwareReady, NodeContainerRuntimeReady, NodeKernelReady, NodeNetworkingReady, NodeReady, NodeStorageReady}
}

// Limits of nodeRepairConfig.
const (
	// MaxRepairOverrides is the largest number of overrides of a node group.
	MaxRepairOverrides = 50
	// MaxUnhealthyReason is the longest nodeUnhealthyReason, in bytes.
	MaxUnhealthyReason = 256
	// MaxRepairWait is the largest minRepairWaitTimeMins, in minutes: a year. EKS documents no maximum.
	MaxRepairWait = 365 * 24 * 60
)

// RepairAction is what node auto repair does about a machine.
//
// +kubebuilder:validation:Enum=Replace;Reboot;NoAction
type RepairAction string

// The actions.
const (
	RepairReplace  RepairAction = "Replace"  // the machine is drained and terminated, and another takes its place
	RepairReboot   RepairAction = "Reboot"   // the machine is drained and rebooted
	RepairNoAction RepairAction = "NoAction" // the condition is left alone, and does not count as unhealthy
)

// NodeRepairConfig is EKS's nodeRepairConfig: whether and how machines are repaired whose Nodes have a bad condition.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnhealthyNodeThresholdCount) || !has(self.maxUnhealthyNodeThresholdPercentage)",message="give maxUnhealthyNodeThresholdCount or maxUnhealthyNodeThresholdPercentage, not both"
// +kubebuilder:validation:XValidation:rule="!has(self.maxParallelNodesRepairedCount) || !has(self.maxParallelNodesRepairedPercentage)",message="give maxParallelNodesRepairedCount or maxParallelNodesRepairedPercentage, not both"
type NodeRepairConfig struct {
	// Enabled switches node auto repair on. It is off if omitted, as on EKS.
	//
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// MaxUnhealthyNodeThresholdCount is the number of unhealthy nodes above which no repair begins. If both thresholds are omitted, no repair
	// begins in a node group of more than five nodes while more than 20 percent of them are unhealthy, as on EKS.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxUnhealthyNodeThresholdCount *int32 `json:"maxUnhealthyNodeThresholdCount,omitempty"`

	// MaxUnhealthyNodeThresholdPercentage is the percentage of the node group's nodes above which no repair begins.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxUnhealthyNodeThresholdPercentage *int32 `json:"maxUnhealthyNodeThresholdPercentage,omitempty"`

	// MaxParallelNodesRepairedCount is the number of machines that are repaired at once. If both are omitted, it is 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxParallelNodesRepairedCount *int32 `json:"maxParallelNodesRepairedCount,omitempty"`

	// MaxParallelNodesRepairedPercentage is the percentage of the unhealthy nodes whose machines are repaired at once, rounded down, but at
	// least one machine.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxParallelNodesRepairedPercentage *int32 `json:"maxParallelNodesRepairedPercentage,omitempty"`

	// Overrides change the wait and the action for single reasons of conditions.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.all(o, self.exists_one(other, other.nodeMonitoringCondition == o.nodeMonitoringCondition && other.nodeUnhealthyReason == o.nodeUnhealthyReason))",message="a condition and reason can have one override"
	Overrides []NodeRepairOverride `json:"nodeRepairConfigOverrides,omitempty"`
}

// NodeRepairOverride changes the wait and the action for one reason of one condition.
type NodeRepairOverride struct {
	// NodeMonitoringCondition is the type of the Node's condition.
	//
	// +kubebuilder:validation:Enum=AcceleratedHardwareReady;ContainerRuntimeReady;KernelReady;NetworkingReady;Ready;StorageReady
	NodeMonitoringCondition string `json:"nodeMonitoringCondition"`

	// NodeUnhealthyReason is the reason of the Node's condition.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	NodeUnhealthyReason string `json:"nodeUnhealthyReason"`

	// MinRepairWaitTimeMins is the time in minutes for which the Node has the condition before its machine is repaired.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=525600
	MinRepairWaitTimeMins int32 `json:"minRepairWaitTimeMins"`

	RepairAction RepairAction `json:"repairAction"`
}

// Repair returns the node group's nodeRepairConfig, or nil if no request has set one.
func (e NodeGroupEKS) Repair() *NodeRepairConfig {
	if e.NodeRepairConfig == nil && e.NodeRepairEnabled != nil {
		return &NodeRepairConfig{Enabled: e.NodeRepairEnabled}
	}
	return e.NodeRepairConfig
}

// Repairs reports whether node auto repair is on.
func (e NodeGroupEKS) Repairs() bool {
	config := e.Repair()
	return config != nil && config.Enabled != nil && *config.Enabled
}

// NodeGroupRepairStatus is what node auto repair has found and does.
type NodeGroupRepairStatus struct {
	// Unhealthy is the number of machines whose Nodes have a condition for which they are repaired.
	// +optional
	Unhealthy int32 `json:"unhealthy"`

	// Machines are the first 20 of these, by name.
	// +optional
	// +listType=map
	// +listMapKey=machine
	Machines []UnhealthyMachine `json:"machines,omitempty"`

	// Rebooting are the machines being drained for a reboot, or rebooting.
	// +optional
	// +listType=map
	// +listMapKey=machine
	Rebooting []RepairReboots `json:"rebooting,omitempty"`

	// HeldReason says in a word why no repair begins that is due: TooManyUnhealthy, ZonalShift, Suspended, Rollout or Busy.
	// +optional
	HeldReason string `json:"heldReason,omitempty"`

	// HeldMessage explains it.
	// +optional
	HeldMessage string `json:"heldMessage,omitempty"`
}

// UnhealthyMachine is a machine whose Node has a condition for which the machine is repaired.
type UnhealthyMachine struct {
	Machine string `json:"machine"`

	// Condition is the type of the Node's condition.
	Condition string `json:"condition"`

	// Reason of the condition.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Since is the time from which on the wait counts.
	Since metav1.Time `json:"since"`

	// Action is taken after Due.
	Action RepairAction `json:"action"`

	// Due is the time after which the machine is repaired.
	Due metav1.Time `json:"due"`
}

// RepairReboots is a machine that is rebooted to repair it.
type RepairReboots struct {
	Machine string `json:"machine"`

	// Reboots is the number of spec.reboots that the machine gets when it is drained.
	Reboots int64 `json:"reboots"`

	// Since is when that began.
	Since metav1.Time `json:"since"`
}

// ValidateNodeRepair returns every rule of EKS that a nodeRepairConfig breaks.
func ValidateNodeRepair(path *field.Path, config *NodeRepairConfig) field.ErrorList {
	if config == nil {
		return nil
	}
	errs := slices.Concat(
		validateOneOf(path, "maxUnhealthyNodeThresholdCount", "maxUnhealthyNodeThresholdPercentage", config.MaxUnhealthyNodeThresholdCount, config.MaxUnhealthyNodeThresholdPercentage),
		validateOneOf(path, "maxParallelNodesRepairedCount", "maxParallelNodesRepairedPercentage", config.MaxParallelNodesRepairedCount, config.MaxParallelNodesRepairedPercentage))
	path = path.Child("nodeRepairConfigOverrides")
	if len(config.Overrides) > MaxRepairOverrides {
		return append(errs, field.TooMany(path, len(config.Overrides), MaxRepairOverrides))
	}
	for i, o := range config.Overrides {
		at := path.Index(i)
		if !slices.Contains(RepairConditions(), o.NodeMonitoringCondition) {
			errs = append(errs, field.NotSupported(at.Child("nodeMonitoringCondition"), o.NodeMonitoringCondition, RepairConditions()))
		}
		switch n := len(o.NodeUnhealthyReason); {
		case n == 0:
			errs = append(errs, field.Required(at.Child("nodeUnhealthyReason"), "an override needs all of its four values"))
		case n > MaxUnhealthyReason:
			errs = append(errs, field.TooLong(at.Child("nodeUnhealthyReason"), "", MaxUnhealthyReason))
		}
		if o.MinRepairWaitTimeMins < 1 || o.MinRepairWaitTimeMins > MaxRepairWait {
			errs = append(errs, field.Invalid(at.Child("minRepairWaitTimeMins"), o.MinRepairWaitTimeMins, fmt.Sprintf("must be from 1 to %d minutes", MaxRepairWait)))
		}
		if actions := []RepairAction{RepairNoAction, RepairReboot, RepairReplace}; !slices.Contains(actions, o.RepairAction) {
			errs = append(errs, field.NotSupported(at.Child("repairAction"), o.RepairAction, actions))
		}
		if slices.ContainsFunc(config.Overrides[:i], func(other NodeRepairOverride) bool {
			return other.NodeMonitoringCondition == o.NodeMonitoringCondition && other.NodeUnhealthyReason == o.NodeUnhealthyReason
		}) {
			errs = append(errs, field.Duplicate(at, o.NodeMonitoringCondition+"/"+o.NodeUnhealthyReason))
		}
	}
	return errs
}

// validateOneOf checks a limit that is a count or a percentage.
func validateOneOf(path *field.Path, countName, percentageName string, count, percentage *int32) (errs field.ErrorList) {
	if count != nil && percentage != nil {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("give %s or %s, not both", countName, percentageName)))
	}
	if count != nil && *count < 1 {
		errs = append(errs, field.Invalid(path.Child(countName), *count, "must be at least 1"))
	}
	if percentage != nil && (*percentage < 1 || *percentage > 100) {
		errs = append(errs, field.Invalid(path.Child(percentageName), *percentage, "must be from 1 to 100"))
	}
	return errs
}
