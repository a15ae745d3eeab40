// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accesscrds "muster.dev/muster/api/access/v1alpha1/crds"
	mappingcrds "muster.dev/muster/api/iamauthenticator/v1alpha1/crds"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/iam/accesspolicy"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/kinddefinitions"
)

// SetUp defines the kinds that say who gets into a cluster by IAM, and lets its authenticator read them.
func SetUp(ctx context.Context, api client.Client) error {
	definitions, err := Kinds()
	if err != nil {
		return err
	}
	if err := kinddefinitions.Apply(ctx, api, definitions); err != nil {
		return err
	}
	objects, err := Objects()
	if err != nil {
		return err
	}
	return baseline.Apply(ctx, api, objects)
}

// Kinds are the definitions of AccessEntry and IAMIdentityMapping, which say who gets in by IAM.
func Kinds() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := accesscrds.All()
	if err != nil {
		return nil, err
	}
	mappings, err := mappingcrds.All()
	return append(entries, mappings...), err
}

// Objects are the RBAC objects of the authenticator and of access policies, for server-side apply.
func Objects() ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, object := range authenticatorRoles() {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("rendering the authenticator's roles: %w", err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects, nil
}

// authenticatorRoles are the RBAC objects of the authenticator: it reads the entries and mappings, and binds the roles
// of access policies. The API server believes every answer of the authenticator, which could make itself anybody; the
// roles keep its mistakes small.
func authenticatorRoles() []runtime.Object {
	const name = component.UserAuthenticator
	user := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	reads := []string{"get", "list", "watch"}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	in := func(namespace string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	bind := func(namespace string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: in(namespace), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: user}
	}
	objects := []runtime.Object{
		&rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: in(""), Rules: slices.Concat(accesspolicy.Rules(), []rbacv1.PolicyRule{
			{APIGroups: []string{"iamauthenticator.k8s.aws"}, Resources: []string{"iamidentitymappings"}, Verbs: reads},
			{APIGroups: []string{"iamauthenticator.k8s.aws"}, Resources: []string{"iamidentitymappings/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		})},
		&rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: in(""), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: user},
		&rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: in(metav1.NamespaceSystem), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"aws-auth"}, Verbs: reads},
		}},
		bind(metav1.NamespaceSystem),
		// Where the authentication mode is recorded, and the lease of the replica that applies access policies. RBAC
		// cannot name what does not exist yet.
		&rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: in(policyconfig.HostsNamespace), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"muster-authenticator"}, Verbs: []string{"get", "update"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"muster-access-policies"}, Verbs: []string{"get", "update", "patch"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		}},
		bind(policyconfig.HostsNamespace),
	}
	for _, role := range accesspolicy.Roles() {
		objects = append(objects, role)
	}
	return objects
}
