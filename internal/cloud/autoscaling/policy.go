// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/cloud/launchtemplate"
	"muster.dev/muster/internal/cloud/scalinglaunch"
	"muster.dev/muster/internal/machine/instancetype"
)

// mixedInstances is a policy of mixed instances, in requests and answers.
type mixedInstances struct {
	LaunchTemplate        *mixedTemplate
	InstancesDistribution *distribution
}

type mixedTemplate struct {
	LaunchTemplateSpecification *templateSpecification
	Overrides                   []override
}

type override struct {
	InstanceType, WeightedCapacity string
	LaunchTemplateSpecification    *templateSpecification
}

type distribution struct {
	OnDemandAllocationStrategy, SpotAllocationStrategy, SpotMaxPrice             string
	OnDemandBaseCapacity, OnDemandPercentageAboveBaseCapacity, SpotInstancePools *int32
}

// launches is what a request says new instances are: a launch template, or a policy that has one.
type launches struct {
	LaunchTemplate       *templateSpecification
	MixedInstancesPolicy *mixedInstances
}

// orders are the launches that it stands for, in each of some subnets and of each market.
func (in launches) orders(subnets []string) []scalinglaunch.Order {
	if len(subnets) == 0 {
		subnets = []string{""}
	}
	var all []scalinglaunch.Order
	add := func(t *templateSpecification, kind string) {
		for _, subnet := range subnets {
			for _, spot := range in.markets() {
				all = append(all, scalinglaunch.Order{
					Template: v1alpha1.LaunchTemplateReference{ID: t.LaunchTemplateID, Name: t.LaunchTemplateName, Version: t.Version}, InstanceType: kind, SubnetID: subnet, Spot: spot,
				})
			}
		}
	}
	if in.LaunchTemplate != nil {
		add(in.LaunchTemplate, "")
	}
	if p := in.MixedInstancesPolicy; p != nil && p.LaunchTemplate != nil && p.LaunchTemplate.LaunchTemplateSpecification != nil {
		own := p.LaunchTemplate.LaunchTemplateSpecification
		for _, o := range p.LaunchTemplate.Overrides {
			add(cmp.Or(o.LaunchTemplateSpecification, own), o.InstanceType)
		}
		if len(p.LaunchTemplate.Overrides) == 0 {
			add(own, "")
		}
	}
	return all
}

// markets are those that instances may be of: false is on demand, and true is spot.
func (in launches) markets() []bool {
	p := in.MixedInstancesPolicy
	if p == nil || p.InstancesDistribution == nil {
		return []bool{false}
	}
	d := p.InstancesDistribution
	switch percent := d.OnDemandPercentageAboveBaseCapacity; {
	case percent == nil || *percent >= 100:
		return []bool{false}
	case *percent <= 0 && number32(d.OnDemandBaseCapacity) == 0:
		return []bool{true}
	}
	return []bool{false, true}
}

// launched is the same as it is kept. Either field is nil; both are if the request says nothing.
type launched struct {
	template *v1alpha1.LaunchTemplateReference
	mixed    *v1alpha1.MixedInstancesPolicy
}

// read finds the launch templates and checks that an instance of each type can be launched in each subnet.
func (a *api) read(ctx context.Context, in launches, subnets []v1alpha1.SubnetID) (launched, error) {
	switch {
	case in.LaunchTemplate != nil && in.MixedInstancesPolicy != nil:
		return launched{}, awsfault.Errorf(invalid, "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter: the request has LaunchTemplate and MixedInstancesPolicy")
	case in.LaunchTemplate != nil:
		of, err := a.check(ctx, *in.LaunchTemplate, scalinglaunch.Order{}, subnets)
		return launched{template: &of}, err
	case in.MixedInstancesPolicy == nil:
		return launched{}, nil
	}
	mixed, err := a.readMixed(ctx, in.MixedInstancesPolicy, subnets)
	return launched{mixed: mixed}, err
}

func (a *api) readMixed(ctx context.Context, in *mixedInstances, subnets []v1alpha1.SubnetID) (*v1alpha1.MixedInstancesPolicy, error) {
	if in.LaunchTemplate == nil || in.LaunchTemplate.LaunchTemplateSpecification == nil {
		return nil, awsfault.Errorf(invalid, "The policy of mixed instances has no launch template: write LaunchTemplate.LaunchTemplateSpecification")
	}
	p := &v1alpha1.MixedInstancesPolicy{}
	var err error
	own := *in.LaunchTemplate.LaunchTemplateSpecification
	if len(in.LaunchTemplate.Overrides) == 0 {
		p.LaunchTemplate, err = a.check(ctx, own, scalinglaunch.Order{Mixed: true}, subnets)
	}
	weighted := 0
	for _, o := range in.LaunchTemplate.Overrides {
		kept, err := a.readOverride(ctx, own, o, subnets, p)
		if err != nil {
			return nil, err
		}
		if kept.WeightedCapacity > 0 {
			weighted++
		}
		p.Overrides = append(p.Overrides, kept)
	}
	if weighted > 0 && weighted < len(p.Overrides) {
		return nil, awsfault.Errorf(invalid, "If any of the overrides has a weight, all must have one: %d of %d have WeightedCapacity", weighted, len(p.Overrides))
	}
	if d := in.InstancesDistribution; d != nil && err == nil {
		p.Distribution, err = d.kept()
	}
	return p, err
}

func (a *api) readOverride(ctx context.Context, own templateSpecification, o override, subnets []v1alpha1.SubnetID, p *v1alpha1.MixedInstancesPolicy) (v1alpha1.LaunchTemplateOverride, error) {
	kept := v1alpha1.LaunchTemplateOverride{InstanceType: o.InstanceType}
	if o.InstanceType == "" {
		return kept, awsfault.Errorf(invalid, "An override of the policy of mixed instances names no InstanceType")
	}
	if o.WeightedCapacity != "" {
		weight, err := strconv.ParseInt(o.WeightedCapacity, 10, 32)
		if err != nil || weight < 1 || weight > 999 {
			return kept, awsfault.Errorf(invalid, "The weighted capacity %.40q of %s must be a number from 1 to 999", o.WeightedCapacity, o.InstanceType)
		}
		kept.WeightedCapacity = int32(weight)
	}
	if o.LaunchTemplateSpecification != nil {
		of, err := a.check(ctx, *o.LaunchTemplateSpecification, scalinglaunch.Order{Mixed: true, InstanceType: o.InstanceType}, subnets)
		kept.LaunchTemplate = &of
		if err != nil {
			return kept, err
		}
		if p.LaunchTemplate.ID == "" {
			p.LaunchTemplate, err = a.reference(ctx, own)
		}
		return kept, err
	}
	var err error
	p.LaunchTemplate, err = a.check(ctx, own, scalinglaunch.Order{Mixed: true, InstanceType: o.InstanceType}, subnets)
	return kept, err
}

func (d *distribution) kept() (v1alpha1.InstancesDistribution, error) {
	kept := v1alpha1.InstancesDistribution{
		OnDemandAllocationStrategy: d.OnDemandAllocationStrategy, SpotAllocationStrategy: d.SpotAllocationStrategy, SpotMaxPrice: d.SpotMaxPrice,
		OnDemandBaseCapacity: number32(d.OnDemandBaseCapacity), OnDemandPercentageAboveBaseCapacity: d.OnDemandPercentageAboveBaseCapacity, SpotInstancePools: number32(d.SpotInstancePools),
	}
	for _, s := range []struct {
		name, is string
		known    []string
	}{
		{"OnDemandAllocationStrategy", d.OnDemandAllocationStrategy, []string{"", "prioritized", "lowest-price"}},
		{"SpotAllocationStrategy", d.SpotAllocationStrategy, []string{"", "lowest-price", "capacity-optimized", "capacity-optimized-prioritized", "price-capacity-optimized"}},
	} {
		if !slices.Contains(s.known, s.is) {
			return kept, awsfault.Errorf(invalid, "%s %.64q is not valid: it must be one of %q", s.name, s.is, s.known[1:])
		}
	}
	if p := d.OnDemandPercentageAboveBaseCapacity; p != nil && (*p < 0 || *p > 100) {
		return kept, awsfault.Errorf(invalid, "OnDemandPercentageAboveBaseCapacity is %d: it must be from 0 to 100", *p)
	}
	return kept, nil
}

func number32(of *int32) int32 {
	if of == nil {
		return 0
	}
	return *of
}

// reference is the launch template of a request, which must be there, as it is kept.
func (a *api) reference(ctx context.Context, in templateSpecification) (v1alpha1.LaunchTemplateReference, error) {
	named, err := a.launcher.Template(ctx, in.LaunchTemplateID, in.LaunchTemplateName)
	if err != nil {
		return v1alpha1.LaunchTemplateReference{}, notFormed(err)
	}
	version := cmp.Or(in.Version, launchtemplate.Default)
	if _, err := launchtemplate.Find(named, version); err != nil {
		return v1alpha1.LaunchTemplateReference{}, notFormed(err)
	}
	return v1alpha1.LaunchTemplateReference{ID: named.Name, Name: named.Spec.Name, Version: version}, nil
}

// check refuses a launch template of which no instance of an order can be launched. The order is without the template and the
// subnet.
func (a *api) check(ctx context.Context, in templateSpecification, order scalinglaunch.Order, subnets []v1alpha1.SubnetID) (v1alpha1.LaunchTemplateReference, error) {
	if kind := order.InstanceType; kind != "" {
		if _, err := instancetype.Find(kind); err != nil {
			return v1alpha1.LaunchTemplateReference{}, awsfault.Errorf(invalid, "You must use a valid fully-formed launch template. The instance type %.63q is not known: see DescribeInstanceTypes", kind)
		}
	}
	of, err := a.reference(ctx, in)
	if err != nil {
		return of, err
	}
	for _, subnet := range subnets {
		order.Template, order.SubnetID = of, string(subnet)
		if _, err := a.launcher.Resolve(ctx, order); err != nil {
			return of, notFormed(err)
		}
	}
	return of, nil
}

// notFormed is a refusal of EC2 as Auto Scaling tells it.
func notFormed(err error) error {
	if fault := refusal(err); fault != nil && fault.Code == scalinglaunch.Incompatible {
		return err // Auto Scaling's own
	}
	err = asValidation(err)
	if fault := refusal(err); fault != nil {
		return awsfault.Errorf(invalid, "You must use a valid fully-formed launch template. %s", fault.Message)
	}
	return err
}

func showReference(t v1alpha1.LaunchTemplateReference) *templateSpecification {
	return &templateSpecification{t.ID, t.Name, t.Version}
}

func showMixed(p *v1alpha1.MixedInstancesPolicy) *mixedInstances {
	d := p.Distribution
	shown := &mixedInstances{
		LaunchTemplate: &mixedTemplate{LaunchTemplateSpecification: showReference(p.LaunchTemplate), Overrides: []override{}},
		InstancesDistribution: &distribution{
			OnDemandAllocationStrategy: cmp.Or(d.OnDemandAllocationStrategy, "prioritized"), SpotAllocationStrategy: cmp.Or(d.SpotAllocationStrategy, "lowest-price"),
			SpotMaxPrice: d.SpotMaxPrice, OnDemandBaseCapacity: &d.OnDemandBaseCapacity, OnDemandPercentageAboveBaseCapacity: d.OnDemandPercentageAboveBaseCapacity,
		},
	}
	if shown.InstancesDistribution.OnDemandPercentageAboveBaseCapacity == nil {
		shown.InstancesDistribution.OnDemandPercentageAboveBaseCapacity = new(int32(100))
	}
	if d.SpotInstancePools > 0 {
		shown.InstancesDistribution.SpotInstancePools = &d.SpotInstancePools
	}
	for _, o := range p.Overrides {
		one := override{InstanceType: o.InstanceType}
		if o.WeightedCapacity > 0 {
			one.WeightedCapacity = strconv.Itoa(int(o.WeightedCapacity))
		}
		if o.LaunchTemplate != nil {
			one.LaunchTemplateSpecification = showReference(*o.LaunchTemplate)
		}
		shown.LaunchTemplate.Overrides = append(shown.LaunchTemplate.Overrides, one)
	}
	return shown
}
