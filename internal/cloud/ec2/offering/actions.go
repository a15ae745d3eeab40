// SPDX-License-Identifier: Apache-2.0

// Package offering has EC2's actions about what EC2 offers an account, without resources: instance types,
// zones, regions, attributes of the account, and lists that are always empty.
package offering

import (
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/ec2vpc"
)

// Actions are the actions of the package, over the resources of the account.
type Actions struct {
	ec2  *ec2resource.EC2
	vpcs *ec2vpc.Actions
}

// New makes Actions, which are registered by a method of their own.
func New(ec2 *ec2resource.EC2, vpcs *ec2vpc.Actions) *Actions {
	return &Actions{ec2, vpcs}
}
