// SPDX-License-Identifier: Apache-2.0

package ec2securitygroup

import (
	"context"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// permissionsInput is how a request says which rules it is about: permissions, or one range as its own parameters.
type permissionsInput struct {
	GroupID          string
	IPPermissions    []ipPermission
	IPProtocol       string
	FromPort, ToPort *int32
	CidrIP           string
	DryRun           bool
}

// rules are those that the request means. Groups that it names are those of the group's VPC.
func (a *Actions) requestedRules(ctx context.Context, call *awsfront.Call, in *permissionsInput, g *v1alpha1.SecurityGroup, direction v1alpha1.RuleDirection) ([]v1alpha1.SecurityGroupRule, error) {
	permissions := slices.Clone(in.IPPermissions)
	if in.IPProtocol != "" || in.CidrIP != "" {
		permissions = append(permissions, ipPermission{IPProtocol: in.IPProtocol, FromPort: in.FromPort, ToPort: in.ToPort, IPRanges: []ipRange{{CidrIP: in.CidrIP}}})
	}
	groups, err := a.ec2.SecurityGroups(ctx)
	if err != nil {
		return nil, err
	}
	for i := range permissions {
		permissions[i].UserIDGroupPairs = slices.Clone(permissions[i].UserIDGroupPairs)
		for j := range permissions[i].UserIDGroupPairs {
			pair := &permissions[i].UserIDGroupPairs[j]
			at := slices.IndexFunc(groups, func(o v1alpha1.SecurityGroup) bool {
				return o.Spec.VPCID == g.Spec.VPCID && pair.GroupID == "" && o.Spec.GroupName == pair.GroupName
			})
			if at >= 0 {
				pair.GroupID = groups[at].Name
			}
		}
	}
	rules, err := rulesOf(call, permissions, direction)
	if err != nil {
		return nil, err
	}
	return rules, checkPeers(rules, g, groups)
}

// checkPeers refuses rules about groups that are not there or are of another VPC.
func checkPeers(rules []v1alpha1.SecurityGroupRule, g *v1alpha1.SecurityGroup, groups []v1alpha1.SecurityGroup) error {
	for _, r := range rules {
		if r.GroupID == "" || slices.ContainsFunc(g.Spec.Rules, func(o v1alpha1.SecurityGroupRule) bool { return sameRule(o, r) }) { // it may have gone since
			continue
		}
		at := slices.IndexFunc(groups, func(o v1alpha1.SecurityGroup) bool { return o.Name == r.GroupID })
		if at < 0 {
			return ec2id.SecurityGroup.NotFound(r.GroupID)
		}
		if groups[at].Spec.VPCID != g.Spec.VPCID {
			return awsfault.Errorf("InvalidGroup.NotFound", "You have specified two resources that belong to different networks.")
		}
	}
	return nil
}

// checkRules refuses a group with a rule twice, or with too many.
func checkRules(g *v1alpha1.SecurityGroup, direction v1alpha1.RuleDirection) error {
	count := 0
	for i, r := range g.Spec.Rules {
		if r.Direction == direction {
			count++
		}
		if slices.ContainsFunc(g.Spec.Rules[:i], func(o v1alpha1.SecurityGroupRule) bool { return sameRule(o, r) }) {
			return awsfault.Errorf(duplicateRule, "the specified rule %q already exists", ruleText(r))
		}
	}
	if count > MostRules {
		return awsfault.Errorf(tooManyRules, "The maximum number of rules per security group has been reached: %s would have %d, and there may be %d in one direction", g.Name, count, MostRules)
	}
	return nil
}

type authorizeInput struct {
	permissionsInput
	TagSpecifications []ec2resource.TagSpecification
}

type authorizeOutput struct {
	Return             bool
	SecurityGroupRules []groupRule
}

// authorize adds rules: all of them, or none.
func (a *Actions) authorize(direction v1alpha1.RuleDirection) awsfront.Spec[authorizeInput, authorizeOutput] {
	const resource = "security-group-rule"
	return awsfront.Spec[authorizeInput, authorizeOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *authorizeInput) ([]awsfront.Target, error) {
			targets, err := a.aboutGroup(ctx, call, &in.GroupID, "")
			if err != nil || len(in.TagSpecifications) == 0 {
				return targets, err
			}
			rules, err := a.ec2.AboutNew(call, resource, in.TagSpecifications, nil)
			return append(targets, rules...), err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *authorizeInput) (*authorizeOutput, error) {
			tags, err := ec2resource.ReadTags(in.TagSpecifications, resource)
			if err != nil {
				return nil, err
			}
			out := &authorizeOutput{Return: true}
			err = a.changeGroup(ctx, in.GroupID, func(g *v1alpha1.SecurityGroup) error {
				rules, err := a.requestedRules(ctx, call, &in.permissionsInput, g, direction)
				if err != nil {
					return err
				}
				out.SecurityGroupRules = nil
				for _, r := range rules {
					r.ID, r.Tags = ec2resource.NewID(ec2id.SecurityGroupRule), awsresource.KeptTags(tags[resource])
					g.Spec.Rules = append(g.Spec.Rules, r)
					out.SecurityGroupRules = append(out.SecurityGroupRules, a.showRule(call, g, r))
				}
				if err := checkRules(g, direction); err != nil {
					return err
				}
				return dryrun.Would(in.DryRun)
			})
			return out, err
		},
	}
}

// authorizeIngressInput takes a group of the default VPC by its name, too.
type authorizeIngressInput struct {
	authorizeInput
	GroupName string
}

func (a *Actions) authorizeIngress() awsfront.Spec[authorizeIngressInput, authorizeOutput] {
	spec := a.authorize(v1alpha1.RuleIngress)
	return awsfront.Spec[authorizeIngressInput, authorizeOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *authorizeIngressInput) (targets []awsfront.Target, err error) {
			if in.GroupID, err = a.groupNamed(ctx, in.GroupID, in.GroupName); err != nil {
				return nil, err
			}
			return spec.About(ctx, call, &in.authorizeInput)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *authorizeIngressInput) (*authorizeOutput, error) {
			return spec.Do(ctx, call, &in.authorizeInput)
		},
	}
}
