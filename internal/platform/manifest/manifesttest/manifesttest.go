// SPDX-License-Identifier: Apache-2.0

// Package manifesttest checks the objects of manifests in tests: against a golden file, against the types of the API
// server, and for rights that they should not give.
package manifesttest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden compares objects with a golden file, which -update rewrites.
func Golden(t *testing.T, path string, objects []*unstructured.Unstructured) {
	t.Helper()
	var got strings.Builder
	for _, object := range objects {
		raw, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n" + string(raw))
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s differs (-want +got); rewrite it with -update if that is meant:\n%s", path, diff)
	}
}

// Typed reads an object as the API server does that is asked to be strict: no field may be unknown to it.
func Typed(t *testing.T, object *unstructured.Unstructured) runtime.Object {
	t.Helper()
	if object.GetKind() == "APIService" || object.GetKind() == "GatewayClass" { // their types are of modules that are not linked; stories apply them
		return object
	}
	raw, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	decoded, _, err := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return decoded
}

// Whole checks that each object has a kind and a name, is there once, is filled in, and is bound to a role that is
// among the objects, that is one of upstream's, or that is a ClusterRole of these names.
func Whole(t *testing.T, objects []*unstructured.Unstructured, clusterRoles ...string) {
	t.Helper()
	seen := map[string]bool{}
	for _, object := range objects {
		id := fmt.Sprintf("%s/%s %s/%s", object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName())
		if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
			t.Errorf("%q lacks its kind or name", id)
		}
		if seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
		Typed(t, object)
		raw, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "{{") || strings.Contains(string(raw), "<no value>") {
			t.Errorf("%s is not filled in: %s", id, raw)
		}
	}
	for _, name := range clusterRoles {
		seen["rbac.authorization.k8s.io/v1/ClusterRole /"+name] = true
	}
	// A binding to a role that is in no set is to one of upstream's, which begin with system: or are among these.
	upstreams := []string{"cluster-admin", "extension-apiserver-authentication-reader"}
	for _, object := range objects {
		var ref rbacv1.RoleRef
		switch binding := Typed(t, object).(type) {
		case *rbacv1.ClusterRoleBinding:
			ref = binding.RoleRef
		case *rbacv1.RoleBinding:
			ref = binding.RoleRef
		default:
			continue
		}
		namespace := ""
		if ref.Kind == "Role" {
			namespace = object.GetNamespace()
		}
		if !seen[fmt.Sprintf("rbac.authorization.k8s.io/v1/%s %s/%s", ref.Kind, namespace, ref.Name)] && !strings.HasPrefix(ref.Name, "system:") && !slices.Contains(upstreams, ref.Name) {
			t.Errorf("%s is bound to the unknown role %s", object.GetName(), ref.Name)
		}
	}
}

// Bindings checks who is bound to which role: all of it, so that nobody gets another without the reader of the test
// seeing it.
func Bindings(t *testing.T, objects []*unstructured.Unstructured, want ...string) {
	t.Helper()
	var got []string
	for _, object := range objects {
		var subjects []rbacv1.Subject
		role := ""
		switch binding := Typed(t, object).(type) {
		case *rbacv1.ClusterRoleBinding:
			subjects, role = binding.Subjects, binding.RoleRef.Name
		case *rbacv1.RoleBinding:
			subjects, role = binding.Subjects, binding.RoleRef.Name+" in "+binding.Namespace
		}
		for _, subject := range subjects {
			got = append(got, fmt.Sprintf("%s %s: %s", subject.Kind, subject.Name, role))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}
}

// Exception is a right that Narrow lets objects give.
type Exception string

// ReadsSecrets lets roles read Secrets.
const ReadsSecrets Exception = "reads Secrets"

// Narrow checks that no role has a wildcard, but for cluster-admin, or a right by which its holder gets all others.
func Narrow(t *testing.T, objects []*unstructured.Unstructured, exceptions ...Exception) {
	t.Helper()
	for _, object := range objects {
		var rules []rbacv1.PolicyRule
		switch role := Typed(t, object).(type) {
		case *rbacv1.ClusterRole:
			rules = role.Rules
		case *rbacv1.Role:
			rules = role.Rules
		}
		for _, rule := range rules {
			all := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs)
			if slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "*") }) && object.GetName() != "cluster-admin" {
				t.Errorf("%s has a wildcard: %+v", object.GetName(), rule)
			}
			for _, resource := range rule.Resources {
				reads := slices.Contains(exceptions, ReadsSecrets) && !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
				if resource == "secrets" && !reads || resource == "serviceaccounts/token" || slices.Contains(rule.Verbs, "impersonate") || slices.Contains(rule.Verbs, "escalate") || slices.Contains(rule.Verbs, "bind") {
					t.Errorf("%s may too much: %+v", object.GetName(), rule)
				}
			}
		}
	}
}
