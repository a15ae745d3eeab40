// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of EKS, and for a disk the largest volume of EC2.
const (
	// MaxUnavailable is the largest maxUnavailable, in machines and in percent.
	MaxUnavailable = 100
	// MinDisk and MaxDisk are the sizes that the AWS APIs take for a machine's disk, in GiB: what a node needs at least, and EKS's limit. A
	// disk that an object asks less for has MinDisk.
	MinDisk = 4
	MaxDisk = 16384
)

// NodeGroupEKS holds settings that the EKS API stores and returns.
type NodeGroupEKS struct {
	// UpdateConfig says how a rollout replaces machines.
	//
	// +optional
	UpdateConfig NodeGroupUpdateConfig `json:"updateConfig,omitzero"`

	// NodeRepairConfig says whether and how machines are repaired whose Nodes have a bad condition.
	//
	// +optional
	NodeRepairConfig *NodeRepairConfig `json:"nodeRepairConfig,omitempty"`

	// NodeRepairEnabled is false in a node group of an earlier version for which nodeRepairConfig.enabled was requested to be false. It counts if
	// nodeRepairConfig is omitted.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self",message="set nodeRepairConfig.enabled instead"
	NodeRepairEnabled *bool `json:"nodeRepairEnabled,omitempty"`

	// DiskSize is the size of the disk of new machines in GiB, 20 if it is 0. A launch template has a size of its own.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16384
	DiskSize int32 `json:"diskSize,omitempty"`

	// RemoteAccess is the requested access by SSH: machines have the key pair. Their security groups say who reaches them.
	//
	// +optional
	RemoteAccess *NodeGroupRemoteAccess `json:"remoteAccess,omitempty"`
}

// UpdateStrategy is the strategy of a rollout in the EKS API.
//
// +kubebuilder:validation:Enum=DEFAULT;MINIMAL
type UpdateStrategy string

// The strategies.
const (
	// StrategyDefault makes additional machines before it drains any: two for each availability zone, or as many as may be unavailable if that
	// is more, but never more than there are machines to replace.
	StrategyDefault UpdateStrategy = "DEFAULT"
	// StrategyMinimal makes a machine when the one in whose place it comes is gone.
	StrategyMinimal UpdateStrategy = "MINIMAL"
)

// NodeGroupUpdateConfig is a maximum of unavailable machines, in machines or in percent of desiredSize, rounded down. If both are omitted, it is
// one machine, as on EKS.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || !has(self.maxUnavailablePercentage)",message="give maxUnavailable or maxUnavailablePercentage, not both"
type NodeGroupUpdateConfig struct {
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxUnavailable int32 `json:"maxUnavailable,omitempty"`

	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxUnavailablePercentage int32 `json:"maxUnavailablePercentage,omitempty"`

	// UpdateStrategy is DEFAULT if empty.
	//
	// +optional
	UpdateStrategy UpdateStrategy `json:"updateStrategy,omitempty"`
}

// NodeGroupRemoteAccess names a key pair of EC2, and the security groups of the hosts that may log in.
type NodeGroupRemoteAccess struct {
	// +optional
	// +kubebuilder:validation:MaxLength=255
	EC2SSHKey string `json:"ec2SSHKey,omitempty"`

	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Pattern=`^sg-[0-9a-f]{8,17}$`
	SourceSecurityGroups []string `json:"sourceSecurityGroups,omitempty"`
}

func validateNodeGroupEKS(path *field.Path, eks NodeGroupEKS) field.ErrorList {
	var errs field.ErrorList
	update := path.Child("updateConfig")
	for _, limited := range []struct {
		path *field.Path
		is   int32
		most int32
	}{
		{update.Child("maxUnavailable"), eks.UpdateConfig.MaxUnavailable, MaxUnavailable},
		{update.Child("maxUnavailablePercentage"), eks.UpdateConfig.MaxUnavailablePercentage, MaxUnavailable},
		{path.Child("diskSize"), eks.DiskSize, MaxDisk},
	} {
		if limited.is < 0 || limited.is > limited.most {
			errs = append(errs, field.Invalid(limited.path, limited.is, fmt.Sprintf("must be from 1 to %d, or left out", limited.most)))
		}
	}
	if eks.UpdateConfig.MaxUnavailable != 0 && eks.UpdateConfig.MaxUnavailablePercentage != 0 {
		errs = append(errs, field.Forbidden(update, "give maxUnavailable or maxUnavailablePercentage, not both"))
	}
	if kinds := []UpdateStrategy{StrategyDefault, StrategyMinimal}; eks.UpdateConfig.UpdateStrategy != "" && !slices.Contains(kinds, eks.UpdateConfig.UpdateStrategy) {
		errs = append(errs, field.NotSupported(update.Child("updateStrategy"), eks.UpdateConfig.UpdateStrategy, kinds))
	}
	if eks.NodeRepairEnabled != nil && *eks.NodeRepairEnabled {
		errs = append(errs, field.Forbidden(path.Child("nodeRepairEnabled"), "set nodeRepairConfig.enabled instead"))
	}
	return append(errs, ValidateNodeRepair(path.Child("nodeRepairConfig"), eks.NodeRepairConfig)...)
}
