// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// WarmPoolState is what a machine does while it waits in a warm pool. EC2 has the same names.
//
// +kubebuilder:validation:Enum=Stopped;Running;Hibernated
// +kubebuilder:validation:XValidation:rule="self != 'Hibernated'",message="a local machine cannot hibernate, because its memory is not kept; choose Stopped or Running"
type WarmPoolState string

// The states of machines in a warm pool.
const (
	// WarmStopped has booted once, and is stopped.
	WarmStopped WarmPoolState = "Stopped"
	// WarmRunning runs, without a kubelet.
	WarmRunning WarmPoolState = "Running"
	// WarmHibernated is EC2's third state, which Muster refuses.
	WarmHibernated WarmPoolState = "Hibernated"
)

const noHibernation = "a local machine cannot hibernate, because its memory is not kept; choose Stopped or Running"

// WarmPool is a pool of machines beside a node group. They have booted, run the scripts of their user data and imported images, and
// have not joined the cluster. The group takes machines of the pool before it makes new ones.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minSize) || !has(self.maxGroupPreparedCapacity) || self.minSize <= self.maxGroupPreparedCapacity",message="minSize must be at most maxGroupPreparedCapacity, which counts the machines of the group, too",fieldPath=".minSize"
type WarmPool struct {
	// MinSize is the least number of machines in the pool.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinSize int32 `json:"minSize,omitempty"`

	// MaxGroupPreparedCapacity is the number of machines of pool and group together: the pool has as many as desiredSize leaves of it, and
	// minSize at least. Empty means maxSize of the group.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxGroupPreparedCapacity *int32 `json:"maxGroupPreparedCapacity,omitempty"`

	// PoolState of machines that enter the pool from now on. Empty means Stopped.
	//
	// +optional
	PoolState WarmPoolState `json:"poolState,omitempty"`

	// ReuseOnScaleIn returns machines to the pool when the group scales in. Otherwise they are terminated.
	//
	// +optional
	ReuseOnScaleIn bool `json:"reuseOnScaleIn,omitempty"`
}

// UpdateWarmPool is the warm pool that a node group is to have.
type UpdateWarmPool struct {
	// Pool is empty if the node group is to have none.
	//
	// +optional
	Pool *WarmPool `json:"pool,omitempty"`
}

// State returns the state of machines that enter the pool.
func (p WarmPool) State() WarmPoolState { return cmp.Or(p.PoolState, WarmStopped) }

// WarmPoolSize returns the number of machines that the warm pool of the group is to have: what desiredSize leaves of
// maxGroupPreparedCapacity, or of maxSize without one, and minSize at least. A group without a pool has 0.
func (s NodeGroupSpec) WarmPoolSize() int32 {
	if s.WarmPool == nil {
		return 0
	}
	prepared := s.ScalingConfig.MaxSize
	if s.WarmPool.MaxGroupPreparedCapacity != nil {
		prepared = *s.WarmPool.MaxGroupPreparedCapacity
	}
	return max(prepared-s.ScalingConfig.DesiredSize, s.WarmPool.MinSize, 0)
}

// Lifecycle returns the state of a machine of a warm pool as EC2 Auto Scaling calls it, such as Warmed:Stopped; "" for other machines.
func (m *Machine) Lifecycle() string {
	switch {
	case m.Spec.WarmPool == "":
		return ""
	case !m.DeletionTimestamp.IsZero():
		return "Warmed:Terminating"
	case m.Status.Phase == MachineWarmStopped || m.Status.Phase == MachineWarmRunning:
		return string(m.Status.Phase)
	}
	return string(MachineWarmPending)
}

// validateWarmPool refuses a warm pool that is larger than its group, and what no pool of local machines can be.
func validateWarmPool(path *field.Path, s NodeGroupSpec) field.ErrorList {
	if s.WarmPool == nil {
		return nil
	}
	var errs field.ErrorList
	pool, most := *s.WarmPool, s.ScalingConfig.MaxSize
	tooLarge := fmt.Sprintf("must be at most scalingConfig.maxSize, %d: a warm pool is not larger than its node group. Choose less, or a larger maxSize", most)
	switch {
	case pool.MinSize < 0:
		errs = append(errs, field.Invalid(path.Child("minSize"), pool.MinSize, "must be 0 or more"))
	case pool.MinSize > most:
		errs = append(errs, field.Invalid(path.Child("minSize"), pool.MinSize, tooLarge))
	}
	if prepared := pool.MaxGroupPreparedCapacity; prepared != nil {
		switch {
		case *prepared < 0:
			errs = append(errs, field.Invalid(path.Child("maxGroupPreparedCapacity"), *prepared, "must be 0 or more, or left out"))
		case *prepared > most:
			errs = append(errs, field.Invalid(path.Child("maxGroupPreparedCapacity"), *prepared, tooLarge))
		case pool.MinSize > *prepared:
			errs = append(errs, field.Invalid(path.Child("minSize"), pool.MinSize,
				fmt.Sprintf("must be at most maxGroupPreparedCapacity, %d, which counts the machines of the group, too", *prepared)))
		}
	}
	switch pool.PoolState {
	case "", WarmStopped, WarmRunning:
	case WarmHibernated:
		errs = append(errs, field.Forbidden(path.Child("poolState"), noHibernation))
	default:
		errs = append(errs, field.NotSupported(path.Child("poolState"), pool.PoolState, []WarmPoolState{WarmStopped, WarmRunning}))
	}
	if len(s.InstanceTypes) > 1 {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("a node group with %d instanceTypes has no warm pool, as EC2 Auto Scaling has none for mixed instances; give one type", len(s.InstanceTypes))))
	}
	return errs
}
