// SPDX-License-Identifier: Apache-2.0

// Package fleet has EC2's action CreateFleet, for fleets of the type instant: one request that names several pools, each
// a launch template with an instance type and a subnet, and gets its instances from those that have room.
//
// What happens if
//
//	a pool has no room                     its error is in the answer, under the pool, and the next pool is tried
//	no pool has room                       the answer has the errors and no instance: Karpenter tries other types
//	a pool is not valid                    the same, as long as another pool is valid
//	no pool is valid                       the request is refused with the error of the first one, and nothing is made
//	the request has DryRun                 the first valid pool is found, and nothing is made: the answer is DryRunOperation
//	the service is killed between two writes  the SDK sends the same token again, and the instances that lack are made
//	a template changes while IAM is asked  the instances are of the version that IAM was asked about
//	the same token comes with other parameters  refused with IdempotentParameterMismatch
//	some instances were terminated, and the token comes again  none is made in their place, and the answer has all of them
//	some instances were made, the rest had no room, and the token comes again  what has room by then is made
package fleet

import (
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/instance"
)

// Actions are the actions of the package, over the resources of the account.
type Actions struct {
	ec2       *ec2resource.EC2
	instances instance.Launcher
}

// New makes Actions, which are registered by a method of their own.
func New(ec2 *ec2resource.EC2, instances instance.Launcher) *Actions { return &Actions{ec2, instances} }

// Register adds the actions to the front.
func (a *Actions) Register(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "CreateFleet", a.createFleet())
}
