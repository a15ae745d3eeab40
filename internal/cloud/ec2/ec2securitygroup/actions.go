// SPDX-License-Identifier: Apache-2.0

// Package ec2securitygroup has EC2's actions about security groups and their rules.
package ec2securitygroup

import (
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/ec2vpc"
	"muster.dev/muster/internal/cloud/ec2/networkinterface"
)

// Actions are the actions of the package, over the resources of the account.
type Actions struct {
	ec2               *ec2resource.EC2
	networkinterfaces *networkinterface.Actions
	vpcs              *ec2vpc.Actions
}

// New makes Actions, which are registered by a method of their own.
func New(ec2 *ec2resource.EC2, networkinterfaces *networkinterface.Actions, vpcs *ec2vpc.Actions) *Actions {
	return &Actions{ec2, networkinterfaces, vpcs}
}
