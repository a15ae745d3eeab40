// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/clienttoken"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/template"
	"muster.dev/muster/internal/cloud/launchtemplate"
	"muster.dev/muster/internal/machine/hostroom"
)

// Launch asks for instances of a launch template. Fields of Data that are set go over those of the template; tags are
// added to those of the template.
type Launch struct {
	Template template.NamedTemplate
	Version  string // empty is the default version
	Data     launchtemplate.Data
	SubnetID string
	Spot     bool
	// MarketOptions is the refusal of a template that has market options of its own, although Spot says the market.
	MarketOptions error
	// Refused is why there was no such template when the launch was fixed; see [Launcher.Fix].
	Refused error
}

// Launcher launches instances as RunInstances does, for actions that choose what they launch.
type Launcher struct{ actions *Actions }

// NewLauncher returns what launches as the package's own action does.
func NewLauncher(a *Actions) Launcher { return Launcher{a} }

// Fix returns a launch that goes by the very version of the launch template that there is now, or that is refused as it would
// be now. IAM is asked about a fixed launch, and the same one is made: later the default version of the template may be
// another one, and the name another template's.
func (l Launcher) Fix(ctx context.Context, of Launch) (Launch, error) {
	in := &runInstancesInput{LaunchTemplate: &versionOfTemplate{of.Template.LaunchTemplateID, of.Template.LaunchTemplateName, of.Version}}
	if err := fixTemplate(ctx, l.actions, in); err != nil {
		return of, err
	}
	named := in.LaunchTemplate
	of.Template, of.Version, of.Refused = template.NamedTemplate{LaunchTemplateID: named.LaunchTemplateID, LaunchTemplateName: named.LaunchTemplateName}, named.Version, in.refused
	return of, nil
}

// Plan is a Launch that was checked: instances of it can be made if there is room.
type Plan struct {
	in     *runInstancesInput
	wanted *wantedInstances
}

// Plan checks a launch as RunInstances does, with the same errors.
func (l Launcher) Plan(ctx context.Context, of Launch) (*Plan, error) {
	in, err := l.inputOf(ctx, of)
	if err != nil {
		return nil, err
	}
	wanted, err := l.actions.wantedInstances(ctx, in)
	if err != nil {
		return nil, err
	}
	return &Plan{in, wanted}, nil
}

// AboutLaunch returns the resources that a launch uses and makes, as IAM is asked about them for RunInstances. The first
// target is the image.
func (l Launcher) AboutLaunch(ctx context.Context, call *awsfront.Call, of Launch) ([]awsfront.Target, error) {
	in, err := l.inputOf(ctx, of)
	if lost(err) != nil {
		return nil, err
	}
	return l.actions.aboutRunInstances(ctx, call, in)
}

// Fits returns for how many of the instances of a plan there is room: between 1 and most, or EC2's error for what is
// lacking. Room on the host is taken from left.
func (l Launcher) Fits(ctx context.Context, p *Plan, most int, left *hostroom.Left) (int, error) {
	in := *p.in
	in.MinCount, in.MaxCount = new(int32(1)), new(int32(most)) //nolint:gosec // G115: at most clienttoken.MaxCount
	return l.actions.countOf(ctx, &in, p.wanted, nil, left)
}

// Make makes one instance of a plan, which has the client token, the reservation and the annotations from the write on
// that makes it.
func (l Launcher) Make(ctx context.Context, p *Plan, sent awsresource.Token, of v1alpha1.Reservation, annotations map[string]string) (*v1alpha1.Machine, error) {
	m := p.wanted.machine.DeepCopy()
	m.Spec.Reservation = &of
	for key, value := range annotations {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, value)
	}
	if err := l.actions.create(ctx, m, sent, int(of.Index)); err != nil {
		return nil, ec2resource.Away(fmt.Errorf("making instance %d of %d: %w", of.Index+1, sent.Request.Count, err))
	}
	return m, nil
}

// MadeBefore returns the instances that requests with the client token made, by their marks, also those that were terminated
// while they are described. A token whose instances are all gone is refused with IdempotentInstanceTerminated meanwhile.
func (l Launcher) MadeBefore(ctx context.Context, sent awsresource.Token) (map[clienttoken.Mark]*v1alpha1.Machine, error) {
	made, gone, err := l.actions.madeBefore(ctx, sent)
	if err == nil && allGone(made, gone) {
		err = clienttoken.Terminated()
	}
	return made, err
}

// inputOf returns the request of RunInstances that asks for the same.
func (l Launcher) inputOf(ctx context.Context, of Launch) (*runInstancesInput, error) {
	in := &runInstancesInput{
		Data: of.Data, SubnetID: of.SubnetID, MinCount: new(int32(1)), MaxCount: new(int32(1)),
		LaunchTemplate: &versionOfTemplate{of.Template.LaunchTemplateID, of.Template.LaunchTemplateName, of.Version}, refused: of.Refused,
		spot: of.Spot, noMarketOptions: of.MarketOptions,
	}
	base, err := l.actions.launchData(ctx, &runInstancesInput{LaunchTemplate: in.LaunchTemplate, refused: of.Refused})
	if err != nil {
		return in, err
	}
	in.TagSpecifications = joined(base.TagSpecifications, of.Data.TagSpecifications)
	if p := base.Placement; p != nil && in.Placement != nil && in.Placement.Tenancy == "" {
		in.Placement = &launchtemplate.Placement{AvailabilityZone: in.Placement.AvailabilityZone, Tenancy: p.Tenancy}
	}
	if len(base.NetworkInterfaces) > 0 && of.SubnetID != "" { // the template's interface, in the subnet of the launch
		in.NetworkInterfaces, in.SubnetID = slices.Clone(base.NetworkInterfaces), ""
		in.NetworkInterfaces[0].SubnetID = of.SubnetID
	}
	return in, nil
}

// joined adds the tags of a request to those of a template, type by type. The request's value of a key counts.
func joined(of, own []launchtemplate.TagSpecification) []launchtemplate.TagSpecification {
	all := slices.Clone(of)
	for _, s := range own {
		at := slices.IndexFunc(all, func(o launchtemplate.TagSpecification) bool { return o.ResourceType == s.ResourceType })
		if at < 0 {
			all = append(all, s)
			continue
		}
		tags := slices.Clone(s.Tags)
		for _, t := range all[at].Tags {
			if _, set := awsresource.TagMap(s.Tags)[t.Key]; !set {
				tags = append(tags, t)
			}
		}
		all[at].Tags = tags
	}
	return all
}

// TypeOf returns the instance type of a launch: its own, or else that of its template.
func (l Launcher) TypeOf(ctx context.Context, of Launch) (string, error) {
	in, err := l.inputOf(ctx, of)
	if err != nil {
		return "", err
	}
	data, err := l.actions.launchData(ctx, in)
	return data.InstanceType, err
}
