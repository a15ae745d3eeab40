// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"fmt"

	"muster.dev/muster/api/v1alpha1"
)

// MaxSizeError refuses a size that a node group may not grow to before somebody raises its maxSize.
type MaxSizeError struct {
	Group         string
	Most, Desired int32
}

func (e *MaxSizeError) Error() string {
	return fmt.Sprintf("node group %s may have %d machines at most (spec.scalingConfig.maxSize), and is to have %d: raise it, too, as `muster scale nodegroup %[1]s %[3]d --max %[3]d` does",
		e.Group, e.Most, e.Desired)
}

// KeepMaxSize gives a node group the maxSize of the one that exists, if nobody asked for another. It returns a
// *MaxSizeError if that is too small.
func (c Config) KeepMaxSize(wanted, exists *v1alpha1.NodeGroup) error {
	if !c.DefaultMax[wanted.Spec.Name] {
		return nil
	}
	size, most := &wanted.Spec.ScalingConfig, exists.Spec.ScalingConfig.MaxSize
	if size.DesiredSize > most {
		return &MaxSizeError{Group: wanted.Spec.Name, Most: most, Desired: size.DesiredSize}
	}
	size.MaxSize = most
	return nil
}
