// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsrecord"
)

// association is what a subnet, or a VPC as a whole, is tied to.
type association struct {
	ID string `json:"id"`
	To string `json:"to"`
}

// associations holds all associations of a VPC: its main route table, and the route tables and network ACLs of its subnets. They are one record, so
// that each change is one write.
type associations struct {
	VPC string `json:"vpc"`
	// Main is the main route table. Empty is the table that came with the VPC.
	Main association `json:"main,omitzero"`
	// NoDefaultTable reports whether the table that came with the VPC was deleted, after another had become the main one.
	NoDefaultTable bool `json:"noDefaultTable,omitempty"`
	// Tables are the route tables of subnets that have one of their own, by the subnet's id.
	Tables map[string]association `json:"tables,omitempty"`
	// ACLs are the network ACLs of subnets, by the subnet's id. A subnet that the map lacks has the default network ACL.
	ACLs map[string]association `json:"acls,omitempty"`
}

var associationRecords = awsrecord.Kind[associations]{Type: "vpc-associations"}

func associationsID(vpc string) string { return "associations-of-" + vpc }

func defaultTable(vpc string) string { return derived(ec2id.RouteTable, "main route table of "+vpc) }

func defaultACL(vpc string) string { return derived(ec2id.NetworkACL, "default network ACL of "+vpc) }

// complete fills in what is there without having been changed.
func (s *associations) complete(vpc string, subnets []string) {
	s.VPC = vpc
	if s.Main.ID == "" {
		s.Main = association{derived(ec2id.RouteAssociation, "main route table of "+vpc), defaultTable(vpc)}
	}
	there := map[string]bool{}
	if s.ACLs == nil {
		s.ACLs = map[string]association{}
	}
	for _, subnet := range subnets {
		there[subnet] = true
		if _, ok := s.ACLs[subnet]; !ok {
			s.ACLs[subnet] = association{derived(ec2id.ACLAssociation, "network ACL of "+subnet), defaultACL(vpc)}
		}
	}
	maps.DeleteFunc(s.ACLs, func(subnet string, _ association) bool { return !there[subnet] })
	maps.DeleteFunc(s.Tables, func(subnet string, _ association) bool { return !there[subnet] })
}

// associations are those of all VPCs, by the VPC's id.
func (a *api) associations(ctx context.Context) (map[string]*associations, error) {
	kept, err := associationRecords.List(ctx, a.Management)
	if err != nil {
		return nil, recordsAway(err)
	}
	vpcs, err := a.vpcs(ctx)
	if err != nil {
		return nil, err
	}
	subnets, err := a.subnetsOf(ctx, "")
	if err != nil {
		return nil, err
	}
	of := map[string][]string{}
	for i := range subnets {
		of[subnets[i].Spec.VPCID] = append(of[subnets[i].Spec.VPCID], subnets[i].Name)
	}
	all := map[string]*associations{}
	for i := range kept {
		if vpcs[kept[i].Data.VPC] != nil {
			all[kept[i].Data.VPC] = &kept[i].Data
		}
	}
	for vpc := range vpcs {
		if all[vpc] == nil {
			all[vpc] = &associations{}
		}
		all[vpc].complete(vpc, of[vpc])
	}
	return all, nil
}

// associate changes the associations of a VPC, whose lock is held.
func (a *api) associate(ctx context.Context, vpc string, change func(*associations) error) error {
	subnets, err := a.subnetsOf(ctx, vpc)
	if err != nil {
		return err
	}
	changed := func(r *record[associations]) error {
		r.Data.complete(vpc, subnetNames(subnets))
		return change(&r.Data)
	}
	_, err = associationRecords.Update(ctx, a.Management, associationsID(vpc), changed)
	if !apierrors.IsNotFound(err) {
		return recordsAway(err)
	}
	made := &record[associations]{ID: associationsID(vpc)}
	if err := changed(made); err != nil {
		return err
	}
	return recordsAway(associationRecords.Create(ctx, a.Management, made))
}

// associationOf finds an association by its id, among those that are taken of each VPC: its VPC, its subnet, and what that is tied to.
func (a *api) associationOf(ctx context.Context, kind ec2id.Kind, id string, taken func(*associations) map[string]association) (vpc, subnet string, to association, err error) {
	if err := kind.Check(id); err != nil {
		return "", "", to, err
	}
	all, err := a.associations(ctx)
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

// sweepAssociations removes those of VPCs that are gone.
func (a *api) sweepAssociations(ctx context.Context, living map[string]bool) error {
	all := records[associations]{api: a, of: associationRecords, vpc: func(s *associations) string { return s.VPC }}
	return all.sweep(ctx, living)
}
