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
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

type modifyRulesInput struct {
	GroupID            string
	SecurityGroupRules []ruleUpdate
	DryRun             bool
}

type ruleUpdate struct {
	SecurityGroupRuleID string
	SecurityGroupRule   ruleRequest
}

type ruleRequest struct {
	IPProtocol                                         string
	FromPort, ToPort                                   *int32
	CidrIpv4, CidrIpv6, ReferencedGroupID, Description string
}

type returned struct{ Return bool }

// modifySecurityGroupRules replaces rules in their places: all of them, or none.
func (a *Actions) modifySecurityGroupRules() awsfront.Spec[modifyRulesInput, returned] {
	return awsfront.Spec[modifyRulesInput, returned]{
		About: func(ctx context.Context, call *awsfront.Call, in *modifyRulesInput) ([]awsfront.Target, error) {
			targets, err := a.aboutGroup(ctx, call, &in.GroupID, "")
			if err != nil {
				return nil, err
			}
			var ids []string
			for _, u := range in.SecurityGroupRules {
				ids = append(ids, u.SecurityGroupRuleID)
			}
			rules, err := a.ec2.About(ctx, call, ec2id.SecurityGroupRule, ids...)
			return append(targets, rules...), err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *modifyRulesInput) (*returned, error) {
			err := a.changeGroup(ctx, in.GroupID, func(g *v1alpha1.SecurityGroup) error {
				groups, err := a.ec2.SecurityGroups(ctx)
				if err != nil {
					return err
				}
				for _, u := range in.SecurityGroupRules {
					was := ruleOf(g, u.SecurityGroupRuleID)
					if was == nil {
						return ec2id.SecurityGroupRule.NotFound(u.SecurityGroupRuleID)
					}
					is, err := u.SecurityGroupRule.rule(call, was.Direction)
					if err != nil {
						return err
					}
					if err := checkPeers([]v1alpha1.SecurityGroupRule{is}, g, groups); err != nil {
						return err
					}
					is.ID, is.Tags = was.ID, was.Tags
					*was = is
				}
				for _, direction := range []v1alpha1.RuleDirection{v1alpha1.RuleIngress, v1alpha1.RuleEgress} {
					if err := checkRules(g, direction); err != nil {
						return err
					}
				}
				return dryrun.Would(in.DryRun)
			})
			return &returned{Return: true}, err
		},
	}
}

// rule is the one rule that the request means.
func (r ruleRequest) rule(call *awsfront.Call, direction v1alpha1.RuleDirection) (v1alpha1.SecurityGroupRule, error) {
	p := ipPermission{IPProtocol: r.IPProtocol, FromPort: r.FromPort, ToPort: r.ToPort}
	if r.CidrIpv4 != "" {
		p.IPRanges = []ipRange{{r.CidrIpv4, r.Description}}
	}
	if r.CidrIpv6 != "" {
		p.Ipv6Ranges = []ipv6Range{{r.CidrIpv6, r.Description}}
	}
	if r.ReferencedGroupID != "" {
		p.UserIDGroupPairs = []groupPair{{GroupID: r.ReferencedGroupID, Description: r.Description}}
	}
	rules, err := rulesOf(call, []ipPermission{p}, direction)
	if err != nil {
		return v1alpha1.SecurityGroupRule{}, err
	}
	if len(rules) != 1 {
		return v1alpha1.SecurityGroupRule{}, awsfault.Errorf(ec2resource.InvalidCombination, "A rule names one of CidrIpv4, CidrIpv6 and ReferencedGroupId")
	}
	return rules[0], nil
}

type describeRulesInput struct {
	GroupID, GroupName            string
	IPPermissions                 []ipPermission
	SecurityGroupRuleDescriptions []ruleDescription
	DryRun                        bool
}

type ruleDescription struct{ SecurityGroupRuleID, Description string }

// describeRules changes what is said of rules.
func (a *Actions) describeRules(direction v1alpha1.RuleDirection) awsfront.Spec[describeRulesInput, returned] {
	return awsfront.Spec[describeRulesInput, returned]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeRulesInput) ([]awsfront.Target, error) {
			return a.aboutGroup(ctx, call, &in.GroupID, in.GroupName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *describeRulesInput) (*returned, error) {
			err := a.changeGroup(ctx, in.GroupID, func(g *v1alpha1.SecurityGroup) error {
				for _, d := range in.SecurityGroupRuleDescriptions {
					r := ruleOf(g, d.SecurityGroupRuleID)
					if r == nil || r.Direction != direction {
						return ec2id.SecurityGroupRule.NotFound(d.SecurityGroupRuleID)
					}
					if err := checkDescription(d.Description); err != nil {
						return err
					}
					r.Description = d.Description
				}
				if len(in.SecurityGroupRuleDescriptions) > 0 && len(in.IPPermissions) == 0 {
					return dryrun.Would(in.DryRun)
				}
				rules, err := a.requestedRules(ctx, call, &permissionsInput{IPPermissions: in.IPPermissions}, g, direction)
				if err != nil {
					return err
				}
				for _, r := range rules {
					at := slices.IndexFunc(g.Spec.Rules, func(o v1alpha1.SecurityGroupRule) bool { return sameRule(o, r) })
					if at < 0 {
						return awsfault.Errorf(unknownRule, "The specified rule does not exist in this security group.")
					}
					g.Spec.Rules[at].Description = r.Description
				}
				return dryrun.Would(in.DryRun)
			})
			return &returned{Return: true}, err
		},
	}
}
