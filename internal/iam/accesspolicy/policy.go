// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rolePrefix begins the names of the cluster roles that only access policies use.
const rolePrefix = "muster:access-policy:"

const arnMiddle = ":eks::aws:cluster-access-policy/"

// Policy is an access policy that there is.
type Policy struct {
	Name string
	// ClusterRole says what it allows.
	ClusterRole string
}

// Policies are those that can be used. Four are what Kubernetes itself calls cluster-admin, admin, edit and view
// (User-facing roles), which EKS's follow and which also know the kinds that others add to the cluster. EKS's
// AmazonEKSAdminViewPolicy reads everything, secrets too, and has a role of its own.
func Policies() []Policy {
	return []Policy{
		{"AmazonEKSClusterAdminPolicy", "cluster-admin"},
		{"AmazonEKSAdminPolicy", "admin"},
		{"AmazonEKSAdminViewPolicy", rolePrefix + "AmazonEKSAdminViewPolicy"},
		{"AmazonEKSEditPolicy", "edit"},
		{"AmazonEKSViewPolicy", "view"},
	}
}

// Lookup finds a policy by its ARN, in any partition. The error says why there is none.
func Lookup(arn string) (Policy, error) {
	partition, name, ok := strings.Cut(arn, arnMiddle)
	if !ok || !strings.HasPrefix(partition, "arn:aws") || strings.Trim(partition[len("arn:aws"):], "abcdefghijklmnopqrstuvwxyz-") != "" {
		return Policy{}, fmt.Errorf("%q is not an access policy; its ARN is arn:aws%sNAME", arn, arnMiddle)
	}
	for _, p := range Policies() {
		if p.Name == name {
			return p, nil
		}
	}
	var names []string
	for _, p := range Policies() {
		names = append(names, p.Name)
	}
	why := "is not known"
	switch {
	case slices.Contains([]string{"AmazonEKSAutoNodePolicy", "AmazonEKSHybridPolicy"}, name):
		why = "is for nodes, whose rights come from the type of their entry"
	case strings.HasPrefix(name, "AmazonEKS") && (strings.HasSuffix(name, "ClusterPolicy") || strings.HasSuffix(name, "NetworkingPolicy")),
		strings.HasPrefix(name, "AmazonEKSBlockStorage"), strings.HasPrefix(name, "AmazonEKSLoadBalancing"), strings.HasPrefix(name, "AmazonEKSCompute"):
		why = "is for EKS's own controllers, which do not run here"
	case !strings.HasPrefix(name, "AmazonEKS"):
		why = "is for another service of AWS, which does not run here"
	}
	return Policy{}, fmt.Errorf("%s %s; there are %s; for anything else give the entry a group and bind that by RBAC", name, why, strings.Join(names, ", "))
}

// Roles are the cluster roles that a cluster must have for the policies, beside those it has anyway. The installation
// of muster makes them: the part that binds them may not change them.
func Roles() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: rolePrefix + "AmazonEKSAdminViewPolicy"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}},
	}}
}

// Rules are the rights that the part needs itself, and no others.
func Rules() []rbacv1.PolicyRule {
	var roles []string
	for _, p := range Policies() {
		roles = append(roles, p.ClusterRole)
	}
	slices.Sort(roles)
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"access.muster.dev"}, Resources: []string{"accessentries"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"access.muster.dev"}, Resources: []string{"accessentries/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterrolebindings", "rolebindings"}, Verbs: []string{"list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: roles, Verbs: []string{"bind"}},
	}
}
