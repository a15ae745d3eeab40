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

type revokeInput struct {
	permissionsInput
	SecurityGroupRuleIDs []string
}

type revokeOutput struct {
	Return                    bool
	UnknownIPPermissions      []ipPermission
	RevokedSecurityGroupRules []revokedRule
}

type revokedRule struct {
	SecurityGroupRuleID, GroupID, IPProtocol, CidrIpv4, CidrIpv6, ReferencedGroupID, Description string
	IsEgress                                                                                     bool
	FromPort, ToPort                                                                             int32
}

// revoke takes rules away: all of them, or none. Of a group of the default VPC it tells of rules that it has not, as
// EC2 does.
func (a *Actions) revoke(direction v1alpha1.RuleDirection) awsfront.Spec[revokeInput, revokeOutput] {
	return awsfront.Spec[revokeInput, revokeOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *revokeInput) ([]awsfront.Target, error) {
			return a.aboutGroup(ctx, call, &in.GroupID, "")
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *revokeInput) (*revokeOutput, error) {
			out := &revokeOutput{}
			err := a.changeGroup(ctx, in.GroupID, func(g *v1alpha1.SecurityGroup) error {
				ids, unknown, err := a.revoked(ctx, call, in, g, direction)
				if err != nil {
					return err
				}
				*out = revokeOutput{Return: true, UnknownIPPermissions: shownPermissions(call, unknown, direction)}
				for _, id := range ids {
					shown := a.showRule(call, g, *ruleOf(g, id))
					revoked := revokedRule{
						SecurityGroupRuleID: id, GroupID: g.Name, IPProtocol: shown.IPProtocol, CidrIpv4: shown.CidrIpv4, CidrIpv6: shown.CidrIpv6,
						Description: shown.Description, IsEgress: shown.IsEgress, FromPort: shown.FromPort, ToPort: shown.ToPort,
					}
					if shown.ReferencedGroupInfo != nil {
						revoked.ReferencedGroupID = shown.ReferencedGroupInfo.GroupID
					}
					out.RevokedSecurityGroupRules = append(out.RevokedSecurityGroupRules, revoked)
				}
				g.Spec.Rules = slices.DeleteFunc(g.Spec.Rules, func(r v1alpha1.SecurityGroupRule) bool { return slices.Contains(ids, r.ID) })
				return dryrun.Would(in.DryRun)
			})
			return out, err
		},
	}
}

// revoked are the ids of the rules that a request means, and those of the default VPC that the group has not.
func (a *Actions) revoked(ctx context.Context, call *awsfront.Call, in *revokeInput, g *v1alpha1.SecurityGroup, direction v1alpha1.RuleDirection) (ids []string, unknown []v1alpha1.SecurityGroupRule, err error) {
	if len(in.SecurityGroupRuleIDs) > 0 {
		for _, id := range in.SecurityGroupRuleIDs {
			if err := ec2id.SecurityGroupRule.Check(id); err != nil {
				return nil, nil, err
			}
			if r := ruleOf(g, id); r == nil || r.Direction != direction {
				return nil, nil, ec2id.SecurityGroupRule.NotFound(id)
			}
			ids = append(ids, id)
		}
		if len(in.IPPermissions) > 0 {
			return nil, nil, awsfault.Errorf(ec2resource.InvalidCombination, "Rules are named by securityGroupRuleId or by ipPermissions, not by both")
		}
		return ids, nil, nil
	}
	rules, err := a.requestedRules(ctx, call, &in.permissionsInput, g, direction)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range rules {
		at := slices.IndexFunc(g.Spec.Rules, func(o v1alpha1.SecurityGroupRule) bool { return sameRule(o, r) })
		if at >= 0 {
			ids = append(ids, g.Spec.Rules[at].ID)
			continue
		}
		unknown = append(unknown, r)
	}
	if len(unknown) == 0 {
		return ids, nil, nil
	}
	of, err := a.ec2.VPC(ctx, g.Spec.VPCID)
	if err != nil {
		return nil, nil, err
	}
	if !of.Spec.IsDefault {
		return nil, nil, awsfault.Errorf(unknownRule, "The specified rule does not exist in this security group.")
	}
	return ids, unknown, nil
}

// revokeIngressInput takes a group of the default VPC by its name, too.
type revokeIngressInput struct {
	revokeInput
	GroupName string
}

func (a *Actions) revokeIngress() awsfront.Spec[revokeIngressInput, revokeOutput] {
	spec := a.revoke(v1alpha1.RuleIngress)
	return awsfront.Spec[revokeIngressInput, revokeOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *revokeIngressInput) (targets []awsfront.Target, err error) {
			if in.GroupID, err = a.groupNamed(ctx, in.GroupID, in.GroupName); err != nil {
				return nil, err
			}
			return spec.About(ctx, call, &in.revokeInput)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *revokeIngressInput) (*revokeOutput, error) {
			return spec.Do(ctx, call, &in.revokeInput)
		},
	}
}
