// SPDX-License-Identifier: Apache-2.0

package ec2securitygroup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/storage/efs"
)

type createSecurityGroupInput struct {
	GroupName         string
	Description       string
	VpcID             string
	TagSpecifications []ec2resource.TagSpecification
	DryRun            bool
}

type createSecurityGroupOutput struct {
	GroupID          string
	SecurityGroupARN string
	Tags             []awstag.Tag
}

func (a *Actions) createSecurityGroup() awsfront.Spec[createSecurityGroupInput, createSecurityGroupOutput] {
	return awsfront.Spec[createSecurityGroupInput, createSecurityGroupOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createSecurityGroupInput) ([]awsfront.Target, error) {
			id, err := a.vpcOrDefault(ctx, in.VpcID)
			if err != nil {
				return nil, err
			}
			targets, err := a.ec2.AboutNew(call, "security-group", in.TagSpecifications, map[string][]string{"ec2:Vpc": {a.ec2.ARN(call, "vpc/"+id)}})
			if err != nil {
				return nil, err
			}
			in.VpcID = id
			of, err := a.ec2.About(ctx, call, ec2id.VPC, id)
			return append(targets, of...), err
		},
		Do: a.doCreateSecurityGroup,
	}
}

// vpcOrDefault is the VPC that a request names, or the default one.
func (a *Actions) vpcOrDefault(ctx context.Context, id string) (string, error) {
	if id != "" {
		return id, ec2id.VPC.Check(id)
	}
	own, err := a.vpcs.DefaultVPC(ctx)
	if err == nil && own == nil {
		return "", awsfault.Errorf("VPCIdNotSpecified", "No default VPC for this user")
	}
	if err != nil {
		return "", err
	}
	return own.Name, nil
}

func (a *Actions) doCreateSecurityGroup(ctx context.Context, call *awsfront.Call, in *createSecurityGroupInput) (*createSecurityGroupOutput, error) {
	const invalid = "Value (%.300s) for parameter %s is invalid. Names and descriptions have up to 255 characters of: a-z, A-Z, 0-9, spaces, and ._-:/()#,@[]+=&;{}!$*"
	switch {
	case in.GroupName == "":
		return nil, awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter GroupName")
	case in.Description == "":
		return nil, awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter GroupDescription")
	case in.GroupName == v1alpha1.DefaultSecurityGroup:
		return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Cannot use reserved security group name: default")
	case !plainText(in.GroupName) || strings.HasPrefix(in.GroupName, ec2id.SecurityGroup.Prefix):
		return nil, awsfault.Errorf(ec2resource.InvalidParameter, invalid, in.GroupName, "GroupName")
	case !plainText(in.Description):
		return nil, awsfault.Errorf(ec2resource.InvalidParameter, invalid, in.Description, "GroupDescription")
	}
	tags, err := ec2resource.ReadTags(in.TagSpecifications, "security-group")
	if err != nil {
		return nil, err
	}
	defer a.ec2.Locks.Hold("security groups of " + in.VpcID)()
	if _, err := a.ec2.VPC(ctx, in.VpcID); err != nil {
		return nil, err
	}
	groups, err := a.ec2.SecurityGroups(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		if g.Spec.VPCID == in.VpcID && g.Spec.GroupName == in.GroupName {
			return nil, awsfault.Errorf("InvalidGroup.Duplicate", "The security group '%s' already exists for VPC '%s'", in.GroupName, in.VpcID)
		}
	}
	if err := dryrun.Would(in.DryRun); err != nil {
		return nil, err
	}
	id := ec2resource.NewID(ec2id.SecurityGroup)
	made := &v1alpha1.SecurityGroup{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec: v1alpha1.SecurityGroupSpec{
			VPCID: in.VpcID, GroupName: in.GroupName, Description: in.Description, Tags: awsresource.KeptTags(tags["security-group"]),
			Rules: v1alpha1.FirstRules(id)[1:], // everybody may be sent anything, as of EC2's groups
		},
	}
	if err := a.ec2.Management.Create(ctx, made); err != nil {
		return nil, ec2resource.Away(fmt.Errorf("making a security group: %w", err))
	}
	return &createSecurityGroupOutput{GroupID: id, SecurityGroupARN: a.ec2.ARN(call, "security-group/"+id), Tags: awsresource.ShownTags(made.Spec.Tags)}, nil
}

type deleteSecurityGroupInput struct {
	GroupID, GroupName string
	DryRun             bool
}

type deleteSecurityGroupOutput struct {
	Return  bool
	GroupID string
}

func (a *Actions) deleteSecurityGroup() awsfront.Spec[deleteSecurityGroupInput, deleteSecurityGroupOutput] {
	return awsfront.Spec[deleteSecurityGroupInput, deleteSecurityGroupOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteSecurityGroupInput) ([]awsfront.Target, error) {
			return a.aboutGroup(ctx, call, &in.GroupID, in.GroupName)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteSecurityGroupInput) (*deleteSecurityGroupOutput, error) {
			defer a.ec2.Locks.Hold(in.GroupID)()
			g, err := a.securityGroup(ctx, in.GroupID)
			if err != nil {
				return nil, err
			}
			if g.IsDefault() {
				return nil, awsfault.Errorf("CannotDelete", "the specified group: %q name: %q cannot be deleted by a user", g.Name, g.Spec.GroupName)
			}
			users, err := a.groupUsers(ctx, g)
			if err != nil {
				return nil, err
			}
			if len(users) > 0 {
				return nil, awsfault.Errorf(ec2resource.DependencyViolated, "resource %s has a dependent object: %s", g.Name, some(users))
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			if err := a.ec2.Management.Delete(ctx, g, client.Preconditions{UID: &g.UID}); err != nil && !apierrors.IsNotFound(err) {
				return nil, ec2resource.Away(fmt.Errorf("deleting %s: %w", g.Name, err))
			}
			return &deleteSecurityGroupOutput{Return: true, GroupID: g.Name}, nil
		},
	}
}

// aboutGroup is the group that a request names as IAM is asked about it. It has its id from then on.
func (a *Actions) aboutGroup(ctx context.Context, call *awsfront.Call, id *string, name string) (targets []awsfront.Target, err error) {
	if *id, err = a.groupNamed(ctx, *id, name); err != nil {
		return nil, err
	}
	return a.ec2.About(ctx, call, ec2id.SecurityGroup, *id)
}

// groupUsers are those in a group, and the other groups whose rules name it.
func (a *Actions) groupUsers(ctx context.Context, g *v1alpha1.SecurityGroup) ([]string, error) {
	if g.Spec.ClusterName != "" {
		return []string{"cluster " + g.Spec.ClusterName}, nil
	}
	users, err := a.ec2.MountTargetsThat(ctx, func(t efs.MountTarget) bool { return slices.Contains(t.SecurityGroups, g.Name) })
	if err != nil {
		return nil, err
	}
	interfaces, err := a.networkinterfaces.Interfaces(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, i := range interfaces {
		for _, in := range i.Groups {
			if in.GroupID == g.Name {
				users = append(users, i.NetworkInterfaceID)
			}
		}
	}
	groups, err := a.ec2.SecurityGroups(ctx)
	for _, other := range groups {
		for _, r := range other.Spec.Rules {
			if r.GroupID == g.Name && other.Name != g.Name {
				users = append(users, other.Name)
				break
			}
		}
	}
	return users, err
}

// some names ten at most.
func some(all []string) string {
	const most = 10
	if len(all) > most {
		return strings.Join(all[:most], ", ") + ", …"
	}
	return strings.Join(all, ", ")
}
