// SPDX-License-Identifier: Apache-2.0

// Package networkacl has EC2's actions about network ACLs, their entries, and the subnets that they are for. They are
// records.
package networkacl

import (
	"muster.dev/muster/internal/cloud/ec2/association"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// Actions are the actions of the package, over the resources of the account.
type Actions struct {
	ec2          *ec2resource.EC2
	associations *association.Actions
}

// New makes Actions, which are registered by a method of their own.
func New(ec2 *ec2resource.EC2, associations *association.Actions) *Actions {
	return &Actions{ec2, associations}
}
