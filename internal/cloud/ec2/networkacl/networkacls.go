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
	"muster.dev/muster/internal/aws/ec2filter"
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
	RuleNumber    int32      `json:"number"`
	Egress        bool       `json:"egress,omitempty"`
	Protocol      string     `json:"protocol"` // a number; -1 is all
	RuleAction    string     `json:"action"`
	CidrBlock     string     `json:"cidrBlock,omitempty"`
	Ipv6CidrBlock string     `json:"ipv6CidrBlock,omitempty"`
	PortRange     *portRange `json:"ports,omitempty"`
	IcmpTypeCode  *icmpType  `json:"icmp,omitempty"`
}

type portRange struct {
	From int32 `json:"from"`
	To   int32 `json:"to"`
}

type icmpType struct {
	Type int32 `json:"type"`
	Code int32 `json:"code"`
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
	NetworkACLID string
	VpcID        string
	OwnerID      string
	IsDefault    bool
	Entries      []aclEntry
	Associations []aclAssociation
	Tags         []awstag.Tag
}

type aclAssociation struct{ NetworkACLAssociationID, NetworkACLID, SubnetID string }

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
			return cmp.Or(cmp.Compare(ec2resource.Text(b.Egress), ec2resource.Text(a.Egress)), cmp.Compare(a.RuleNumber, b.RuleNumber))
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
		Rules: ec2filter.Rules{Names: []string{
			"association.association-id", "association.network-acl-id", "association.subnet-id", "default", "entry.cidr", "entry.egress", "entry.icmp.code", "entry.icmp.type",
			"entry.ipv6-cidr", "entry.port-range.from", "entry.port-range.to", "entry.protocol", "entry.rule-action", "entry.rule-number", "network-acl-id", "owner-id", "vpc-id",
		}},
		Values: (*networkACL).values,
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

func (n *networkACL) values(name string) (values []string) {
	for _, s := range n.Associations {
		values = append(values, map[string]string{
			"association.association-id": s.NetworkACLAssociationID, "association.network-acl-id": s.NetworkACLID, "association.subnet-id": s.SubnetID,
		}[name])
	}
	for _, e := range n.Entries {
		of := map[string]string{
			"entry.cidr": e.CidrBlock, "entry.ipv6-cidr": e.Ipv6CidrBlock, "entry.egress": ec2resource.Text(e.Egress), "entry.protocol": e.Protocol, "entry.rule-action": e.RuleAction, "entry.rule-number": strconv.Itoa(int(e.RuleNumber)),
		}
		if e.PortRange != nil {
			of["entry.port-range.from"], of["entry.port-range.to"] = strconv.Itoa(int(e.PortRange.From)), strconv.Itoa(int(e.PortRange.To))
		}
		if e.IcmpTypeCode != nil {
			of["entry.icmp.type"], of["entry.icmp.code"] = strconv.Itoa(int(e.IcmpTypeCode.Type)), strconv.Itoa(int(e.IcmpTypeCode.Code))
		}
		values = append(values, of[name])
	}
	values = append(values, map[string]string{"default": ec2resource.Text(n.IsDefault), "network-acl-id": n.NetworkACLID, "owner-id": n.OwnerID, "vpc-id": n.VpcID}[name])
	return slices.DeleteFunc(values, func(v string) bool { return v == "" })
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
