// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/launchtemplate"
)

// launchGroups are the security groups of the machines that a request makes. An empty result means the VPC's default
// group.
func (a *Actions) launchGroups(ctx context.Context, in *runInstancesInput, data launchtemplate.Data, subnet *v1alpha1.Subnet) ([]string, error) {
	ids, err := namedGroups(ctx, a, in, data, subnet)
	if err != nil {
		return nil, err
	}
	return ids, a.checkGroups(ctx, ids, subnet)
}

// askedGroups are the security groups of a launch that IAM is asked about: those that the request names by id or by name, or
// the VPC's default group, which the machines have otherwise. A name that no group has stands for all groups, and the action
// refuses it afterwards.
func askedGroups(ctx context.Context, a *Actions, in *runInstancesInput, data launchtemplate.Data, subnet *v1alpha1.Subnet) ([]string, error) {
	ids, err := namedGroups(ctx, a, in, data, subnet)
	switch {
	case lost(err) != nil:
		return nil, err
	case err != nil:
		return append(slices.Clone(data.GroupIDs()), "*"), nil //nolint:nilerr // the action refuses it
	case len(ids) == 0 && subnet.Spec.VPCID != "":
		return []string{v1alpha1.DefaultSecurityGroupID(subnet.Spec.VPCID)}, nil
	}
	return ids, nil
}

// namedGroups are the ids of the security groups that a request names by id or by name.
func namedGroups(ctx context.Context, a *Actions, in *runInstancesInput, data launchtemplate.Data, subnet *v1alpha1.Subnet) ([]string, error) {
	ids := slices.Clone(data.GroupIDs())
	if len(in.SecurityGroups) > 0 {
		var all v1alpha1.SecurityGroupList
		if err := a.ec2.List(ctx, &all); err != nil {
			return nil, err
		}
		for _, name := range in.SecurityGroups {
			at := slices.IndexFunc(all.Items, func(g v1alpha1.SecurityGroup) bool {
				return g.Spec.VPCID == subnet.Spec.VPCID && g.Spec.GroupName == name
			})
			if at < 0 {
				return nil, awsfault.Errorf("InvalidGroup.NotFound", "The security group '%.255s' does not exist in VPC '%s'", name, subnet.Spec.VPCID)
			}
			ids = append(ids, all.Items[at].Name)
		}
	}
	return ids, nil
}

// checkGroupsOf refuses security groups that an instance cannot have.
func (a *Actions) checkGroupsOf(ctx context.Context, m *v1alpha1.Machine, ids []string) error {
	subnet := &v1alpha1.Subnet{}
	if err := a.ec2.Get(ctx, ec2id.Subnet, string(m.Spec.SubnetID), subnet); err != nil {
		return err
	}
	return a.checkGroups(ctx, ids, subnet)
}

// checkGroups refuses security groups that are not there, or of another VPC than a subnet.
func (a *Actions) checkGroups(ctx context.Context, ids []string, subnet *v1alpha1.Subnet) error {
	for _, id := range ids {
		group := &v1alpha1.SecurityGroup{}
		if err := a.ec2.Get(ctx, ec2id.SecurityGroup, id, group); err != nil {
			return err
		}
		if group.Spec.VPCID != subnet.Spec.VPCID {
			return awsfault.Errorf("InvalidParameter", "Security group %s and subnet %s belong to different networks.", id, subnet.Name)
		}
	}
	return nil
}
