// SPDX-License-Identifier: Apache-2.0

// Package subnet has EC2's actions about subnets: made in the range of their VPC, described with the addresses that are
// free, deleted when nobody has an address of them.
package subnet

import (
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/ec2vpc"
	"muster.dev/muster/internal/cloud/ec2/gateway"
)

// Actions are the actions of the package, over the resources of the account.
type Actions struct {
	ec2      *ec2resource.EC2
	gateways *gateway.Actions
	vpcs     *ec2vpc.Actions
}

// New makes Actions, which are registered by a method of their own.
func New(ec2 *ec2resource.EC2, gateways *gateway.Actions, vpcs *ec2vpc.Actions) *Actions {
	return &Actions{ec2, gateways, vpcs}
}
