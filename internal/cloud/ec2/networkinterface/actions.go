// SPDX-License-Identifier: Apache-2.0

// Package networkinterface has EC2's actions about network interfaces, which are those of instances: nobody makes or
// deletes one.
package networkinterface

import (
	"muster.dev/muster/internal/aws/awsfront"
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

// Register adds the actions to the front.
func (a *Actions) Register(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "DescribeNetworkInterfaces", a.describeNetworkInterfaces())
}
