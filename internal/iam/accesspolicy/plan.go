// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/internal/iam/identity"
)

// Binding is what must be there. Its namespace is empty where it is of the whole cluster.
type Binding struct {
	Namespace, Name, ClusterRole string
}

// Plan is what follows from an entry.
type Plan struct {
	Bindings []Binding
	// Problems are policies that cannot be applied, and why. They do not keep the others from being.
	Problems []string
	// Absent are namespaces that are named and not there yet.
	Absent []string
}

// NewPlan says what bindings an entry needs in a cluster with these namespaces.
func NewPlan(entry *accessv1alpha1.AccessEntry, namespaces []string) Plan {
	var p Plan
	if t := entry.Spec.Type; t != "" && t != accessv1alpha1.TypeStandard {
		if len(entry.Spec.AccessPolicies) > 0 {
			p.Problems = append(p.Problems, fmt.Sprintf("entries of type %s have no access policies; remove them", t))
		}
		return p
	}
	for _, policy := range entry.Spec.AccessPolicies {
		found, err := Lookup(policy.PolicyARN)
		if err != nil {
			p.Problems = append(p.Problems, err.Error())
			continue
		}
		name := identity.PolicyGroup(entry.Name) + ":" + found.Name
		switch policy.Scope.Type {
		case accessv1alpha1.ScopeCluster:
			p.Bindings = append(p.Bindings, Binding{Name: name, ClusterRole: found.ClusterRole})
		case accessv1alpha1.ScopeNamespace:
			for _, namespace := range p.namespaces(policy.Scope.Namespaces, namespaces) {
				p.Bindings = append(p.Bindings, Binding{Namespace: namespace, Name: name, ClusterRole: found.ClusterRole})
			}
		default:
			p.Problems = append(p.Problems, fmt.Sprintf("the scope of %s is %q; it is cluster or namespace", found.Name, policy.Scope.Type))
		}
	}
	return p
}

// namespaces are those of the cluster that the names and patterns mean, each once.
func (p *Plan) namespaces(wanted, there []string) []string {
	var out []string
	for _, pattern := range wanted {
		found := false
		for _, namespace := range there {
			if means(pattern, namespace) {
				out, found = append(out, namespace), true
			}
		}
		if !found && !strings.Contains(pattern, "*") && !slices.Contains(p.Absent, pattern) {
			p.Absent = append(p.Absent, pattern)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// means reports whether a name or a pattern means a namespace. An invalid name, other than *, means none: path.Match
// knows more.
func means(pattern, namespace string) bool {
	if strings.Trim(pattern, "abcdefghijklmnopqrstuvwxyz0123456789-*") != "" {
		return false
	}
	ok, err := path.Match(pattern, namespace)
	return ok && err == nil
}

// concerns reports whether an entry has to do with a namespace.
func concerns(entry *accessv1alpha1.AccessEntry, namespace string) bool {
	for _, policy := range entry.Spec.AccessPolicies {
		for _, pattern := range policy.Scope.Namespaces {
			if means(pattern, namespace) {
				return true
			}
		}
	}
	return false
}
