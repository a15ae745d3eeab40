// SPDX-License-Identifier: Apache-2.0

package networkacl

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/association"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// lastRule is the number of the entry that every ACL ends with, which denies what no other has allowed.
const lastRule = 32767

// keptACL is a network ACL as it is kept. The last entries, which deny everything, are not: every ACL has them.
type keptACL struct {
	VPC     string     `json:"vpc"`
	Entries []aclEntry `json:"entries,omitempty"`
}

// aclEntry is an entry of a network ACL, as it is kept and as EC2 shows it. It is about an IPv4 or an IPv6 range.
type aclEntry struct {
	RuleNumber    int32      `filter:"rule-number" json:"number"`
	Egress        bool       `filter:"egress" json:"egress,omitempty"`
	Protocol      string     `filter:"protocol" json:"protocol"` // a number; -1 is all
	RuleAction    string     `filter:"rule-action" json:"action"`
	CidrBlock     string     `filter:"cidr,omitempty" json:"cidrBlock,omitempty"`
	Ipv6CidrBlock string     `filter:"ipv6-cidr,omitempty" json:"ipv6CidrBlock,omitempty"`
	PortRange     *portRange `filter:"port-range." json:"ports,omitempty"`
	IcmpTypeCode  *icmpType  `filter:"icmp." json:"icmp,omitempty"`
}

type portRange struct {
	From int32 `filter:"from" json:"from"`
	To   int32 `filter:"to" json:"to"`
}

type icmpType struct {
	Type int32 `filter:"type" json:"type"`
	Code int32 `filter:"code" json:"code"`
}

func (a *Actions) networkACLs() ec2resource.Records[keptACL] {
	return ec2resource.Records[keptACL]{
		EC2: a.ec2, Kind: ec2id.NetworkACL, Of: awsrecord.Kind[keptACL]{Type: "network-acl"}, VPC: func(n *keptACL) string { return n.VPC },
		Implied: func(ctx context.Context) ([]ec2resource.Record[keptACL], error) {
			vpcs, err := a.ec2.VPCs(ctx)
			acls := make([]ec2resource.Record[keptACL], 0, len(vpcs))
			for id := range vpcs {
				acls = append(acls, ec2resource.Record[keptACL]{ID: association.DefaultACL(id), Data: keptACL{VPC: id, Entries: []aclEntry{
					{RuleNumber: 100, Egress: true, Protocol: "-1", RuleAction: "allow", CidrBlock: "0.0.0.0/0"},
					{RuleNumber: 100, Protocol: "-1", RuleAction: "allow", CidrBlock: "0.0.0.0/0"},
				}}})
			}
			return acls, err
		},
	}
}

// Register adds the actions to the front.
func (a *Actions) Register(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "CreateNetworkAcl", a.createNetworkACL())
	ec2resource.Register(a.ec2, f, "CreateNetworkAclEntry", a.createNetworkACLEntry())
	ec2resource.Register(a.ec2, f, "DeleteNetworkAcl", a.deleteNetworkACL())
	ec2resource.Register(a.ec2, f, "DeleteNetworkAclEntry", a.deleteNetworkACLEntry())
	ec2resource.Register(a.ec2, f, "DescribeNetworkAcls", a.describeNetworkACLs())
	ec2resource.Register(a.ec2, f, "ReplaceNetworkAclAssociation", a.replaceNetworkACLAssociation())
	ec2resource.Register(a.ec2, f, "ReplaceNetworkAclEntry", a.replaceNetworkACLEntry())
	acls := a.networkACLs()
	a.ec2.Tagged(acls.Tagger("network-acl", func(call *awsfront.Call, r *ec2resource.Record[keptACL]) map[string][]string {
		return map[string][]string{"ec2:NetworkAclID": {r.ID}, "ec2:Vpc": {a.ec2.ARN(call, "vpc/"+r.Data.VPC)}}
	}))
	a.ec2.VPCUsers = append(a.ec2.VPCUsers, func(ctx context.Context, vpc string) (ids []string, err error) {
		all, err := acls.List(ctx)
		for i := range all {
			if all[i].Data.VPC == vpc && all[i].ID != association.DefaultACL(vpc) {
				ids = append(ids, all[i].ID)
			}
		}
		return ids, err
	})
	a.ec2.VPCLeavings = append(a.ec2.VPCLeavings, acls.Sweep)
}

// networkACL is a network ACL as EC2 shows it.
type networkACL struct {
	NetworkACLID string           `filter:"network-acl-id"`
	VpcID        string           `filter:"vpc-id"`
	OwnerID      string           `filter:"owner-id"`
	IsDefault    bool             `filter:"default"`
	Entries      []aclEntry       `filter:"entry."`
	Associations []aclAssociation `filter:"association."`
	Tags         []awstag.Tag
}

type aclAssociation struct {
	NetworkACLAssociationID string `filter:"association-id"`
	NetworkACLID            string `filter:"network-acl-id"`
	SubnetID                string `filter:"subnet-id"`
}

func (a *Actions) showACLs(ctx context.Context, call *awsfront.Call, all []ec2resource.Record[keptACL]) ([]networkACL, error) {
	tied, err := a.associations.Associations(ctx)
	if err != nil {
		return nil, err
	}
	shown := make([]networkACL, 0, len(all))
	for i := range all {
		r := &all[i]
		n := networkACL{
			NetworkACLID: r.ID, VpcID: r.Data.VPC, OwnerID: call.Caller.Account(), IsDefault: r.ID == association.DefaultACL(r.Data.VPC), Tags: awsresource.ShownTags(r.Tags),
			Entries: slices.Clone(r.Data.Entries), Associations: []aclAssociation{},
		}
		for _, egress := range []bool{true, false} {
			n.Entries = append(n.Entries, aclEntry{RuleNumber: lastRule, Egress: egress, Protocol: "-1", RuleAction: "deny", CidrBlock: "0.0.0.0/0"})
		}
		slices.SortFunc(n.Entries, func(a, b aclEntry) int {
			return cmp.Or(cmp.Compare(strconv.FormatBool(b.Egress), strconv.FormatBool(a.Egress)), cmp.Compare(a.RuleNumber, b.RuleNumber))
		})
		if of := tied[r.Data.VPC]; of != nil {
			for _, subnet := range slices.Sorted(maps.Keys(of.ACLs)) {
				if to := of.ACLs[subnet]; to.To == r.ID {
					n.Associations = append(n.Associations, aclAssociation{to.ID, r.ID, subnet})
				}
			}
		}
		shown = append(shown, n)
	}
	return shown, nil
}

type describeNetworkACLsInput struct {
	ec2resource.Paged
	NetworkACLIDs []string
}

type describeNetworkACLsOutput struct {
	NetworkACLs []networkACL
	NextToken   string
}

func (a *Actions) describeNetworkACLs() awsfront.Spec[describeNetworkACLsInput, describeNetworkACLsOutput] {
	acls := ec2resource.Noun[networkACL]{
		Kind: ec2id.NetworkACL, ID: func(n *networkACL) string { return n.NetworkACLID }, Tags: func(n *networkACL) map[string]string { return awsresource.TagMap(n.Tags) },
		Fields: awsresource.FiltersOf[networkACL](),
	}
	return awsfront.Spec[describeNetworkACLsInput, describeNetworkACLsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeNetworkACLsInput) (*describeNetworkACLsOutput, error) {
			all, err := a.networkACLs().List(ctx)
			if err != nil {
				return nil, err
			}
			shown, err := a.showACLs(ctx, call, all)
			if err != nil {
				return nil, err
			}
			out := &describeNetworkACLsOutput{}
			out.NetworkACLs, out.NextToken, err = ec2resource.Choose(a.ec2, call, acls, shown, in.NetworkACLIDs, in.Paged)
			return out, err
		},
	}
}

type createNetworkACLInput struct {
	VpcID             string
	ClientToken       string
	TagSpecifications []ec2resource.TagSpecification
	DryRun            bool
}

type createNetworkACLOutput struct {
	NetworkACL  *networkACL
	ClientToken string
}

func (a *Actions) createNetworkACL() awsfront.Spec[createNetworkACLInput, createNetworkACLOutput] {
	return awsfront.Spec[createNetworkACLInput, createNetworkACLOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createNetworkACLInput) ([]awsfront.Target, error) {
			return a.ec2.AboutNewIn(ctx, call, "network-acl", in.VpcID, in.TagSpecifications)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createNetworkACLInput) (*createNetworkACLOutput, error) {
			tags, err := ec2resource.ReadTags(in.TagSpecifications, "network-acl")
			if err != nil {
				return nil, err
			}
			key, err := ec2resource.TokenOf(call, in.ClientToken)
			if err != nil {
				return nil, err
			}
			defer a.ec2.Locks.Hold(in.VpcID)()
			if _, err := a.ec2.VPC(ctx, in.VpcID); err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			made, err := a.networkACLs().Create(ctx, keptACL{VPC: in.VpcID}, tags["network-acl"], key)
			if err != nil {
				return nil, err
			}
			shown, err := a.showACLs(ctx, call, []ec2resource.Record[keptACL]{*made})
			if err != nil {
				return nil, err
			}
			return &createNetworkACLOutput{&shown[0], in.ClientToken}, nil
		},
	}
}

type deleteNetworkACLInput struct {
	NetworkACLID string
	DryRun       bool
}

func (a *Actions) deleteNetworkACL() awsfront.Spec[deleteNetworkACLInput, struct{}] {
	return awsfront.Spec[deleteNetworkACLInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteNetworkACLInput) ([]awsfront.Target, error) {
			return a.ec2.About(ctx, call, ec2id.NetworkACL, in.NetworkACLID)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *deleteNetworkACLInput) (*struct{}, error) {
			found, release, err := a.networkACLs().Hold(ctx, in.NetworkACLID)
			if err != nil {
				return nil, err
			}
			defer release()
			if found.ID == association.DefaultACL(found.Data.VPC) {
				return nil, awsfault.Errorf(ec2resource.InvalidParameter, "cannot delete default network ACL %s", found.ID)
			}
			shown, err := a.showACLs(ctx, call, []ec2resource.Record[keptACL]{*found})
			if err != nil {
				return nil, err
			}
			var ids []string
			for _, s := range shown[0].Associations {
				ids = append(ids, s.SubnetID)
			}
			if len(ids) > 0 {
				return nil, ec2resource.Depends("networkAcl", found.ID, ids)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return nil, a.networkACLs().Remove(ctx, found.ID)
		},
	}
}
