// SPDX-License-Identifier: Apache-2.0

package view

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/console/blueprint"
	"muster.dev/muster/internal/machine/instancetype"
	"muster.dev/muster/internal/platform/release"
)

// Create is the page by which clusters and node groups are made.
type Create struct {
	At   time.Time
	Form blueprint.Form
	// Asked reports whether a person filled in something: before that nothing is said to be wrong.
	Asked    bool
	Problems []blueprint.Problem
	// Texts say the same as the form; the list is empty while something is wrong.
	Texts []CreateText
	// Outcome is what was made; nil before.
	Outcome *Made
	// Clusters are those that can get a node group, by their spec.names.
	Clusters []string
	Subnets  []CreateSubnet
	// Roles are those that EKS may assume, and NodeRoles those that machines may have, by their ARNs.
	Roles, NodeRoles []string
}

// CreateText is one text that says the same as the form.
type CreateText struct{ ID, Name, Use, Text string }

// CreateSubnet is a subnet that can be chosen.
type CreateSubnet struct{ ID, VPC, Zone, CIDR string }

// Role is an IAM role that a service may assume.
type Role struct {
	ARN string
	// Service is eks or ec2.
	Service string
}

// Made is what a request made.
type Made struct {
	Objects []MadeObject `json:"objects"`
	// Waiting reports whether some wait until the cluster is ACTIVE: the same request makes them then.
	Waiting bool `json:"waiting"`
}

// MadeObject is one object of a request, and what became of it: created, unchanged or waiting.
type MadeObject struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Did  string `json:"did"`
}

// NewCreate makes the page for the values of a form. Empty ones are filled in.
func NewCreate(f Facts, region string, values url.Values, token string) (Create, error) {
	c := Create{At: f.At, Asked: values.Has(blueprint.FieldToken)}
	for i := range f.Clusters {
		c.Clusters = append(c.Clusters, f.Clusters[i].Spec.Name)
	}
	slices.Sort(c.Clusters)
	for _, r := range f.Roles {
		if r.Service == "eks" {
			c.Roles = append(c.Roles, r.ARN)
		} else {
			c.NodeRoles = append(c.NodeRoles, r.ARN)
		}
	}
	vpc, chosen := vpcOf(f, values.Get(blueprint.FieldCluster))
	private := map[string]bool{}
	for i := range f.Subnets {
		s := &f.Subnets[i]
		private[s.Name] = !s.Spec.MapPublicIPOnLaunch
		if values.Get(blueprint.FieldCluster) == "" || vpc == "" || s.Spec.VPCID == vpc {
			c.Subnets = append(c.Subnets, CreateSubnet{s.Name, s.Spec.VPCID, s.Spec.AvailabilityZone, s.Spec.CIDRBlock})
		}
	}
	slices.SortFunc(c.Subnets, func(a, b CreateSubnet) int {
		return strings.Compare(a.VPC+"\x00"+a.Zone+"\x00"+a.ID, b.VPC+"\x00"+b.Zone+"\x00"+b.ID)
	})
	if !c.Asked {
		values = blueprint.Filled(values.Get(blueprint.FieldCluster), token, chosen)
		if values.Get(blueprint.FieldCluster) == "" && len(c.Roles) > 0 {
			values.Set("roleArn", c.Roles[0])
		}
	}
	c.Form = blueprint.ReadForm(values)
	problems := c.Form.Problems()
	if c.Asked {
		c.Problems = problems
	}
	if len(problems) > 0 {
		return c, nil
	}
	return c, c.render(blueprint.Place{Region: region, Private: private})
}

// render makes the texts.
func (c *Create) render(at blueprint.Place) error {
	for _, t := range []struct {
		id, name, use string
		text          func() (string, error)
	}{
		{"eksctl", "eksctl", "a file for eksctl", func() (string, error) { return c.Form.Eksctl(at) }},
		{"aws", "AWS CLI", "commands", c.Form.Commands},
		{"manifest", "Manifest", "for kubectl --context muster-management apply -f -", c.Form.Manifest},
	} {
		text, err := t.text()
		if err != nil {
			return err
		}
		c.Texts = append(c.Texts, CreateText{t.id, t.name, t.use, text})
	}
	return nil
}

// vpcOf is the VPC of a cluster and its subnets; for a new one, the default VPC's.
func vpcOf(f Facts, cluster string) (vpc string, subnets []string) {
	for i := range f.Clusters {
		if c := &f.Clusters[i]; c.Spec.Name == cluster && cluster != "" {
			vpc = c.Status.VPCID
			for _, id := range c.Status.SubnetIDs {
				subnets = append(subnets, string(id))
			}
			return vpc, subnets
		}
	}
	vpc = f.DefaultVPC
	for i := range f.Subnets {
		if s := &f.Subnets[i]; vpc != "" && s.Spec.VPCID == vpc {
			subnets = append(subnets, s.Name)
		}
	}
	slices.Sort(subnets)
	return vpc, subnets
}

// Value is the text of a field.
func (c Create) Value(field string) string { return c.Form.Values.Get(field) }

// Has reports whether a value of a field is chosen.
func (c Create) Has(field, value string) bool { return slices.Contains(c.Form.Values[field], value) }

// Wrong is what is wrong with a field, in a sentence each.
func (c Create) Wrong(field string) []string {
	var all []string
	for _, p := range c.Problems {
		if p.Field == field {
			all = append(all, p.Message)
		}
	}
	return all
}

// Stray are problems of no field that the page has.
func (c Create) Stray() []string {
	return append(append(c.Wrong(""), c.Wrong(blueprint.FieldToken)...), append(c.Wrong(blueprint.FieldGroups), c.Wrong(blueprint.FieldCluster)...)...)
}

// Field is the name of a field of a node group.
func (c Create) Field(group int, name string) string {
	return "nodeGroups[" + strconv.Itoa(group) + "]." + name
}

// Numbers are those of the node groups.
func (c Create) Numbers() []int {
	all := make([]int, c.Form.Count)
	for i := range all {
		all[i] = i
	}
	return all
}

// More reports whether the form may have another node group.
func (c Create) More() bool { return !c.Form.Exists && c.Form.Count < blueprint.MostGroups }

// Minors are the minors of Kubernetes that can be chosen.
func (c Create) Minors() []string { return release.All().Minors() }

// LoggingTypes are the types of logs of a control plane.
func (c Create) LoggingTypes() []v1alpha1.LoggingType { return v1alpha1.LoggingTypes() }

// Addons are the names of the add-ons.
func (c Create) Addons() []string {
	var all []string
	for _, a := range catalogue.New() {
		if a.Name != karpenter.Name || !c.Form.AutoMode {
			all = append(all, a.Name)
		}
	}
	return all
}

// Types are the names of the instance types.
func (c Create) Types() []string {
	var all []string
	for _, t := range instancetype.All() {
		all = append(all, t.Name)
	}
	return all
}
