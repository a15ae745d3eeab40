// SPDX-License-Identifier: Apache-2.0

// Package gateway has EC2's actions about what leads out of a VPC: internet gateways, NAT gateways and Elastic IP
// addresses. They are records; the address of a NAT gateway is an Elastic IP, and detaching an internet gateway asks
// for addresses in use.
package gateway

import (
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/instance"
)

// Actions are the actions of the package, over the resources of the account.
type Actions struct {
	ec2       *ec2resource.EC2
	instances *instance.Actions
}

// New makes Actions, which are registered by a method of their own.
func New(ec2 *ec2resource.EC2, instances *instance.Actions) *Actions {
	return &Actions{ec2, instances}
}
