// SPDX-License-Identifier: Apache-2.0

// Package instance has EC2's actions about instances, which are Machines: run, described, changed, terminated.
package instance

import (
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/image"
	"muster.dev/muster/internal/cloud/ec2/keypair"
	"muster.dev/muster/internal/cloud/ec2/template"
)

// Actions are the actions of the package, over the resources of the account.
type Actions struct {
	ec2       *ec2resource.EC2
	images    *image.Actions
	keypairs  *keypair.Actions
	templates *template.Actions
}

// New makes Actions, which are registered by a method of their own.
func New(ec2 *ec2resource.EC2, images *image.Actions, keypairs *keypair.Actions, templates *template.Actions) *Actions {
	return &Actions{ec2, images, keypairs, templates}
}
