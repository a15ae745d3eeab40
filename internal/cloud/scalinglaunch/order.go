// SPDX-License-Identifier: Apache-2.0

// Package scalinglaunch is what Auto Scaling asks of EC2: to launch one instance of a group, of a launch template. EC2's
// package of instances carries it out by the rules of RunInstances, and the assembly of the AWS APIs puts the two together.
package scalinglaunch

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
)

// Order is one instance that a group wants.
type Order struct {
	// ID of the instance. An order that is given twice makes one Machine.
	ID string
	// Template and version; the version is a number, $Latest or $Default.
	Template v1alpha1.LaunchTemplateReference
	// InstanceType instead of the template's; empty for that.
	InstanceType string
	SubnetID     string
	Group        v1alpha1.MachineScalingGroup
	// Tags beside the template's, over which they go.
	Tags      v1alpha1.Tags
	Protected bool
	Spot      bool
	Cause     string
}

// Resolved is what an order stands for.
type Resolved struct {
	// Template with the number of its version.
	Template     v1alpha1.LaunchTemplateReference
	InstanceType string
	ImageID      string
}

// Launcher launches instances.
type Launcher interface {
	// Resolve checks an order without launching anything. The error is that of RunInstances.
	Resolve(ctx context.Context, o Order) (Resolved, error)
	// Launch makes the Machine of an order; that of an order that was given before is not made again. The error is that of
	// RunInstances.
	Launch(ctx context.Context, o Order) error
}
