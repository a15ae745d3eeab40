// SPDX-License-Identifier: Apache-2.0

package networkacl

import (
	"context"
	"slices"
	"strconv"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/ec2/association"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// The protocols whose entries have more than addresses.
const (
	protocolICMP   = "1"
	protocolTCP    = "6"
	protocolUDP    = "17"
	protocolICMPv6 = "58"
)

type aclEntryInput struct {
	NetworkACLID string
	aclEntry
	DryRun bool
}

func (a *Actions) aboutACLEntry(ctx context.Context, call *awsfront.Call, in *aclEntryInput) ([]awsfront.Target, error) {
	return a.ec2.About(ctx, call, ec2id.NetworkACL, in.NetworkACLID)
}

func (a *Actions) createNetworkACLEntry() awsfront.Spec[aclEntryInput, struct{}] {
	return awsfront.Spec[aclEntryInput, struct{}]{
		About: a.aboutACLEntry,
		Do: func(ctx context.Context, _ *awsfront.Call, in *aclEntryInput) (*struct{}, error) {
			return nil, a.changeEntry(ctx, in, func(n *keptACL, at int) error {
				if at >= 0 {
					return awsfault.Errorf("NetworkAclEntryAlreadyExists", "The network acl entry identified by %d already exists.", in.RuleNumber)
				}
				n.Entries = append(n.Entries, in.aclEntry)
				return nil
			})
		},
	}
}

func (a *Actions) replaceNetworkACLEntry() awsfront.Spec[aclEntryInput, struct{}] {
	return awsfront.Spec[aclEntryInput, struct{}]{
		About: a.aboutACLEntry,
		Do: func(ctx context.Context, _ *awsfront.Call, in *aclEntryInput) (*struct{}, error) {
			return nil, a.changeEntry(ctx, in, func(n *keptACL, at int) error {
				if at < 0 {
					return noEntry(in.RuleNumber)
				}
				n.Entries[at] = in.aclEntry
				return nil
			})
		},
	}
}

type deleteNetworkACLEntryInput struct {
	NetworkACLID string
	RuleNumber   int32
	Egress       bool
	DryRun       bool
}

func (a *Actions) deleteNetworkACLEntry() awsfront.Spec[deleteNetworkACLEntryInput, struct{}] {
	return awsfront.Spec[deleteNetworkACLEntryInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteNetworkACLEntryInput) ([]awsfront.Target, error) {
			return a.ec2.About(ctx, call, ec2id.NetworkACL, in.NetworkACLID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteNetworkACLEntryInput) (*struct{}, error) {
			found, release, err := a.networkACLs().Hold(ctx, in.NetworkACLID)
			if err != nil {
				return nil, err
			}
			defer release()
			if in.RuleNumber == lastRule {
				return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Cannot delete the default rule %d", lastRule)
			}
			if found.Data.at(in.RuleNumber, in.Egress) < 0 {
				return nil, noEntry(in.RuleNumber)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return nil, a.networkACLs().Update(ctx, in.NetworkACLID, func(r *ec2resource.Record[keptACL]) error {
				r.Data.Entries = slices.DeleteFunc(r.Data.Entries, func(e aclEntry) bool { return e.RuleNumber == in.RuleNumber && e.Egress == in.Egress })
				return nil
			})
		},
	}
}

// changeEntry checks an entry and has it put into its ACL, where at is the place of one with its number.
func (a *Actions) changeEntry(ctx context.Context, in *aclEntryInput, put func(n *keptACL, at int) error) error {
	if err := in.check(); err != nil {
		return err
	}
	found, release, err := a.networkACLs().Hold(ctx, in.NetworkACLID)
	if err != nil {
		return err
	}
	defer release()
	change := func(r *ec2resource.Record[keptACL]) error { return put(&r.Data, r.Data.at(in.RuleNumber, in.Egress)) }
	if err := change(found); err != nil {
		return err
	}
	if err := dryrun.Would(in.DryRun); err != nil {
		return err
	}
	return a.networkACLs().Update(ctx, in.NetworkACLID, change)
}

// check refuses what cannot be an entry, and writes the rest as it is kept.
func (e *aclEntry) check() error {
	number, known := map[string]string{"all": "-1", "icmp": protocolICMP, "tcp": protocolTCP, "udp": protocolUDP}[e.Protocol]
	if known {
		e.Protocol = number
	}
	if n, err := strconv.Atoi(e.Protocol); err != nil || n < -1 || n > 255 {
		return awsfault.Errorf(ec2resource.InvalidParameter, "Invalid value '%.50s' for IP protocol. Unknown protocol.", e.Protocol)
	}
	if e.RuleNumber < 1 || e.RuleNumber >= lastRule {
		return awsfault.Errorf(ec2resource.InvalidParameter, "Value (%d) for parameter ruleNumber is invalid. It must be from 1 to %d", e.RuleNumber, lastRule-1)
	}
	if err := ec2resource.Only("ruleAction", e.RuleAction, "allow", "deny"); err != nil {
		return err
	}
	if err := e.checkRange(); err != nil {
		return err
	}
	switch ports := e.Protocol == protocolTCP || e.Protocol == protocolUDP; {
	case ports && e.PortRange == nil:
		return awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter PortRange.From and PortRange.To")
	case ports && (e.PortRange.From < 0 || e.PortRange.To > 65535 || e.PortRange.From > e.PortRange.To):
		return awsfault.Errorf(ec2resource.InvalidParameter, "Invalid TCP/UDP port range: %d to %d", e.PortRange.From, e.PortRange.To)
	case !ports:
		e.PortRange = nil // Terraform sends 0 to 0 with every protocol
	}
	switch icmp := e.Protocol == protocolICMP || e.Protocol == protocolICMPv6 && e.Ipv6CidrBlock != ""; {
	case icmp && e.IcmpTypeCode == nil:
		return awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter Icmp.Type and Icmp.Code")
	case !icmp:
		e.IcmpTypeCode = nil
	}
	return nil
}

// checkRange refuses an entry that has not exactly one range. An IPv6 range is kept and lets nothing through: machines
// have no IPv6.
func (e *aclEntry) checkRange() (err error) {
	switch {
	case e.CidrBlock != "" && e.Ipv6CidrBlock != "":
		return awsfault.Errorf(ec2resource.InvalidCombination, "The request must contain exactly one of cidrBlock, ipv6CidrBlock")
	case e.Ipv6CidrBlock != "":
		e.Ipv6CidrBlock, err = ec2resource.BlockOf("ipv6CidrBlock", e.Ipv6CidrBlock, false)
	default:
		e.CidrBlock, err = ec2resource.BlockOf("cidrBlock", e.CidrBlock, true)
	}
	return err
}

// at is the place of an entry, -1 if there is none.
func (n *keptACL) at(number int32, egress bool) int {
	return slices.IndexFunc(n.Entries, func(e aclEntry) bool { return e.RuleNumber == number && e.Egress == egress })
}

func noEntry(number int32) error {
	return awsfault.Errorf("InvalidNetworkAclEntry.NotFound", "The network acl entry identified by %d does not exist.", number)
}

type replaceNetworkACLAssociationInput struct {
	AssociationID string
	NetworkACLID  string
	DryRun        bool
}

type replaceNetworkACLAssociationOutput struct{ NewAssociationID string }

func (a *Actions) replaceNetworkACLAssociation() awsfront.Spec[replaceNetworkACLAssociationInput, replaceNetworkACLAssociationOutput] {
	return awsfront.Spec[replaceNetworkACLAssociationInput, replaceNetworkACLAssociationOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *replaceNetworkACLAssociationInput) ([]awsfront.Target, error) {
			if in.NetworkACLID == "" {
				return nil, awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter networkAclId")
			}
			acl, err := a.ec2.About(ctx, call, ec2id.NetworkACL, in.NetworkACLID)
			if err != nil {
				return nil, err
			}
			_, subnet, err := a.aclAssociation(ctx, in.AssociationID)
			if ec2resource.IsMissing(err, ec2id.ACLAssociation) { // callers without rights do not learn it
				return append(acl, a.ec2.Target(call, "subnet", "*", nil, nil)), nil
			}
			if err != nil {
				return nil, err
			}
			of, err := a.ec2.About(ctx, call, ec2id.Subnet, subnet)
			return append(acl, of...), err
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *replaceNetworkACLAssociationInput) (*replaceNetworkACLAssociationOutput, error) {
			found, release, err := a.networkACLs().Hold(ctx, in.NetworkACLID)
			if err != nil {
				return nil, err
			}
			defer release()
			vpc, subnet, err := a.aclAssociation(ctx, in.AssociationID)
			if err != nil {
				return nil, err
			}
			if vpc != found.Data.VPC {
				return nil, awsfault.Errorf(ec2resource.InvalidParameter, "network ACL %s and subnet %s belong to different networks", in.NetworkACLID, subnet)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			made := association.Association{ID: ec2resource.NewID(ec2id.ACLAssociation), To: in.NetworkACLID}
			if err := a.associations.Associate(ctx, vpc, func(s *association.Associations) error { s.ACLs[subnet] = made; return nil }); err != nil {
				return nil, err
			}
			return &replaceNetworkACLAssociationOutput{made.ID}, nil
		},
	}
}

// aclAssociation finds an association by its id: its VPC, and its subnet.
func (a *Actions) aclAssociation(ctx context.Context, id string) (vpc, subnet string, err error) {
	vpc, subnet, _, err = a.associations.AssociationOf(ctx, ec2id.ACLAssociation, id, func(s *association.Associations) map[string]association.Association { return s.ACLs })
	return vpc, subnet, err
}
