// SPDX-License-Identifier: Apache-2.0

package ec2vpc

import (
	"context"
	"crypto/sha256"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// Register adds the actions to the front.
func (a *Actions) Register(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "CreateDefaultVpc", a.createDefaultVpc())
	ec2resource.Register(a.ec2, f, "CreateVpc", a.createVpc())
	ec2resource.Register(a.ec2, f, "DeleteVpc", a.deleteVpc())
	ec2resource.Register(a.ec2, f, "DescribeVpcAttribute", a.describeVpcAttribute())
	ec2resource.Register(a.ec2, f, "DescribeVpcs", a.describeVpcs())
	ec2resource.Register(a.ec2, f, "ModifyVpcAttribute", a.modifyVpcAttribute())
	a.ec2.Tagged(ec2resource.ObjectTags(a.ec2, ec2id.VPC, "vpc", func() *v1alpha1.VPCList { return &v1alpha1.VPCList{} }, func(l *v1alpha1.VPCList) []v1alpha1.VPC { return l.Items },
		func(v *v1alpha1.VPC) *v1alpha1.Tags { return &v.Spec.Tags }, vpcConditions))
}

// vpc is a VPC as EC2 shows it.
type vpc struct {
	VpcID                   string            `filter:"vpc-id"`
	OwnerID                 string            `filter:"owner-id"`
	State                   string            `filter:"state"`
	CidrBlock               string            `filter:"cidr,cidr-block,cidrBlock"`
	CidrBlockAssociationSet []cidrAssociation `filter:"cidr-block-association."`
	DhcpOptionsID           string            `filter:"dhcp-options-id,dhcpOptionsId"`
	InstanceTenancy         string
	IsDefault               bool `filter:"is-default,isDefault"`
	Tags                    []awstag.Tag
}

type cidrAssociation struct {
	AssociationID  string         `filter:"association-id"`
	CidrBlock      string         `filter:"cidr-block"`
	CidrBlockState cidrBlockState `filter:""`
}

type cidrBlockState struct {
	State string `filter:"state"`
}

type describeVpcsInput struct {
	ec2resource.Paged
	VpcIDs []string
}

type describeVpcsOutput struct {
	Vpcs      []vpc
	NextToken string
}

func (a *Actions) describeVpcs() awsfront.Spec[describeVpcsInput, describeVpcsOutput] {
	return awsfront.Spec[describeVpcsInput, describeVpcsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeVpcsInput) (*describeVpcsOutput, error) {
			var all v1alpha1.VPCList
			if err := a.ec2.List(ctx, &all); err != nil {
				return nil, err
			}
			shown := make([]vpc, 0, len(all.Items))
			for i := range all.Items {
				if v := &all.Items[i]; !ec2resource.Leaving(v, v.Status.Conditions) {
					shown = append(shown, showVPC(call, v))
				}
			}
			out := &describeVpcsOutput{}
			var err error
			out.Vpcs, out.NextToken, err = ec2resource.Choose(a.ec2, call, vpcNoun(), shown, in.VpcIDs, in.Paged)
			return out, err
		},
	}
}

func vpcNoun() ec2resource.Noun[vpc] {
	return ec2resource.Noun[vpc]{
		Kind: ec2id.VPC, ID: func(v *vpc) string { return v.VpcID }, Tags: func(v *vpc) map[string]string { return awsresource.TagMap(v.Tags) },
		Fields: awsresource.FiltersOf[vpc](),
		Rules: ec2filter.Rules{Names: []string{ // there is no IPv6
			"ipv6-cidr-block-association.association-id", "ipv6-cidr-block-association.ipv6-cidr-block", "ipv6-cidr-block-association.ipv6-pool",
			"ipv6-cidr-block-association.state",
		}},
	}
}

func showVPC(call *awsfront.Call, v *v1alpha1.VPC) vpc {
	shown := vpc{
		VpcID: v.Name, OwnerID: call.Caller.Account(), State: "pending", CidrBlock: v.Spec.CIDRBlock, DhcpOptionsID: DhcpOptionsID(call),
		InstanceTenancy: "default", IsDefault: v.Spec.IsDefault, Tags: awsresource.ShownTags(v.Spec.Tags),
	}
	if meta.IsStatusConditionTrue(v.Status.Conditions, v1alpha1.ConditionReady) || !v.DeletionTimestamp.IsZero() {
		shown.State = "available"
	}
	association := cidrAssociation{AssociationID: "vpc-cidr-assoc-" + strings.TrimPrefix(v.Name, ec2id.VPC.Prefix), CidrBlock: v.Spec.CIDRBlock}
	association.CidrBlockState.State = "associated"
	shown.CidrBlockAssociationSet = []cidrAssociation{association}
	return shown
}

// vpcConditions are the condition keys of a VPC.
func vpcConditions(_ *awsfront.Call, v *v1alpha1.VPC) map[string][]string {
	return map[string][]string{"ec2:VpcID": {v.Name}, "ec2:Tenancy": {"default"}}
}

// DhcpOptionsID is the id of the one set of DHCP options that an account has, the same for ever.
func DhcpOptionsID(call *awsfront.Call) string {
	sum := sha256.Sum256([]byte("dhcp options of " + call.Caller.Account()))
	return ec2id.DHCPOptions.New([ec2id.Entropy]byte(sum[:]))
}
