// SPDX-License-Identifier: Apache-2.0

package ec2securitygroup

import (
	"context"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// Register adds the actions to the front.
func (a *Actions) Register(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "CreateSecurityGroup", a.createSecurityGroup())
	ec2resource.Register(a.ec2, f, "DeleteSecurityGroup", a.deleteSecurityGroup())
	ec2resource.Register(a.ec2, f, "DescribeSecurityGroups", a.describeSecurityGroups())
	ec2resource.Register(a.ec2, f, "DescribeSecurityGroupRules", a.describeSecurityGroupRules())
	ec2resource.Register(a.ec2, f, "AuthorizeSecurityGroupIngress", a.authorizeIngress())
	ec2resource.Register(a.ec2, f, "AuthorizeSecurityGroupEgress", a.authorize(v1alpha1.RuleEgress))
	ec2resource.Register(a.ec2, f, "RevokeSecurityGroupIngress", a.revokeIngress())
	ec2resource.Register(a.ec2, f, "RevokeSecurityGroupEgress", a.revoke(v1alpha1.RuleEgress))
	ec2resource.Register(a.ec2, f, "ModifySecurityGroupRules", a.modifySecurityGroupRules())
	ec2resource.Register(a.ec2, f, "UpdateSecurityGroupRuleDescriptionsIngress", a.describeRules(v1alpha1.RuleIngress))
	ec2resource.Register(a.ec2, f, "UpdateSecurityGroupRuleDescriptionsEgress", a.describeRules(v1alpha1.RuleEgress))
	a.ec2.Tagged(a.groupTagger())
	a.ec2.Tagged(a.ruleTagger())
	a.ec2.VPCUsers = append(a.ec2.VPCUsers, func(ctx context.Context, vpc string) ([]string, error) {
		var ids []string
		groups, err := a.ec2.SecurityGroups(ctx)
		for _, g := range groups {
			if g.Spec.VPCID == vpc && !g.IsDefault() {
				ids = append(ids, g.Name)
			}
		}
		return ids, err
	})
}

// tagOfCluster is the tag that the group of a cluster has by EKS.
const tagOfCluster = "aws:eks:cluster-name"

// groupTags are the tags of a group, with the one that is EKS's.
func groupTags(g *v1alpha1.SecurityGroup) map[string]string {
	tags := awsresource.PlainTags(g.Spec.Tags)
	if g.Spec.ClusterName != "" {
		tags[tagOfCluster] = g.Spec.ClusterName
	}
	return tags
}

func (a *Actions) groupTagger() ec2resource.Tagger {
	return ec2resource.Tagger{
		Kind: ec2id.SecurityGroup, Resource: "security-group",
		About: func(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error) {
			g, err := a.securityGroup(ctx, id)
			if err != nil {
				return awsfront.Target{}, err
			}
			return a.groupTarget(call, g), nil
		},
		Change: func(ctx context.Context, id string, change func(map[string]string) (map[string]string, error)) error {
			return a.changeGroup(ctx, id, func(g *v1alpha1.SecurityGroup) error {
				changed, err := change(groupTags(g))
				if err != nil {
					return err
				}
				delete(changed, tagOfCluster)
				g.Spec.Tags = awsresource.KeptTags(changed)
				return nil
			})
		},
		All: func(ctx context.Context) (map[string]v1alpha1.Tags, error) {
			all := map[string]v1alpha1.Tags{}
			groups, err := a.ec2.SecurityGroups(ctx)
			for i := range groups {
				all[groups[i].Name] = awsresource.KeptTags(groupTags(&groups[i]))
			}
			return all, err
		},
	}
}

func (a *Actions) groupTarget(call *awsfront.Call, g *v1alpha1.SecurityGroup) awsfront.Target {
	return a.ec2.Target(call, "security-group", g.Name, awsresource.KeptTags(groupTags(g)), map[string][]string{
		"ec2:SecurityGroupID": {g.Name}, "ec2:Vpc": {a.ec2.ARN(call, "vpc/"+g.Spec.VPCID)},
	})
}

// securityGroup reads one by its id.
func (a *Actions) securityGroup(ctx context.Context, id string) (*v1alpha1.SecurityGroup, error) {
	g := &v1alpha1.SecurityGroup{}
	if err := a.ec2.Get(ctx, ec2id.SecurityGroup, id, g); err != nil {
		return nil, err
	}
	if ec2resource.Gone(g) {
		return nil, ec2id.SecurityGroup.NotFound(id)
	}
	return g, nil
}

// changeGroup changes one by its id.
func (a *Actions) changeGroup(ctx context.Context, id string, change func(*v1alpha1.SecurityGroup) error) error {
	g := &v1alpha1.SecurityGroup{}
	return a.ec2.Change(ctx, ec2id.SecurityGroup, id, g, func() error {
		if ec2resource.Gone(g) {
			return ec2id.SecurityGroup.NotFound(id)
		}
		return change(g)
	})
}

// groupNamed is the id of a group that a request names by id, or by its name in the default VPC.
func (a *Actions) groupNamed(ctx context.Context, id, name string) (string, error) {
	switch {
	case id != "":
		return id, ec2id.SecurityGroup.Check(id)
	case name == "":
		return "", awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter groupName or groupId")
	}
	own, err := a.vpcs.DefaultVPC(ctx)
	if err != nil {
		return "", err
	}
	groups, err := a.ec2.SecurityGroups(ctx)
	if err != nil {
		return "", err
	}
	vpc := ""
	if own != nil {
		vpc = own.Name
	}
	for _, g := range groups {
		if g.Spec.VPCID == vpc && g.Spec.GroupName == name {
			return g.Name, nil
		}
	}
	return "", awsfault.Errorf("InvalidGroup.NotFound", "The security group '%.255s' does not exist in default VPC '%s'", name, vpc)
}

// securityGroup is a group as EC2 shows it.
type securityGroup struct {
	GroupID             string `filter:"group-id"`
	GroupName           string `filter:"group-name"`
	Description         string `filter:"description"`
	OwnerID             string `filter:"owner-id"`
	VpcID               string `filter:"vpc-id"`
	SecurityGroupARN    string
	IPPermissions       []ipPermission `filter:"ip-permission."`
	IPPermissionsEgress []ipPermission `filter:"egress.ip-permission."`
	Tags                []awstag.Tag
}

type describeSecurityGroupsInput struct {
	ec2resource.Paged
	GroupIDs   []string
	GroupNames []string
}

type describeSecurityGroupsOutput struct {
	SecurityGroups []securityGroup
	NextToken      string
}

func (a *Actions) describeSecurityGroups() awsfront.Spec[describeSecurityGroupsInput, describeSecurityGroupsOutput] {
	return awsfront.Spec[describeSecurityGroupsInput, describeSecurityGroupsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeSecurityGroupsInput) (*describeSecurityGroupsOutput, error) {
			ids := slices.Clone(in.GroupIDs)
			for _, name := range in.GroupNames {
				id, err := a.groupNamed(ctx, "", name)
				if err != nil {
					return nil, err
				}
				ids = append(ids, id)
			}
			all, err := a.ec2.SecurityGroups(ctx)
			if err != nil {
				return nil, err
			}
			shown := make([]securityGroup, 0, len(all))
			for i := range all {
				shown = append(shown, a.showGroup(call, &all[i]))
			}
			out := &describeSecurityGroupsOutput{}
			out.SecurityGroups, out.NextToken, err = ec2resource.Choose(a.ec2, call, groupNoun(), shown, ids, in.Paged)
			return out, err
		},
	}
}

func (a *Actions) showGroup(call *awsfront.Call, g *v1alpha1.SecurityGroup) securityGroup {
	return securityGroup{
		GroupID: g.Name, GroupName: g.Spec.GroupName, Description: g.Spec.Description, OwnerID: call.Caller.Account(), VpcID: g.Spec.VPCID,
		SecurityGroupARN: a.ec2.ARN(call, "security-group/"+g.Name), Tags: awstag.Sorted(groupTags(g)),
		IPPermissions:       shownPermissions(call, g.Spec.Rules, v1alpha1.RuleIngress),
		IPPermissionsEgress: shownPermissions(call, g.Spec.Rules, v1alpha1.RuleEgress),
	}
}

// groupNoun is how groups are chosen.
func groupNoun() ec2resource.Noun[securityGroup] {
	return ec2resource.Noun[securityGroup]{
		Kind: ec2id.SecurityGroup, ID: func(g *securityGroup) string { return g.GroupID }, Tags: func(g *securityGroup) map[string]string { return awsresource.TagMap(g.Tags) },
		Fields: awsresource.FiltersOf[securityGroup](),
		Rules: ec2filter.Rules{Names: []string{ // no rule has a value for them
			"egress.ip-permission.group-name", "egress.ip-permission.prefix-list-id", "ip-permission.group-name", "ip-permission.prefix-list-id",
		}},
	}
}
