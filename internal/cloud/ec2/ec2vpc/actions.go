// SPDX-License-Identifier: Apache-2.0

// Package ec2vpc has EC2's actions about VPCs: made with what comes with each, described, changed, deleted when nothing
// is left in them.
package ec2vpc

import (
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// Actions are the actions of the package, over the resources of the account.
type Actions struct {
	ec2 *ec2resource.EC2
}

// New makes Actions, which are registered by a method of their own.
func New(ec2 *ec2resource.EC2) *Actions {
	return &Actions{ec2}
}
