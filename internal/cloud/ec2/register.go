// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/ec2/association"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/ec2securitygroup"
	"muster.dev/muster/internal/cloud/ec2/ec2vpc"
	"muster.dev/muster/internal/cloud/ec2/fleet"
	"muster.dev/muster/internal/cloud/ec2/gateway"
	"muster.dev/muster/internal/cloud/ec2/image"
	"muster.dev/muster/internal/cloud/ec2/instance"
	"muster.dev/muster/internal/cloud/ec2/keypair"
	"muster.dev/muster/internal/cloud/ec2/networkacl"
	"muster.dev/muster/internal/cloud/ec2/networkinterface"
	"muster.dev/muster/internal/cloud/ec2/offering"
	"muster.dev/muster/internal/cloud/ec2/routetable"
	"muster.dev/muster/internal/cloud/ec2/subnet"
	"muster.dev/muster/internal/cloud/ec2/tag"
	"muster.dev/muster/internal/cloud/ec2/template"
)

// Config is what the actions need.
type Config = ec2resource.Config

// Launcher launches instances of Auto Scaling groups for a controller, which asks IAM nothing.
func Launcher(c Config) (instance.Orders, error) {
	ec2, err := ec2resource.New(c)
	if err != nil {
		return instance.Orders{}, err
	}
	return instance.NewOrders(instance.New(ec2, image.New(ec2), keypair.New(ec2), template.New(ec2))), nil
}

// Register adds the actions to the front. A noun is handed the nouns whose resources it reads. Each says to
// ec2resource, when it is registered, whether it keeps a VPC or a subnet from being deleted, and what of it goes with a
// VPC. The orders launch instances of Auto Scaling groups, and know all nouns that IAM is asked about for that.
func Register(f *awsfront.Front, c Config) (instance.Orders, error) {
	ec2, err := ec2resource.New(c)
	if err != nil {
		return instance.Orders{}, err
	}
	images, keyPairs, templates, vpcs := image.New(ec2), keypair.New(ec2), template.New(ec2), ec2vpc.New(ec2)
	offerings := offering.New(ec2, vpcs)
	instances := instance.New(ec2, images, keyPairs, templates)
	interfaces := networkinterface.New(ec2)
	gateways := gateway.New(ec2, instances)
	associations := association.New(ec2)

	images.Register(f)
	offerings.RegisterInstanceTypes(f)
	keyPairs.Register(f)
	templates.Register(f)
	vpcs.Register(f)
	interfaces.Register(f)
	ec2securitygroup.New(ec2, interfaces, vpcs).Register(f)
	instances.Register(f)
	instance.NewSpotRequests(instances).Register(f)
	fleet.New(ec2, instance.NewLauncher(instances)).Register(f)
	subnet.New(ec2, gateways, vpcs).Register(f)
	offerings.RegisterZones(f)
	offerings.RegisterAccount(f)
	gateways.RegisterInternetGateways(f)
	gateways.RegisterNATGateways(f)
	gateways.RegisterAddresses(f)
	routetable.New(ec2, associations, gateways, instances).Register(f)
	networkacl.New(ec2, associations).Register(f)
	offerings.RegisterNothing(f)
	tag.New(ec2).Register(f)
	c.TagSources.Add(ec2resource.Service, ec2.AllTagged)
	return instance.NewOrders(instances), nil
}
