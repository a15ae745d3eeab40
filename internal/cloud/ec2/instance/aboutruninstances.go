// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"maps"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/template"
	"muster.dev/muster/internal/cloud/launchtemplate"
	"muster.dev/muster/internal/cloud/spotrequest"
)

// aboutRunInstances are the resources that a request uses and makes. Karpenter's and EKS's own policies name them one
// by one. IAM is asked about a missing resource without its properties; the action refuses the resource afterwards.
func (a *Actions) aboutRunInstances(ctx context.Context, call *awsfront.Call, in *runInstancesInput) ([]awsfront.Target, error) {
	data, err := a.launchData(ctx, in)
	if lost(err) != nil {
		return nil, err
	}
	if err != nil {
		data = in.Data
	}
	subnet, profile, err := whereAndAs(ctx, a, in, data)
	if err != nil {
		return nil, err
	}
	zone, vpc := subnet.Spec.AvailabilityZone, a.ec2.ARN(call, "vpc/"+subnet.Spec.VPCID)
	made := map[string][]string{
		"ec2:InstanceType": {data.InstanceType}, "ec2:AvailabilityZone": {zone}, "ec2:Tenancy": {"default"}, "ec2:InstanceMarketType": {string(in.market(data))},
		"ec2:MetadataHttpEndpoint": {"enabled"}, "ec2:MetadataHttpTokens": {"required"},
	}
	if profile != nil {
		made["ec2:InstanceProfile"] = []string{profile.Spec.ARN}
	}
	used, err := aboutUses(ctx, a, call, in, data, subnet)
	if err != nil {
		return nil, err
	}
	targets := []awsfront.Target{
		used[0],
		a.ec2.Target(call, "instance", "*", nil, made),
		a.ec2.Target(call, "network-interface", "*", nil, map[string][]string{"ec2:Subnet": {a.ec2.ARN(call, "subnet/"+subnet.Name)}, "ec2:Vpc": {vpc}, "ec2:AvailabilityZone": {zone}, "ec2:AssociatePublicIpAddress": {"false"}}),
	}
	targets = append(targets, used[1:]...)
	if data.KeyName != "" {
		targets = append(targets, a.ec2.Target(call, "key-pair", data.KeyName, nil, map[string][]string{"ec2:KeyPairName": {data.KeyName}}))
	}
	taggable := map[string]int{"instance": 1, "network-interface": 2}
	if in.isSpot(data) && len(tagsOfType(data, spotrequest.Resource)) > 0 { // EC2 asks about a request that gets tags, and about no other one
		taggable[spotrequest.Resource] = len(targets)
		targets = append(targets, a.ec2.Target(call, spotrequest.Resource, "*", nil, nil))
	}
	if in.LaunchTemplate != nil {
		used, err := a.templates.AboutTemplate(ctx, call, template.NamedTemplate{LaunchTemplateID: in.LaunchTemplate.LaunchTemplateID, LaunchTemplateName: in.LaunchTemplate.LaunchTemplateName})
		if err != nil {
			return nil, err
		}
		for i := range targets {
			targets[i].Conditions["ec2:LaunchTemplate"] = []string{used[0].Resource}
		}
		targets = append(targets, used...)
	}
	return a.addPassRole(ctx, call, aboutTags(call, targets, data, taggable), profile)
}

// whereAndAs finds the subnet and the instance profile of a launch, as IAM is asked about them: a missing subnet is any one, and
// a missing profile is nil.
func whereAndAs(ctx context.Context, a *Actions, in *runInstancesInput, data launchtemplate.Data) (*v1alpha1.Subnet, *v1alpha1.IAMInstanceProfile, error) {
	subnet, err := a.launchSubnet(ctx, in, data)
	if lost(err) != nil {
		return nil, nil, err
	}
	if subnet == nil {
		subnet = &v1alpha1.Subnet{}
		subnet.Name = "*"
	}
	profile, err := a.launchProfile(ctx, data)
	return subnet, profile, lost(err)
}

// aboutTags adds what IAM is asked about the tags that a request gives what it makes. Taggable has the places of what is
// made among the targets, by type.
func aboutTags(call *awsfront.Call, targets []awsfront.Target, data launchtemplate.Data, taggable map[string]int) []awsfront.Target {
	for _, resource := range slices.Sorted(maps.Keys(taggable)) {
		set, i := tagsOfType(data, resource), taggable[resource]
		if len(set) == 0 {
			continue
		}
		targets[i] = ec2resource.RequestTags(targets[i], set)
		creation := targets[i]
		creation.Action, creation.Conditions = "ec2:CreateTags", maps.Clone(creation.Conditions)
		creation.Conditions["ec2:CreateAction"] = []string{call.Action}
		targets = append(targets, creation)
	}
	return targets
}

// aboutUses are the image, the subnet and the security groups of a launch.
func aboutUses(ctx context.Context, a *Actions, call *awsfront.Call, in *runInstancesInput, data launchtemplate.Data, subnet *v1alpha1.Subnet) ([]awsfront.Target, error) {
	image, err := a.images.About(ctx, call, data.ImageID)
	if err != nil {
		return nil, err
	}
	groups, err := askedGroups(ctx, a, in, data, subnet)
	if err != nil {
		return nil, err
	}
	vpc := a.ec2.ARN(call, "vpc/"+subnet.Spec.VPCID)
	used, err := aboutUsed(ctx, call, a.ec2, ec2id.Subnet, subnet.Name, map[string][]string{"ec2:SubnetID": {subnet.Name}, "ec2:Vpc": {vpc}, "ec2:AvailabilityZone": {subnet.Spec.AvailabilityZone}})
	if err != nil {
		return nil, err
	}
	targets := []awsfront.Target{image, used}
	for _, id := range groups {
		used, err := aboutUsed(ctx, call, a.ec2, ec2id.SecurityGroup, id, map[string][]string{"ec2:SecurityGroupID": {id}, "ec2:Vpc": {vpc}})
		if err != nil {
			return nil, err
		}
		targets = append(targets, used)
	}
	return targets, nil
}

// aboutUsed is a resource that a launch uses, as IAM is asked about it: with its tags, by which policies tell those of one
// cluster or team from those of another. A missing resource, or one whose id cannot be, has no tags; the action refuses it
// afterwards.
func aboutUsed(ctx context.Context, call *awsfront.Call, of *ec2resource.EC2, kind ec2id.Kind, id string, conditions map[string][]string) (awsfront.Target, error) {
	about, err := of.About(ctx, call, kind, id)
	if lost(err) != nil {
		return awsfront.Target{}, err
	}
	if err != nil || len(about) == 0 {
		tagger, _ := of.TaggerOf(kind)
		return of.Target(call, tagger.Resource, id, nil, conditions), nil //nolint:nilerr // the action refuses it
	}
	maps.Copy(about[0].Conditions, conditions)
	return about[0], nil
}

// tagsOfType are the tags that a request gives what it makes of a type.
func tagsOfType(data launchtemplate.Data, resource string) map[string]string {
	for _, s := range data.TagSpecifications {
		if s.ResourceType == resource {
			return awsresource.TagMap(s.Tags)
		}
	}
	return nil
}

// addPassRole adds the role of an instance profile: only who may pass it to EC2 may launch machines that have it.
func (a *Actions) addPassRole(ctx context.Context, call *awsfront.Call, targets []awsfront.Target, profile *v1alpha1.IAMInstanceProfile) ([]awsfront.Target, error) {
	if profile == nil || profile.Spec.RoleName == "" {
		return targets, nil
	}
	role := "arn:aws:iam::" + call.Caller.Account() + ":role/" + profile.Spec.RoleName
	var all v1alpha1.IAMRoleList
	if err := a.ec2.List(ctx, &all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if r := &all.Items[i]; r.Spec.Name == profile.Spec.RoleName {
			role = r.Spec.ARN
		}
	}
	return append(targets, awsfront.Target{Action: "iam:PassRole", Resource: role, Conditions: map[string][]string{
		"iam:PassedToService": {"ec2.amazonaws.com"}, "iam:AssociatedResourceArn": {a.ec2.ARN(call, "instance/*")},
	}}), nil
}

// lost returns an error that is not a refusal of the request: what is refused is told after IAM was asked.
func lost(err error) error {
	if fault := (*awsfault.Error)(nil); errors.As(err, &fault) && fault.Cause == nil {
		return nil
	}
	return err
}
