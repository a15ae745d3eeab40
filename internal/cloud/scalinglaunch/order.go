// SPDX-License-Identifier: Apache-2.0

// Package scalinglaunch is what Auto Scaling asks of EC2: to launch one instance of a group, of a launch template. EC2's
// package of instances carries it out by the rules of RunInstances, and the assembly of the AWS APIs puts the two together.
package scalinglaunch

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
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
	// Mixed reports whether the group has a policy of mixed instances, so that Spot alone decides on the market and a template
	// with market options is refused. The market of any other group is that of its template.
	Mixed bool
	Cause string
}

// NotMixed returns the refusal of a launch template with market options in a policy of mixed instances, in the words of Auto
// Scaling.
func NotMixed() error {
	return awsfault.Errorf(Incompatible, "Incompatible launch template: You cannot use a launch template that is set to request Spot Instances (InstanceMarketOptions) "+
		"when you configure an Auto Scaling group with a mixed instances policy. Add a different launch template to the group and try again.")
}

// Incompatible is the code of [NotMixed].
const Incompatible = "InvalidQueryParameter"

// Resolved is what an order stands for.
type Resolved struct {
	// Template with the number of its version.
	Template     v1alpha1.LaunchTemplateReference
	InstanceType string
	ImageID      string
	// Spot reports whether it is a spot instance, by the order or by the template.
	Spot bool
}

// Launcher launches instances.
type Launcher interface {
	// Resolve checks an order without launching anything. The error is that of RunInstances.
	Resolve(ctx context.Context, o Order) (Resolved, error)
	// Launch makes the Machine of an order; that of an order that was given before is not made again. The error is that of
	// RunInstances.
	Launch(ctx context.Context, o Order) error
}
