// SPDX-License-Identifier: Apache-2.0

package association

import (
	"context"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// Association is what a subnet, or a VPC as a whole, is tied to.
type Association struct {
	ID string `json:"id"`
	To string `json:"to"`
}

// Associations holds all associations of a VPC: its main route table, and the route tables and network ACLs of its
// subnets. They are one record, so that each change is one write.
type Associations struct {
	VPC string `json:"vpc"`
	// Main is the main route table. Empty is the table that came with the VPC.
	Main Association `json:"main,omitzero"`
	// NoDefaultTable reports whether the table that came with the VPC was deleted, after another had become the main
	// one.
	NoDefaultTable bool `json:"noDefaultTable,omitempty"`
	// Tables are the route tables of subnets that have one of their own, by the subnet's id.
	Tables map[string]Association `json:"tables,omitempty"`
	// ACLs are the network ACLs of subnets, by the subnet's id. A subnet that the map lacks has the default network
	// ACL.
	ACLs map[string]Association `json:"acls,omitempty"`
}

var associationRecords = awsrecord.Kind[Associations]{Type: "vpc-associations"}

func associationsID(vpc string) string { return "associations-of-" + vpc }

// DefaultTable is the id of the main route table that a VPC has from its beginning.
func DefaultTable(vpc string) string {
	return ec2resource.Derived(ec2id.RouteTable, "main route table of "+vpc)
}

// DefaultACL is the id of the network ACL that a VPC has from its beginning.
func DefaultACL(vpc string) string {
	return ec2resource.Derived(ec2id.NetworkACL, "default network ACL of "+vpc)
}

// complete fills in what is there without having been changed.
func (s *Associations) complete(vpc string, subnets []string) {
	s.VPC = vpc
	if s.Main.ID == "" {
		s.Main = Association{ec2resource.Derived(ec2id.RouteAssociation, "main route table of "+vpc), DefaultTable(vpc)}
	}
	there := map[string]bool{}
	if s.ACLs == nil {
		s.ACLs = map[string]Association{}
	}
	for _, subnet := range subnets {
		there[subnet] = true
		if _, ok := s.ACLs[subnet]; !ok {
			s.ACLs[subnet] = Association{ec2resource.Derived(ec2id.ACLAssociation, "network ACL of "+subnet), DefaultACL(vpc)}
		}
	}
	maps.DeleteFunc(s.ACLs, func(subnet string, _ Association) bool { return !there[subnet] })
	maps.DeleteFunc(s.Tables, func(subnet string, _ Association) bool { return !there[subnet] })
}

// Associations are those of all VPCs, by the VPC's id.
func (a *Actions) Associations(ctx context.Context) (map[string]*Associations, error) {
	kept, err := associationRecords.List(ctx, a.ec2.Management)
	if err != nil {
		return nil, ec2resource.RecordsAway(err)
	}
	vpcs, err := a.ec2.VPCs(ctx)
	if err != nil {
		return nil, err
	}
	subnets, err := a.ec2.SubnetsOf(ctx, "")
	if err != nil {
		return nil, err
	}
	of := map[string][]string{}
	for i := range subnets {
		of[subnets[i].Spec.VPCID] = append(of[subnets[i].Spec.VPCID], subnets[i].Name)
	}
	all := map[string]*Associations{}
	for i := range kept {
		if vpcs[kept[i].Data.VPC] != nil {
			all[kept[i].Data.VPC] = &kept[i].Data
		}
	}
	for vpc := range vpcs {
		if all[vpc] == nil {
			all[vpc] = &Associations{}
		}
		all[vpc].complete(vpc, of[vpc])
	}
	return all, nil
}

// Associate changes the associations of a VPC, whose lock is held.
func (a *Actions) Associate(ctx context.Context, vpc string, change func(*Associations) error) error {
	subnets, err := a.ec2.SubnetsOf(ctx, vpc)
	if err != nil {
		return err
	}
	changed := func(r *ec2resource.Record[Associations]) error {
		r.Data.complete(vpc, ec2resource.SubnetNames(subnets))
		return change(&r.Data)
	}
	_, err = associationRecords.Update(ctx, a.ec2.Management, associationsID(vpc), changed)
	if !apierrors.IsNotFound(err) {
		return ec2resource.RecordsAway(err)
	}
	made := &ec2resource.Record[Associations]{ID: associationsID(vpc)}
	if err := changed(made); err != nil {
		return err
	}
	return ec2resource.RecordsAway(associationRecords.Create(ctx, a.ec2.Management, made))
}

// AssociationOf finds an association by its id, among those that are taken of each VPC: its VPC, its subnet, and what
// that is tied to.
func (a *Actions) AssociationOf(ctx context.Context, kind ec2id.Kind, id string, taken func(*Associations) map[string]Association) (vpc, subnet string, to Association, err error) {
	if err := kind.Check(id); err != nil {
		return "", "", to, err
	}
	all, err := a.Associations(ctx)
	if err != nil {
		return "", "", to, err
	}
	for vpc, of := range all {
		for subnet, to := range taken(of) {
			if to.ID == id {
				return vpc, subnet, to, nil
			}
		}
	}
	return "", "", to, kind.NotFound(id)
}

// SweepAssociations removes those of VPCs that are gone.
func (a *Actions) SweepAssociations(ctx context.Context, living map[string]bool) error {
	all := ec2resource.Records[Associations]{EC2: a.ec2, Of: associationRecords, VPC: func(s *Associations) string { return s.VPC }}
	return all.Sweep(ctx, living)
}
