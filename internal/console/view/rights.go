// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/explain/diagnosis"
)

// Rights are what a viewer may see: what is not in them is not seen. The zero value sees nothing.
type Rights struct {
	// Machines, Subnets and Roles are for ec2:DescribeInstances, ec2:DescribeSubnets and iam:ListRoles.
	Machines, Subnets, Roles bool
	// Account is for iam:GetAccountAuthorizationDetails: certificates of the account, requests that it refused.
	Account bool
	// Of are the rights in clusters, by the spec.name of the cluster.
	Of map[string]ClusterRights
}

// ClusterRights are what a viewer may see of one cluster. IAM decides about the first ones, and RBAC about the user that the viewer becomes about
// the last.
type ClusterRights struct {
	// Describe is for eks:DescribeCluster; nothing of the cluster is seen without it.
	Describe bool
	// Groups is for eks:ListNodegroups, Updates for eks:ListUpdates, Access for eks:ListAccessEntries, Pods for
	// eks:ListPodIdentityAssociations, Logs for logs:StartQuery and logs:GetQueryResults of its log group.
	Groups, Updates, Access, Pods, Logs bool
	// Nodes and Requests are for listing nodes and certificate signing requests, Tokens for listing secrets of kube-system.
	Nodes, Requests, Tokens bool
}

// whole reports whether all of a cluster is seen.
func (c ClusterRights) whole() bool {
	return c.Describe && c.Groups && c.Updates && c.Access && c.Pods && c.Logs && c.Nodes && c.Requests && c.Tokens
}

// wholly reports whether all of a cluster and its machines is seen: a report about the cluster may quote any part of it.
func (r Rights) wholly(cluster string) bool { return r.Machines && r.Of[cluster].whole() }

// For are the facts that a viewer with rights may see. Nothing of what they share with the facts is changed.
func (f Facts) For(r Rights) Facts {
	seen := func(cluster string, may func(ClusterRights) bool) bool {
		of := r.Of[cluster]
		return of.Describe && may(of)
	}
	names := map[string]string{} // of clusters, by their namespaces
	for i := range f.Clusters {
		names[f.Clusters[i].Namespace] = f.Clusters[i].Spec.Name
	}
	all := Facts{At: f.At, Of: map[string]Cluster{}}
	all.Clusters = kept(f.Clusters, func(c *v1alpha1.Cluster) bool { return r.Of[c.Spec.Name].Describe })
	all.Groups = kept(f.Groups, func(g *v1alpha1.NodeGroup) bool {
		return seen(names[g.Namespace], func(c ClusterRights) bool { return c.Groups })
	})
	all.Updates = kept(f.Updates, func(u *v1alpha1.Update) bool {
		return seen(u.Spec.ClusterName, func(c ClusterRights) bool { return c.Updates })
	})
	all.Machines = kept(f.Machines, func(m *v1alpha1.Machine) bool {
		return r.Machines && (m.Spec.ClusterName == "" || r.Of[m.Spec.ClusterName].Describe)
	})
	all.Associations = kept(f.Associations, func(a *v1alpha1.PodIdentityAssociation) bool {
		return seen(a.Spec.ClusterName, func(c ClusterRights) bool { return c.Pods })
	})
	all.Refusals = kept(f.Refusals, func(one *Refusal) bool {
		return one.Cluster == "" && r.Account || one.Cluster != "" && seen(one.Cluster, func(c ClusterRights) bool { return c.Access })
	})
	if r.Subnets {
		all.Subnets, all.DefaultVPC = f.Subnets, f.DefaultVPC
	}
	if r.Roles {
		all.Roles = f.Roles
	}
	for name, of := range f.Of {
		switch {
		case name == "" && r.Account:
			all.Of[name] = of
		case name != "" && r.Of[name].Describe:
			all.Of[name] = of.only(r.Of[name])
		}
	}
	all.Wrong = f.wrong(r)
	return all
}

// kept are the elements that may be seen.
func kept[T any](all []T, may func(*T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !may(&one) })
}

// only is what is seen of a cluster's own objects.
func (c Cluster) only(r ClusterRights) Cluster {
	var seen Cluster
	if r.Nodes {
		seen.Nodes = c.Nodes
	}
	if r.Requests {
		seen.Reviews, seen.Certificates = c.Reviews, c.Certificates
	}
	if r.Access {
		seen.Access = c.Access
	}
	seen.Access.Tokens = nil
	if r.Tokens {
		seen.Access.Tokens = c.Access.Tokens
	}
	return seen
}

// wrong are the reports about what is seen wholly: their evidence may be of any kind. A report about something else than a machine or a
// cluster needs the rights to all.
func (f Facts) wrong(r Rights) diagnosis.Overview {
	everything := r.Account && r.Machines
	for i := range f.Clusters {
		everything = everything && r.Of[f.Clusters[i].Spec.Name].whole()
	}
	if everything {
		return f.Wrong
	}
	machines := map[string]string{}
	for i := range f.Machines {
		machines[f.Machines[i].Name] = f.Machines[i].Spec.ClusterName
	}
	overview := diagnosis.Overview{Unseen: []diagnosis.Unseen{{What: "all of it", Why: "your rights reach as far as what is shown: docs/console.md says what each part needs"}}}
	for _, report := range f.Wrong.Reports {
		cluster, is := machines[report.Name]
		if is = is && report.Kind == "machine"; report.Kind == "cluster" {
			cluster, is = report.Name, true
		}
		if is && cluster != "" && r.wholly(cluster) {
			overview.Reports = append(overview.Reports, report)
		}
	}
	return overview
}

// Explained reports whether a viewer may see why a machine is as it is, and its logs, which may say anything.
func (f Facts) Explained(r Rights, machine string) bool {
	for i := range f.Machines {
		if m := &f.Machines[i]; m.Name == machine {
			return m.Spec.ClusterName != "" && r.wholly(m.Spec.ClusterName)
		}
	}
	return false
}
