// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/scalingplan"
	"muster.dev/muster/internal/platform/readcache"
)

// settings are what requests that make and that change a group have in common. The front refuses all other members.
type settings struct {
	launches
	AutoScalingGroupName                                                          string
	MinSize, MaxSize, DesiredCapacity                                             *int32
	DefaultCooldown, HealthCheckGracePeriod, DefaultInstanceWarmup                *int32
	NewInstancesProtectedFromScaleIn, CapacityRebalance                           *bool
	HealthCheckType, VPCZoneIdentifier, ServiceLinkedRoleARN, DesiredCapacityType string
	AvailabilityZones, TerminationPolicies                                        []string
	SkipZonalShiftValidation                                                      bool // groups have no zonal shifts
	AvailabilityZoneDistribution                                                  *zoneDistribution
}

// zoneDistribution is what a group does when launches fail in a zone.
type zoneDistribution struct{ CapacityDistributionStrategy string }

// bestEffort is Auto Scaling's default, and the only strategy of Muster: launches that fail in a zone are tried in another.
const bestEffort = "balanced-best-effort"

// check refuses another strategy than the default, which Terraform's provider sends with each change of a group.
func (d *zoneDistribution) check() error {
	if d == nil || d.CapacityDistributionStrategy == "" || d.CapacityDistributionStrategy == bestEffort {
		return nil
	}
	return awsfault.Errorf(invalid, "CapacityDistributionStrategy %.64q is not valid: it must be %s, by which a launch that fails in a zone is tried in another", d.CapacityDistributionStrategy, bestEffort)
}

type createGroupInput struct {
	settings
	Tags                           []tagInput
	LifecycleHookSpecificationList []hookInput
}

// maxName is Auto Scaling's limit of a group's name, and maxSize Muster's of its capacity.
const (
	maxName = 255
	maxSize = scalingplan.MaxCapacity
)

func createGroup(a *api) awsfront.Spec[createGroupInput, struct{}] {
	return awsfront.Spec[createGroupInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *createGroupInput) ([]awsfront.Target, error) {
			targets, err := a.aboutSettings(ctx, call, &in.settings)
			if err != nil {
				return nil, err
			}
			for _, t := range in.Tags {
				targets[0].Conditions["aws:TagKeys"] = append(targets[0].Conditions["aws:TagKeys"], t.Key)
				targets[0].Conditions["aws:RequestTag/"+t.Key] = []string{deref(t.Value)}
			}
			return targets, nil
		},
		Do: a.doCreateGroup,
	}
}

func (a *api) doCreateGroup(ctx context.Context, call *awsfront.Call, in *createGroupInput) (*struct{}, error) {
	name := in.AutoScalingGroupName
	defer a.locks.Hold(name)()
	switch _, err := a.group(ctx, name); {
	case name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == ':' }):
		return nil, awsfault.Errorf(invalid, "The name %.64q of the group is not valid: it must have 1 to %d characters, and no colon", name, maxName)
	case err == nil:
		return nil, awsfault.Errorf("AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name %s already exists", name)
	case refusal(err) == nil:
		return nil, err
	}
	g := &group{name: name, own: &v1alpha1.AutoScalingGroup{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.AutoScalingGroupSlug(name), Finalizers: []string{v1alpha1.FinalizerAutoScalingGroup}},
		Spec:       v1alpha1.AutoScalingGroupSpec{Name: name},
	}}
	if in.MinSize == nil || in.MaxSize == nil {
		return nil, awsfault.Errorf(invalid, "The request must have MinSize and MaxSize")
	}
	if in.DesiredCapacity == nil {
		in.DesiredCapacity = in.MinSize
	}
	if in.VPCZoneIdentifier == "" && len(in.AvailabilityZones) == 0 {
		return nil, awsfault.Errorf(invalid, "At least one Availability Zone or VPC Subnet is required.")
	}
	if err := a.settle(ctx, call, g, &in.settings); err != nil {
		return nil, err
	}
	if g.own.Spec.LaunchTemplate == nil && g.own.Spec.MixedInstancesPolicy == nil {
		return nil, awsfault.Errorf(invalid, "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter.")
	}
	if err := setTags(g, in.Tags); err != nil {
		return nil, err
	}
	for _, h := range in.LifecycleHookSpecificationList {
		if err := putHook(&g.own.Spec, h); err != nil {
			return nil, err
		}
	}
	err := a.Management.Create(ctx, g.own)
	if apierrors.IsAlreadyExists(err) {
		return nil, awsfault.Errorf("AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name %s already exists", name)
	}
	if err != nil {
		return nil, away(fmt.Errorf("making the group %s: %w", name, err))
	}
	return nil, nil //nolint:nilnil // the answer has no members
}

// aboutSettings asks IAM about a group and what its instances are launched with: who makes a group launches instances.
func (a *api) aboutSettings(ctx context.Context, call *awsfront.Call, in *settings) ([]awsfront.Target, error) {
	targets, err := a.about(ctx, call, in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	conditions := targets[0].Conditions
	for key, size := range map[string]*int32{"autoscaling:MinSize": in.MinSize, "autoscaling:MaxSize": in.MaxSize} {
		if size != nil {
			conditions[key] = []string{strconv.Itoa(int(*size))}
		}
	}
	if in.VPCZoneIdentifier != "" {
		conditions["autoscaling:VPCZoneIdentifiers"] = split(in.VPCZoneIdentifier)
	}
	launched, err := a.aboutLaunches(ctx, call, in.AutoScalingGroupName, in.launches, conditions, split(in.VPCZoneIdentifier))
	return append(targets, launched...), err
}

// maxSubnets and maxOverrides are how many subnets and overrides of its policy of mixed instances a group may have.
const (
	maxSubnets   = 64
	maxOverrides = 40
)

// aboutLaunches asks IAM about the launches that launch templates stand for, as RunInstances would: in each of the subnets
// that are named, or else in those that the group has.
func (a *api) aboutLaunches(ctx context.Context, call *awsfront.Call, name string, in launches, conditions map[string][]string, subnets []string) ([]awsfront.Target, error) {
	if len(subnets) > maxSubnets {
		return nil, awsfault.Errorf(invalid, "VPCZoneIdentifier names %d subnets: a group has at most %d", len(subnets), maxSubnets)
	}
	if p := in.MixedInstancesPolicy; p != nil && p.LaunchTemplate != nil && len(p.LaunchTemplate.Overrides) > maxOverrides {
		return nil, awsfault.Errorf(invalid, "The policy of mixed instances has %d overrides: it may have at most %d", len(p.LaunchTemplate.Overrides), maxOverrides)
	}
	ctx = readcache.Allow(ctx) // a launch is asked about in each subnet and of each type
	if len(subnets) == 0 {
		g, err := a.group(ctx, name)
		switch {
		case err == nil:
			subnets = g.subnets()
		case refusal(err) == nil:
			return nil, err
		}
	}
	var targets []awsfront.Target
	specified := true
	for _, o := range in.orders(subnets) {
		specified = specified && o.Template.Version != ""
		conditions["autoscaling:LaunchTemplateVersionSpecified"] = []string{strconv.FormatBool(specified)}
		if o.InstanceType != "" && !slices.Contains(conditions["autoscaling:InstanceTypes"], o.InstanceType) {
			conditions["autoscaling:InstanceTypes"] = append(conditions["autoscaling:InstanceTypes"], o.InstanceType)
		}
		of, err := a.launcher.About(ctx, call, o)
		if err != nil {
			return nil, err
		}
		targets = append(targets, of...)
	}
	return targets, nil
}

// split reads a list of subnets. IAM is asked about the same ids that the group gets.
func split(list string) []string {
	var ids []string
	for id := range strings.SplitSeq(list, ",") {
		if id = strings.TrimSpace(id); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// settle puts what a request says into a group of its own.
func (a *api) settle(ctx context.Context, call *awsfront.Call, g *group, in *settings) error {
	spec := &g.own.Spec
	before := g.sizes()
	sizes, err := before.Change(in.MinSize, in.MaxSize, in.DesiredCapacity)
	switch {
	case err != nil:
		return awsfault.Errorf(invalid, "%s", err.Error())
	case sizes.Max > maxSize:
		return awsfault.Errorf(invalid, "Max bound, %d, must be at most %d: a group of Muster has no more instances", sizes.Max, maxSize)
	case in.DesiredCapacityType != "" && in.DesiredCapacityType != "units":
		return awsfault.Errorf(invalid, "DesiredCapacityType %.40q is not valid: it must be units", in.DesiredCapacityType)
	case in.AvailabilityZoneDistribution.check() != nil:
		return in.AvailabilityZoneDistribution.check()
	case in.HealthCheckType != "" && in.HealthCheckType != "EC2" && in.HealthCheckType != "ELB":
		return awsfault.Errorf(invalid, "HealthCheckType %.64q is not valid: it must be EC2, or ELB, which is the same for a group without load balancers", in.HealthCheckType)
	}
	for name, seconds := range map[string]*int32{"DefaultCooldown": in.DefaultCooldown, "HealthCheckGracePeriod": in.HealthCheckGracePeriod} {
		if seconds != nil && *seconds < 0 {
			return awsfault.Errorf(invalid, "%s is %d seconds: it must be at least 0", name, *seconds)
		}
	}
	for _, p := range in.TerminationPolicies {
		if !slices.Contains(policies(), p) {
			return awsfault.Errorf(invalid, "The termination policy %.64q is not known: it must be one of %q", p, policies())
		}
	}
	g.setSizes(sizes, scalingplan.Constraints(call.Now, "user request", before, sizes))
	if err := a.settleSubnets(ctx, spec, in); err != nil {
		return err
	}
	launched, err := a.read(ctx, in.launches, spec.SubnetIDs)
	if err != nil {
		return err
	}
	if launched.template != nil || launched.mixed != nil {
		spec.LaunchTemplate, spec.MixedInstancesPolicy = launched.template, launched.mixed
	}
	keep(spec, in)
	return nil
}

// keep copies what needs no check.
func keep(spec *v1alpha1.AutoScalingGroupSpec, in *settings) {
	if in.HealthCheckType != "" {
		spec.HealthCheckType = in.HealthCheckType
	}
	if in.HealthCheckGracePeriod != nil {
		spec.HealthCheckGracePeriod = *in.HealthCheckGracePeriod
	}
	if in.DefaultCooldown != nil {
		spec.DefaultCooldown = in.DefaultCooldown
	}
	if w := in.DefaultInstanceWarmup; w != nil {
		if spec.DefaultInstanceWarmup = w; *w < 0 { // -1 takes it away
			spec.DefaultInstanceWarmup = nil
		}
	}
	if in.NewInstancesProtectedFromScaleIn != nil {
		spec.AutoScaling.ProtectNewMachines = *in.NewInstancesProtectedFromScaleIn
	}
	if in.CapacityRebalance != nil {
		spec.CapacityRebalance = *in.CapacityRebalance
	}
	if in.ServiceLinkedRoleARN != "" {
		spec.ServiceLinkedRoleARN = in.ServiceLinkedRoleARN
	}
	if len(in.TerminationPolicies) > 0 {
		spec.TerminationPolicies = in.TerminationPolicies
	}
}

func policies() []string {
	return []string{"AllocationStrategy", "ClosestToNextInstanceHour", "Default", "NewestInstance", "OldestInstance", "OldestLaunchConfiguration", "OldestLaunchTemplate"}
}

// settleSubnets finds the subnets of a group: those that are named, or those of the default VPC in the zones that are.
func (a *api) settleSubnets(ctx context.Context, spec *v1alpha1.AutoScalingGroupSpec, in *settings) error {
	if in.VPCZoneIdentifier == "" && len(in.AvailabilityZones) == 0 {
		return nil
	}
	var subnets v1alpha1.SubnetList
	var vpcs v1alpha1.VPCList
	if err := a.Management.List(ctx, &subnets); err != nil {
		return away(fmt.Errorf("listing subnets: %w", err))
	}
	if err := a.Management.List(ctx, &vpcs); err != nil {
		return away(fmt.Errorf("listing VPCs: %w", err))
	}
	for _, zone := range in.AvailabilityZones {
		if _, err := a.region.Zone(zone); err != nil {
			return awsfault.Errorf(invalid, "Invalid availability zones: [%.64s]", zone)
		}
	}
	find := func(id string) *v1alpha1.Subnet {
		at := slices.IndexFunc(subnets.Items, func(s v1alpha1.Subnet) bool { return s.Name == id })
		if at < 0 {
			return nil
		}
		return &subnets.Items[at]
	}
	var chosen []v1alpha1.SubnetID
	vpc := ""
	for _, id := range split(in.VPCZoneIdentifier) {
		s := find(id)
		switch {
		case s == nil:
			return awsfault.Errorf(invalid, "The subnet ID '%.64s' does not exist", id)
		case vpc != "" && vpc != s.Spec.VPCID:
			return awsfault.Errorf(invalid, "The subnets of a group must be of one VPC: %s is of %s, and others of %s", s.Name, s.Spec.VPCID, vpc)
		case len(in.AvailabilityZones) > 0 && !slices.Contains(in.AvailabilityZones, s.Spec.AvailabilityZone):
			return awsfault.Errorf(invalid, "The availability zones of the specified subnets and the Auto Scaling group do not match: %s is in %s", s.Name, s.Spec.AvailabilityZone)
		}
		vpc = s.Spec.VPCID
		chosen = append(chosen, v1alpha1.SubnetID(s.Name))
	}
	if in.VPCZoneIdentifier == "" {
		for _, s := range subnets.Items {
			isDefault := slices.ContainsFunc(vpcs.Items, func(v v1alpha1.VPC) bool { return v.Spec.IsDefault && v.Name == s.Spec.VPCID })
			if isDefault && slices.Contains(in.AvailabilityZones, s.Spec.AvailabilityZone) {
				chosen = append(chosen, v1alpha1.SubnetID(s.Name))
			}
		}
		if len(chosen) == 0 {
			return awsfault.Errorf(invalid, "No default subnet in the availability zones %q: write the subnets as VPCZoneIdentifier", in.AvailabilityZones)
		}
	}
	slices.Sort(chosen)
	spec.SubnetIDs = slices.Compact(chosen)
	return nil
}

// setTags gives a new group its tags.
func setTags(g *group, tags []tagInput) error {
	var sets []awstag.Tag
	for _, t := range tags {
		if t.ResourceID != "" && t.ResourceID != g.name || t.ResourceType != "" && t.ResourceType != resourceType {
			return awsfault.Errorf(invalid, "The tag %.128q is of %.64s %.255q: it must be of the group %s", t.Key, t.ResourceType, t.ResourceID, g.name)
		}
		sets = append(sets, awstag.Tag{Key: t.Key, Value: deref(t.Value)})
		setTag(g.scaling(), v1alpha1.AutoScalingTag{Key: t.Key, Value: v1alpha1.TagValue(deref(t.Value)), PropagateAtLaunch: t.PropagateAtLaunch != nil && *t.PropagateAtLaunch})
	}
	_, err := awstag.Read(service, sets)
	return err
}
