// SPDX-License-Identifier: Apache-2.0

// Package routetable has EC2's actions about route tables, their routes, and the subnets that they are for. They are
// records.
package routetable

import (
	"muster.dev/muster/internal/cloud/ec2/association"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/gateway"
	"muster.dev/muster/internal/cloud/ec2/instance"
)

// Actions are the actions of the package, over the resources of the account.
type Actions struct {
	ec2          *ec2resource.EC2
	associations *association.Actions
	gateways     *gateway.Actions
	instances    *instance.Actions
}

// New makes Actions, which are registered by a method of their own.
func New(ec2 *ec2resource.EC2, associations *association.Actions, gateways *gateway.Actions, instances *instance.Actions) *Actions {
	return &Actions{ec2, associations, gateways, instances}
}
