// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const staticRBAC = "static/authenticator-rbac.yaml"

// granted returns the rules that subjects of a kind are bound to in a manifest, by namespace. The rules of the whole
// cluster are under "".
func granted(t *testing.T, path, kind, name string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	type key struct{ kind, namespace, name string }
	rules, all := map[key][]rbacv1.PolicyRule{}, map[string][]rbacv1.PolicyRule{}
	var bindings []rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
	for _, document := range documents(t, path) {
		var role rbacv1.Role // and so has a ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		switch role.Kind {
		case "Role", "ClusterRole":
			rules[key{role.Kind, role.Namespace, role.Name}] = role.Rules
		case "RoleBinding", "ClusterRoleBinding":
			var b rbacv1.RoleBinding
			if err := yaml.UnmarshalStrict([]byte(document), &b); err != nil {
				t.Fatal(err)
			}
			bindings = append(bindings, b)
		}
	}
	for _, b := range bindings {
		r, ok := rules[key{b.RoleRef.Kind, b.Namespace, b.RoleRef.Name}]
		if !ok || len(b.Subjects) != 1 || b.Subjects[0].Kind != kind || b.Subjects[0].Name != name {
			t.Errorf("%s: %s %s binds %v of %v to %v", path, b.Kind, b.Name, b.RoleRef, r, b.Subjects)
		}
		all[b.Namespace] = append(all[b.Namespace], r...)
	}
	return all
}

// The user of a static pod's kubeconfig may do what the DaemonSet's service account may.
func TestStaticPodsUserMayDoWhatTheChartGrants(t *testing.T) {
	const name = "muster-authenticator"
	want := granted(t, "manifests/authenticator.yaml", rbacv1.ServiceAccountKind, name)
	if diff := cmp.Diff(want, granted(t, staticRBAC, rbacv1.UserKind, name)); diff != "" || len(want) != 4 {
		t.Errorf("rules by namespace, of %d (-chart +static):\n%s", len(want), diff)
	}
}
