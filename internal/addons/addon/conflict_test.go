// SPDX-License-Identifier: Apache-2.0

package addon_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/addons/addon/addontest"
)

const base = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: coredns, namespace: kube-system}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: coredns, namespace: kube-system}}
`

// refusal is the answer of the API server of Kubernetes 1.36 to an apply that would take two fields from kubectl.
func refusal(causes ...metav1.StatusCause) error {
	return apierrors.NewApplyConflict(causes, "Apply failed with conflicts")
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	deployment := addontest.Parse(t, base)[1]
	found := addon.Conflicts(deployment, refusal(
		metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.replicas", Message: `conflict with "kubectl" using apps/v1`},
		metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: `.spec.template.spec.containers[name="coredns"].resources.limits.memory`, Message: `conflict with "kubectl-client-side-apply" with subresource "x" using apps/v1 at 2026-01-01T00:00:00Z`},
		metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "x"},
	))
	want := []addon.Conflict{
		{"Deployment.apps coredns", ".spec.replicas", "kubectl"},
		{"Deployment.apps coredns", `.spec.template.spec.containers[name="coredns"].resources.limits.memory`, "kubectl-client-side-apply"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
	if got := found[0].String(); got != "Deployment.apps coredns - .spec.replicas (set by kubectl)" {
		t.Errorf("it says %q", got)
	}
	if got := addon.Conflicts(addontest.Parse(t, base)[0], refusal(metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: ".data.Corefile"})); len(got) != 1 || got[0].Object != "ConfigMap coredns" || got[0].Manager != "another manager" {
		t.Errorf("%+v", got)
	}
	if got := addon.Conflicts(deployment, apierrors.NewServiceUnavailable("away")); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestWithout(t *testing.T) {
	t.Parallel()
	const object = `{"labels":{"a.b/c":"1","d":"2"},"set":["x","y"],"list":[{"name":"a","port":53,"v":{"w":1}},{"name":"b]","port":53,"v":{"w":1}}]}`
	for path, want := range map[string]string{
		".labels.a.b/c":                `{"labels":{"d":"2"},"set":["x","y"],"list":[{"name":"a","port":53,"v":{"w":1}},{"name":"b]","port":53,"v":{"w":1}}]}`,
		".labels":                      `{"set":["x","y"],"list":[{"name":"a","port":53,"v":{"w":1}},{"name":"b]","port":53,"v":{"w":1}}]}`,
		`.set[="x"]`:                   `{"labels":{"a.b/c":"1","d":"2"},"set":["y"],"list":[{"name":"a","port":53,"v":{"w":1}},{"name":"b]","port":53,"v":{"w":1}}]}`,
		`.list[name="b]",port=53].v.w`: `{"labels":{"a.b/c":"1","d":"2"},"set":["x","y"],"list":[{"name":"a","port":53,"v":{"w":1}},{"name":"b]","port":53,"v":{}}]}`,
		`.list[name="a"]`:              `{"labels":{"a.b/c":"1","d":"2"},"set":["x","y"],"list":[{"name":"b]","port":53,"v":{"w":1}}]}`,
		`.list[name="none"].v`:         object,
		".none.x":                      object,
		".labels.d.e":                  object,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			u := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(object), &u.Object); err != nil {
				t.Fatal(err)
			}
			got, err := addon.Without(u, []addon.Conflict{{Field: path}})
			if err != nil {
				t.Fatal(err)
			}
			var wanted map[string]any
			if err := json.Unmarshal([]byte(want), &wanted); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wanted, got.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, path := range []string{"", "a", ".", ".a[", ".a[]", ".a[x]", `.a[name="b]`} {
		if _, err := addon.Without(&unstructured.Unstructured{Object: map[string]any{}}, []addon.Conflict{{Field: path}}); err == nil {
			t.Errorf("path %q is read", path)
		}
	}
}

func FuzzWithout(f *testing.F) {
	for _, seed := range []string{".a.b", `.list[name="a"].v`, `.set[="x"]`, ".a[", `.a[x=1,y="]"]`} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, path string) {
		_, _ = addon.Without(&unstructured.Unstructured{Object: map[string]any{"a": map[string]any{"b": "c"}, "set": []any{"x"}}}, []addon.Conflict{{Field: path}})
	})
}
