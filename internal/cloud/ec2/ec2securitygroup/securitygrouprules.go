// SPDX-License-Identifier: Apache-2.0

package ec2securitygroup

import (
	"context"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// groupRule is a rule as EC2 shows it.
type groupRule struct {
	SecurityGroupRuleID  string `filter:"security-group-rule-id"`
	SecurityGroupRuleARN string
	GroupID              string `filter:"group-id"`
	GroupOwnerID         string
	IsEgress             bool
	IPProtocol           string
	FromPort, ToPort     int32
	CidrIpv4             string
	CidrIpv6             string
	ReferencedGroupInfo  *referencedGroup
	Description          string
	Tags                 []awstag.Tag
}

type referencedGroup struct{ GroupID, UserID, VpcID string }

func (a *Actions) showRule(call *awsfront.Call, g *v1alpha1.SecurityGroup, r v1alpha1.SecurityGroupRule) groupRule {
	shown := groupRule{
		SecurityGroupRuleID: r.ID, SecurityGroupRuleARN: a.ec2.ARN(call, "security-group-rule/"+r.ID), GroupID: g.Name, GroupOwnerID: call.Caller.Account(),
		IsEgress: r.Direction == v1alpha1.RuleEgress, IPProtocol: r.Protocol, FromPort: -1, ToPort: -1, CidrIpv4: r.CIDRIPv4, CidrIpv6: r.CIDRIPv6,
		Description: r.Description, Tags: awsresource.ShownTags(r.Tags),
	}
	if r.FromPort != nil && r.ToPort != nil {
		shown.FromPort, shown.ToPort = *r.FromPort, *r.ToPort
	}
	if r.GroupID != "" {
		shown.ReferencedGroupInfo = &referencedGroup{GroupID: r.GroupID, UserID: call.Caller.Account(), VpcID: g.Spec.VPCID}
	}
	return shown
}

type describeSecurityGroupRulesInput struct {
	ec2resource.Paged
	SecurityGroupRuleIDs []string
}

type describeSecurityGroupRulesOutput struct {
	SecurityGroupRules []groupRule
	NextToken          string
}

func (a *Actions) describeSecurityGroupRules() awsfront.Spec[describeSecurityGroupRulesInput, describeSecurityGroupRulesOutput] {
	return awsfront.Spec[describeSecurityGroupRulesInput, describeSecurityGroupRulesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeSecurityGroupRulesInput) (*describeSecurityGroupRulesOutput, error) {
			groups, err := a.ec2.SecurityGroups(ctx)
			if err != nil {
				return nil, err
			}
			var all []groupRule
			for i := range groups {
				for _, r := range groups[i].Spec.Rules {
					all = append(all, a.showRule(call, &groups[i], r))
				}
			}
			out := &describeSecurityGroupRulesOutput{}
			out.SecurityGroupRules, out.NextToken, err = ec2resource.Choose(a.ec2, call, ruleNoun(), all, in.SecurityGroupRuleIDs, in.Paged)
			return out, err
		},
	}
}

// ruleNoun is how rules are chosen.
func ruleNoun() ec2resource.Noun[groupRule] {
	return ec2resource.Noun[groupRule]{
		Kind: ec2id.SecurityGroupRule, ID: func(r *groupRule) string { return r.SecurityGroupRuleID }, Tags: func(r *groupRule) map[string]string { return awsresource.TagMap(r.Tags) },
		Fields: awsresource.FiltersOf[groupRule](),
	}
}

// ruleTagger is that of rules, which are parts of their group.
func (a *Actions) ruleTagger() ec2resource.Tagger {
	// find returns the group of a rule, and the rule in it.
	find := func(ctx context.Context, id string) (*v1alpha1.SecurityGroup, *v1alpha1.SecurityGroupRule, error) {
		if err := ec2id.SecurityGroupRule.Check(id); err != nil {
			return nil, nil, err
		}
		groups, err := a.ec2.SecurityGroups(ctx)
		if err != nil {
			return nil, nil, err
		}
		for i := range groups {
			if r := ruleOf(&groups[i], id); r != nil {
				return &groups[i], r, nil
			}
		}
		return nil, nil, ec2id.SecurityGroupRule.NotFound(id)
	}
	return ec2resource.Tagger{
		Kind: ec2id.SecurityGroupRule, Resource: "security-group-rule",
		About: func(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error) {
			_, r, err := find(ctx, id)
			if err != nil {
				return awsfront.Target{}, err
			}
			return a.ec2.Target(call, "security-group-rule", id, r.Tags, nil), nil
		},
		Change: func(ctx context.Context, id string, change func(map[string]string) (map[string]string, error)) error {
			of, _, err := find(ctx, id)
			if err != nil {
				return err
			}
			return a.changeGroup(ctx, of.Name, func(g *v1alpha1.SecurityGroup) error {
				r := ruleOf(g, id)
				if r == nil {
					return ec2id.SecurityGroupRule.NotFound(id)
				}
				changed, err := change(awsresource.PlainTags(r.Tags))
				r.Tags = awsresource.KeptTags(changed)
				return err
			})
		},
		All: func(ctx context.Context) (map[string]v1alpha1.Tags, error) {
			all := map[string]v1alpha1.Tags{}
			groups, err := a.ec2.SecurityGroups(ctx)
			for _, g := range groups {
				for _, r := range g.Spec.Rules {
					all[r.ID] = r.Tags
				}
			}
			return all, err
		},
	}
}

// ruleOf is a rule in its group, nil if it has none of the id.
func ruleOf(g *v1alpha1.SecurityGroup, id string) *v1alpha1.SecurityGroupRule {
	i := slices.IndexFunc(g.Spec.Rules, func(r v1alpha1.SecurityGroupRule) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return &g.Spec.Rules[i]
}
