// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/instance"
	"muster.dev/muster/internal/cloud/ec2/template"
	"muster.dev/muster/internal/cloud/launchtemplate"
	"muster.dev/muster/internal/cloud/spotrequest"
)

// createFleetInput has the parameters that Muster can honour. The front refuses all other parameters.
type createFleetInput struct {
	LaunchTemplateConfigs       []config
	TargetCapacitySpecification capacity
	OnDemandOptions             options
	SpotOptions                 options
	TagSpecifications           []launchtemplate.TagSpecification
	Type, ClientToken           string
	DryRun                      bool
}

type config struct {
	LaunchTemplateSpecification templateSpecification
	Overrides                   []override

	// fixed has the version of the template that IAM was asked about; nil before that.
	fixed *instance.Launch
}

type templateSpecification struct{ LaunchTemplateID, LaunchTemplateName, Version string }

type override struct {
	InstanceType, SubnetID, AvailabilityZone, ImageID string
	Priority                                          *float64
}

type options struct{ AllocationStrategy string }

func (o options) strategy() string {
	if o.AllocationStrategy == "" {
		return lowestPrice // EC2's default
	}
	return o.AllocationStrategy
}

// capacity is the number of instances that a request wants of each market.
type capacity struct {
	TotalTargetCapacity                        *int32
	OnDemandTargetCapacity, SpotTargetCapacity int32
	DefaultTargetCapacityType                  string
}

const (
	onDemand = "on-demand"
	spot     = "spot"
	// maxInstances is how many instances one request may launch, as RunInstances'.
	maxInstances = 100
	// maxPools is how many overrides EC2 takes in one request.
	maxPools = 300
)

func (c capacity) total() int { return int(*c.TotalTargetCapacity) }

// spots is how many of the instances are spot instances: the first ones of a request are on demand.
func (c capacity) spots() int {
	if c.DefaultTargetCapacityType == spot {
		return c.total() - int(c.OnDemandTargetCapacity)
	}
	return int(c.SpotTargetCapacity)
}

// onlySpot reports whether all instances are spot instances.
func (c capacity) onlySpot() bool { return c.spots() == c.total() }

// markets are those of the instances: false is on demand, and true is spot.
func (c capacity) markets() []bool {
	switch c.spots() {
	case 0:
		return []bool{false}
	case c.total():
		return []bool{true}
	}
	return []bool{false, true}
}

// split parts the numbers of instances into those on demand and spot instances.
func (c capacity) split(missing []int) (onDemand, spot []int) {
	for _, index := range missing {
		if index < c.total()-c.spots() {
			onDemand = append(onDemand, index)
		} else {
			spot = append(spot, index)
		}
	}
	return onDemand, spot
}

// check refuses what is wrong whatever there is in the account.
func (in *createFleetInput) check() error {
	c := in.TargetCapacitySpecification
	switch {
	case in.Type != "instant":
		return awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.40s) for parameter Type is invalid. Muster has fleets of the type instant only: use a node group for instances that are replaced", in.Type)
	case c.TotalTargetCapacity == nil || *c.TotalTargetCapacity < 1 || *c.TotalTargetCapacity > maxInstances:
		return awsfault.Errorf(ec2resource.InvalidParameter, "TotalTargetCapacity must be from 1 to %d, which is how many instances Muster launches by one request", maxInstances)
	case c.OnDemandTargetCapacity < 0 || c.SpotTargetCapacity < 0 || int64(c.OnDemandTargetCapacity)+int64(c.SpotTargetCapacity) > int64(*c.TotalTargetCapacity):
		return awsfault.Errorf(ec2resource.InvalidParameter, "OnDemandTargetCapacity (%d) and SpotTargetCapacity (%d) must not be negative, nor more than TotalTargetCapacity (%d) together",
			c.OnDemandTargetCapacity, c.SpotTargetCapacity, *c.TotalTargetCapacity)
	case len(in.LaunchTemplateConfigs) == 0:
		return awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter LaunchTemplateConfigs")
	}
	pools := 0
	for _, of := range in.LaunchTemplateConfigs {
		pools += max(len(of.Overrides), 1)
	}
	if pools > maxPools {
		return awsfault.Errorf(ec2resource.InvalidParameter, "The request has %d overrides: there may be %d", pools, maxPools)
	}
	if err := ec2resource.Only("DefaultTargetCapacityType", c.DefaultTargetCapacityType, onDemand, spot); err != nil {
		return err
	}
	if err := ec2resource.Only("OnDemandOptions.AllocationStrategy", in.OnDemandOptions.AllocationStrategy, lowestPrice, prioritized); err != nil {
		return err
	}
	return ec2resource.Only("SpotOptions.AllocationStrategy", in.SpotOptions.AllocationStrategy, lowestPrice, diversified, capacityOptimized, capacityPrioritized, priceCapacityOptimized)
}

// template is the launch template of a pool, as the request names it.
func (in *createFleetInput) template(p pool) templateSpecification {
	return in.LaunchTemplateConfigs[p.config].LaunchTemplateSpecification
}

// override is that of a pool; empty for a configuration without any.
func (in *createFleetInput) override(p pool) override {
	if p.override < 0 {
		return override{}
	}
	return in.LaunchTemplateConfigs[p.config].Overrides[p.override]
}

// launch is a launch of a pool.
func (in *createFleetInput) launch(p pool, spot bool) instance.Launch {
	named, over := in.template(p), in.override(p)
	l := instance.Launch{
		Template: template.NamedTemplate{LaunchTemplateID: named.LaunchTemplateID, LaunchTemplateName: named.LaunchTemplateName}, Version: named.Version, SubnetID: over.SubnetID, Spot: spot, MarketOptions: errMarketOptions(),
		Data: launchtemplate.Data{InstanceType: over.InstanceType, ImageID: over.ImageID, TagSpecifications: in.launchTags(spot)},
	}
	if fixed := in.LaunchTemplateConfigs[p.config].fixed; fixed != nil {
		l.Template, l.Version, l.Refused = fixed.Template, fixed.Version, fixed.Refused
	}
	if over.AvailabilityZone != "" {
		l.Data.Placement = &launchtemplate.Placement{AvailabilityZone: over.AvailabilityZone}
	}
	return l
}

// errMarketOptions is the refusal of a launch template that says itself how its instances are bought.
func errMarketOptions() error {
	return awsfault.Errorf(ec2resource.InvalidCombination, "The launch template has InstanceMarketOptions: the target capacities of the fleet say which instances are spot instances, so use a template without them")
}

// launchTags are the tags of the request for a launch, without those of the fleet itself, which is not there once it was answered. Where the
// fleet has spot instances, the tags of their requests are for those alone.
func (in *createFleetInput) launchTags(spot bool) []launchtemplate.TagSpecification {
	elsewhere := !spot && slices.Contains(in.TargetCapacitySpecification.markets(), true)
	return slices.DeleteFunc(slices.Clone(in.TagSpecifications), func(s launchtemplate.TagSpecification) bool {
		return s.ResourceType == resource || elsewhere && s.ResourceType == spotrequest.Resource
	})
}

// shown is a pool as answers have it.
func (in *createFleetInput) shown(p pool, over override) templateAndOverrides {
	return templateAndOverrides{LaunchTemplateSpecification: in.template(p), Overrides: over}
}

// String is the pool as the annotation of its machines has it.
func (p pool) String() string { return fmt.Sprintf("%d/%d", p.config, p.override) }

// parsePool reads an annotation. A changed annotation counts as the request's first pool.
func parsePool(text string, in *createFleetInput) pool {
	var p pool
	if _, err := fmt.Sscanf(text, "%d/%d", &p.config, &p.override); err != nil || p.config < 0 || p.config >= len(in.LaunchTemplateConfigs) ||
		p.override < -1 || p.override >= len(in.LaunchTemplateConfigs[p.config].Overrides) {
		return pool{override: min(0, len(in.LaunchTemplateConfigs[0].Overrides)-1)}
	}
	return p
}

type createFleetOutput struct {
	FleetID   string
	Instances []fleetInstance
	Errors    []fleetError
}

type fleetInstance struct {
	InstanceIDs                                         []string
	InstanceType, SubnetID, AvailabilityZone, Lifecycle string
	LaunchTemplateAndOverrides                          templateAndOverrides
}

type fleetError struct {
	ErrorCode, ErrorMessage, Lifecycle string
	LaunchTemplateAndOverrides         templateAndOverrides
}

type templateAndOverrides struct {
	LaunchTemplateSpecification templateSpecification
	Overrides                   override
}
