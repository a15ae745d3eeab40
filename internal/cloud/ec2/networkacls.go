// SPDX-License-Identifier: Apache-2.0

package ec2

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

func (a *api) networkACLs() records[keptACL] {
	return records[keptACL]{
		api: a, kind: ec2id.NetworkACL, of: awsrecord.Kind[keptACL]{Type: "network-acl"}, vpc: func(n *keptACL) string { return n.VPC },
		implied: func(ctx context.Context) ([]record[keptACL], error) {
			vpcs, err := a.vpcs(ctx)
			acls := make([]record[keptACL], 0, len(vpcs))
			for id := range vpcs {
				acls = append(acls, record[keptACL]{ID: defaultACL(id), Data: keptACL{VPC: id, Entries: []aclEntry{
					{RuleNumber: 100, Egress: true, Protocol: "-1", RuleAction: "allow", CidrBlock: "0.0.0.0/0"},
					{RuleNumber: 100, Protocol: "-1", RuleAction: "allow", CidrBlock: "0.0.0.0/0"},
				}}})
			}
			return acls, err
		},
	}
}

func (a *api) registerNetworkACLs(f *awsfront.Front) {
	register(a, f, "CreateNetworkAcl", a.createNetworkACL())
	register(a, f, "CreateNetworkAclEntry", a.createNetworkACLEntry())
	register(a, f, "DeleteNetworkAcl", a.deleteNetworkACL())
	register(a, f, "DeleteNetworkAclEntry", a.deleteNetworkACLEntry())
	register(a, f, "DescribeNetworkAcls", a.describeNetworkACLs())
	register(a, f, "ReplaceNetworkAclAssociation", a.replaceNetworkACLAssociation())
	register(a, f, "ReplaceNetworkAclEntry", a.replaceNetworkACLEntry())
	acls := a.networkACLs()
	a.tagged(acls.tagger("network-acl", func(call *awsfront.Call, r *record[keptACL]) map[string][]string {
		return map[string][]string{"ec2:NetworkAclID": {r.ID}, "ec2:Vpc": {a.arn(call, "vpc/"+r.Data.VPC)}}
	}))
	a.vpcUsers = append(a.vpcUsers, func(ctx context.Context, vpc string) (ids []string, err error) {
		all, err := acls.list(ctx)
		for i := range all {
			if all[i].Data.VPC == vpc && all[i].ID != defaultACL(vpc) {
				ids = append(ids, all[i].ID)
			}
		}
		return ids, err
	})
	a.vpcLeavings = append(a.vpcLeavings, acls.sweep)
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

func (a *api) showACLs(ctx context.Context, call *awsfront.Call, all []record[keptACL]) ([]networkACL, error) {
	tied, err := a.associations(ctx)
	if err != nil {
		return nil, err
	}
	shown := make([]networkACL, 0, len(all))
	for i := range all {
		r := &all[i]
		n := networkACL{
			NetworkACLID: r.ID, VpcID: r.Data.VPC, OwnerID: call.Caller.Account(), IsDefault: r.ID == defaultACL(r.Data.VPC), Tags: awsresource.ShownTags(r.Tags),
			Entries: slices.Clone(r.Data.Entries), Associations: []aclAssociation{},
		}
		for _, egress := range []bool{true, false} {
			n.Entries = append(n.Entries, aclEntry{RuleNumber: lastRule, Egress: egress, Protocol: "-1", RuleAction: "deny", CidrBlock: "0.0.0.0/0"})
		}
		slices.SortFunc(n.Entries, func(a, b aclEntry) int {
			return cmp.Or(cmp.Compare(text(b.Egress), text(a.Egress)), cmp.Compare(a.RuleNumber, b.RuleNumber))
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
	paged
	NetworkACLIDs []string
}

type describeNetworkACLsOutput struct {
	NetworkACLs []networkACL
	NextToken   string
}

func (a *api) describeNetworkACLs() awsfront.Spec[describeNetworkACLsInput, describeNetworkACLsOutput] {
	acls := noun[networkACL]{
		kind: ec2id.NetworkACL, id: func(n *networkACL) string { return n.NetworkACLID }, tags: func(n *networkACL) map[string]string { return awsresource.TagMap(n.Tags) },
		rules: ec2filter.Rules{Names: []string{
			"association.association-id", "association.network-acl-id", "association.subnet-id", "default", "entry.cidr", "entry.egress", "entry.icmp.code", "entry.icmp.type",
			"entry.ipv6-cidr", "entry.port-range.from", "entry.port-range.to", "entry.protocol", "entry.rule-action", "entry.rule-number", "network-acl-id", "owner-id", "vpc-id",
		}},
		values: (*networkACL).values,
	}
	return awsfront.Spec[describeNetworkACLsInput, describeNetworkACLsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeNetworkACLsInput) (*describeNetworkACLsOutput, error) {
			all, err := a.networkACLs().list(ctx)
			if err != nil {
				return nil, err
			}
			shown, err := a.showACLs(ctx, call, all)
			if err != nil {
				return nil, err
			}
			out := &describeNetworkACLsOutput{}
			out.NetworkACLs, out.NextToken, err = choose(a, call, acls, shown, in.NetworkACLIDs, in.paged)
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
			"entry.cidr": e.CidrBlock, "entry.ipv6-cidr": e.Ipv6CidrBlock, "entry.egress": text(e.Egress), "entry.protocol": e.Protocol, "entry.rule-action": e.RuleAction, "entry.rule-number": strconv.Itoa(int(e.RuleNumber)),
		}
		if e.PortRange != nil {
			of["entry.port-range.from"], of["entry.port-range.to"] = strconv.Itoa(int(e.PortRange.From)), strconv.Itoa(int(e.PortRange.To))
		}
		if e.IcmpTypeCode != nil {
			of["entry.icmp.type"], of["entry.icmp.code"] = strconv.Itoa(int(e.IcmpTypeCode.Type)), strconv.Itoa(int(e.IcmpTypeCode.Code))
		}
		values = append(values, of[name])
	}
	values = append(values, map[string]string{"default": text(n.IsDefault), "network-acl-id": n.NetworkACLID, "owner-id": n.OwnerID, "vpc-id": n.VpcID}[name])
	return slices.DeleteFunc(values, func(v string) bool { return v == "" })
}

type createNetworkACLInput struct {
	VpcID             string
	ClientToken       string
	TagSpecifications []tagSpecification
	DryRun            bool
}

type createNetworkACLOutput struct {
	NetworkACL  *networkACL
	ClientToken string
}

func (a *api) createNetworkACL() awsfront.Spec[createNetworkACLInput, createNetworkACLOutput] {
	return awsfront.Spec[createNetworkACLInput, createNetworkACLOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createNetworkACLInput) ([]awsfront.Target, error) {
			return a.aboutNewIn(ctx, call, "network-acl", in.VpcID, in.TagSpecifications)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createNetworkACLInput) (*createNetworkACLOutput, error) {
			tags, err := readTags(in.TagSpecifications, "network-acl")
			if err != nil {
				return nil, err
			}
			key, err := tokenOf(call, in.ClientToken)
			if err != nil {
				return nil, err
			}
			defer a.locks.Hold(in.VpcID)()
			if _, err := a.vpc(ctx, in.VpcID); err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			made, err := a.networkACLs().create(ctx, keptACL{VPC: in.VpcID}, tags["network-acl"], key)
			if err != nil {
				return nil, err
			}
			shown, err := a.showACLs(ctx, call, []record[keptACL]{*made})
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

func (a *api) deleteNetworkACL() awsfront.Spec[deleteNetworkACLInput, struct{}] {
	return awsfront.Spec[deleteNetworkACLInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteNetworkACLInput) ([]awsfront.Target, error) {
			return a.about(ctx, call, ec2id.NetworkACL, in.NetworkACLID)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *deleteNetworkACLInput) (*struct{}, error) {
			found, release, err := a.networkACLs().hold(ctx, in.NetworkACLID)
			if err != nil {
				return nil, err
			}
			defer release()
			if found.ID == defaultACL(found.Data.VPC) {
				return nil, awsfault.Errorf(invalidParameter, "cannot delete default network ACL %s", found.ID)
			}
			shown, err := a.showACLs(ctx, call, []record[keptACL]{*found})
			if err != nil {
				return nil, err
			}
			var ids []string
			for _, s := range shown[0].Associations {
				ids = append(ids, s.SubnetID)
			}
			if len(ids) > 0 {
				return nil, depends("networkAcl", found.ID, ids)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return nil, a.networkACLs().remove(ctx, found.ID)
		},
	}
}
