// SPDX-License-Identifier: Apache-2.0

// Package association has what ties the subnets of a VPC to route tables and network ACLs: one record for each VPC,
// which the actions about either change.
package association

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
