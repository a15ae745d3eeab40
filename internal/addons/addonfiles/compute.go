// SPDX-License-Identifier: Apache-2.0

package addonfiles

import (
	"errors"
	"fmt"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/karpenter"
)

// CheckCompute refuses a cluster whose control plane is to run Karpenter where that cannot be: its program is not among
// Muster's programs, or machines are simulated alone.
func CheckCompute(wanted v1alpha1.ClusterSpec, binDir string, localMachines bool) error {
	if !wanted.Compute.On() {
		return nil
	}
	if !localMachines {
		return errors.New("spec.compute: Karpenter launches local machines, which need root: run Muster as root, or leave spec.compute out")
	}
	if missing := KarpenterUnbuilt(binDir); missing != "" {
		return fmt.Errorf("spec.compute: %s", missing)
	}
	return nil
}

// CheckComputeAlone refuses Karpenter in the control plane of a cluster that has Karpenter as an add-on: each of them
// would end the machines of the other.
func CheckComputeAlone(wanted v1alpha1.ClusterSpec, addons []v1alpha1.Addon) error {
	if !wanted.Compute.On() || !slices.ContainsFunc(addons, func(a v1alpha1.Addon) bool { return a.Spec.AddonName == karpenter.Name }) {
		return nil
	}
	return fmt.Errorf("spec.compute: cluster %s has the add-on %s, and a cluster has one Karpenter: delete the NodePools and then the add-on first (docs/karpenter.md)", wanted.Name, karpenter.Name)
}
