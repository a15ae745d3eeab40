// SPDX-License-Identifier: Apache-2.0

package addon_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addon"
)

var catalogue = addon.New(addon.Programs{Kubernetes: "v1.36.3", CoreDNS: "v1.15.0", CNI: "v1.9.1", MetricsServer: "v0.9.0", SnapshotController: "v8.7.0", Traefik: "v3.7.5"})

func find(t *testing.T, name string) addon.Addon {
	t.Helper()
	found, ok := catalogue.Find(name)
	if !ok {
		t.Fatalf("there is no add-on %s", name)
	}
	return found
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	var names []string
	for _, a := range catalogue {
		names = append(names, a.Name)
		if !json.Valid([]byte(a.Schema)) || len(a.Schema) > v1alpha1.MaxAddonValues {
			t.Errorf("the schema of %s is not JSON", a.Name)
		}
		if len(a.ClusterVersions) != 1 || a.ClusterVersions[0] != "1.36" {
			t.Errorf("%s is for clusters of %v", a.Name, a.ClusterVersions)
		}
		if (a.ServiceAccount != "") == (a.OnMachines != "") {
			t.Errorf("%s runs in pods and does not: %+v", a.Name, a)
		}
		if _, err := a.Read(""); err != nil {
			t.Errorf("%s refuses to have no configuration: %v", a.Name, err)
		}
	}
	if diff := cmp.Diff([]string{addon.CoreDNS, addon.PodIdentityAgent, addon.KubeProxy, addon.MetricsServer, addon.SnapshotController, addon.Traefik, addon.VPCCNI}, names); diff != "" {
		t.Errorf("add-ons (-want +got):\n%s", diff)
	}
	if got := find(t, addon.CoreDNS).Version; got != "v1.15.0-eksbuild.1" {
		t.Errorf("CoreDNS has the version %s", got)
	}
	if _, ok := catalogue.Find("none"); ok {
		t.Error("there is an add-on none")
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ addon, text, want string }{
		"nothing":         {addon.CoreDNS, "", ""},
		"JSON":            {addon.CoreDNS, `{"replicaCount":3,"resources":{"limits":{"memory":"200Mi"}}}`, ""},
		"YAML":            {addon.CoreDNS, "replicaCount: 3\ntolerations:\n- operator: Exists\n", ""},
		"a percentage":    {addon.CoreDNS, `{"podDisruptionBudget":{"minAvailable":"50%"}}`, ""},
		"another type":    {addon.CoreDNS, `{"replicaCount":"3"}`, "replicaCount"},
		"a fraction":      {addon.CoreDNS, `{"replicaCount":1.5}`, "replicaCount"},
		"too few":         {addon.CoreDNS, `{"replicaCount":-1}`, "replicaCount"},
		"an unknown name": {addon.CoreDNS, `{"replicas":3}`, "replicas"},
		"a deep one":      {addon.CoreDNS, `{"resources":{"claims":[]}}`, "claims"},
		"two wrong":       {addon.CoreDNS, `{"replicas":3,"corefile":1}`, "corefile"},
		"twice":           {addon.CoreDNS, `{"replicaCount":1,"replicaCount":2}`, "already set"},
		"a list":          {addon.CoreDNS, `[]`, "[$: array found, object expected]"},
		"a string":        {addon.CoreDNS, `x`, "[$: string found, object expected]"},
		"no YAML":         {addon.CoreDNS, `{`, "neither JSON nor YAML"},
		"metrics-server":  {addon.MetricsServer, `{"replicas":1}`, ""},
		"not its setting": {addon.MetricsServer, `{"replicaCount":1}`, "replicaCount"},
		"snapshots":       {addon.SnapshotController, `{"replicas":1}`, ""},
		"traefik":         {addon.Traefik, `{"replicas":1,"gateway":false,"defaultIngressClass":false}`, ""},
		"not a choice":    {addon.Traefik, `{"gateway":"no"}`, "gateway"},
		"nothing to set":  {addon.KubeProxy, `{"mode":"ipvs"}`, "mode"},
		"null":            {addon.KubeProxy, `null`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := find(t, c.addon).Read(c.text)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

const base = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: coredns, namespace: kube-system}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: coredns, namespace: kube-system}, data: {Corefile: ours}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: coredns, namespace: kube-system}
  spec:
    template:
      metadata: {labels: {k8s-app: kube-dns}}
      spec:
        tolerations: [{key: ours}]
        containers: [{name: coredns, image: i, resources: {limits: {memory: 1Mi}}}]
`

func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := list.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all
}

func TestObjects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values string
		want   map[string]string // a path, and what is there
	}{
		"nothing": {"", map[string]string{
			"Deployment .spec.replicas":                                       "2",
			"Deployment .spec.template.spec.tolerations":                      `[{"key":"ours"}]`,
			"ConfigMap .data.Corefile":                                        `"ours"`,
			"PodDisruptionBudget .spec.maxUnavailable":                        "1",
			"ServiceAccount .metadata.annotations.eks.amazonaws.com/role-arn": `"arn:r"`,
			"Deployment .spec.template.spec.containers.0.resources.limits":    `{"memory":"1Mi"}`,
			"PodDisruptionBudget .spec.selector.matchLabels.k8s-app":          `"kube-dns"`,
			"Deployment .spec.template.metadata.labels.k8s-app":               `"kube-dns"`,
			"Deployment .spec.template.spec.affinity":                         "null",
			"Deployment .spec.template.spec.nodeSelector":                     "null",
			"Deployment .spec.template.metadata.annotations":                  "null",
			"Deployment .spec.template.spec.topologySpreadConstraints":        "null",
		}},
		"one pod": {"replicaCount: 1", map[string]string{
			"Deployment .spec.replicas": "1",
		}},
		"everything": {`
replicaCount: 4
corefile: mine
nodeSelector: {a: b}
affinity: {nodeAffinity: {}}
tolerations: []
topologySpreadConstraints: [{maxSkew: 1}]
podAnnotations: {a: b}
podLabels: {a: b, k8s-app: other}
podDisruptionBudget: {minAvailable: 2}
resources: {requests: {cpu: 10m}}`, map[string]string{
			"Deployment .spec.replicas":                                "4",
			"ConfigMap .data.Corefile":                                 `"mine"`,
			"Deployment .spec.template.spec.nodeSelector":              `{"a":"b"}`,
			"Deployment .spec.template.spec.affinity":                  `{"nodeAffinity":{}}`,
			"Deployment .spec.template.spec.tolerations":               `[]`,
			"Deployment .spec.template.spec.topologySpreadConstraints": `[{"maxSkew":1}]`,
			"Deployment .spec.template.metadata.annotations":           `{"a":"b"}`,
			"Deployment .spec.template.metadata.labels":                `{"a":"b","k8s-app":"kube-dns"}`,
			"PodDisruptionBudget .spec.minAvailable":                   "2",
			"PodDisruptionBudget .spec.maxUnavailable":                 "null",
			"Deployment .spec.template.spec.containers.0.resources":    `{"requests":{"cpu":"10m"}}`,
			"Deployment .spec.template.spec.containers.0.image":        `"i"`,
		}},
		"no budget": {"podDisruptionBudget: {enabled: false}", map[string]string{"PodDisruptionBudget .spec": "null"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := find(t, addon.CoreDNS)
			values, err := a.Read(c.values)
			if err != nil {
				t.Fatal(err)
			}
			before := objects(t, base)
			made, err := a.Objects(before, values, "arn:r")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(objects(t, base), before); diff != "" {
				t.Errorf("the base was changed (-want +got):\n%s", diff)
			}
			for path, want := range c.want {
				kind, field, _ := strings.Cut(path, " .")
				got, err := json.Marshal(at(made, kind, field))
				if err != nil || string(got) != want {
					t.Errorf("%s is %s, want %s; %v", path, got, want, err)
				}
			}
		})
	}
}

func TestObjectsOfMetricsServer(t *testing.T) {
	t.Parallel()
	a := find(t, addon.MetricsServer)
	values, err := a.Read("{replicas: 3, podLabels: {k8s-app: other, a: b}}")
	if err != nil {
		t.Fatal(err)
	}
	made, err := a.Objects(objects(t, base), values, "")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"Deployment .spec.replicas":                              "3",
		"Deployment .spec.template.metadata.labels":              `{"a":"b","k8s-app":"metrics-server"}`,
		"PodDisruptionBudget .metadata.name":                     `"metrics-server"`,
		"PodDisruptionBudget .spec.selector.matchLabels.k8s-app": `"metrics-server"`,
		"ServiceAccount .metadata.annotations":                   "null",
	} {
		kind, field, _ := strings.Cut(path, " .")
		if got, err := json.Marshal(at(made, kind, field)); err != nil || string(got) != want {
			t.Errorf("%s is %s, want %s; %v", path, got, want, err)
		}
	}
}

// at is what is at a path of the object of a kind.
func at(all []*unstructured.Unstructured, kind, field string) any {
	for _, object := range all {
		if object.GetKind() != kind {
			continue
		}
		var value any = object.Object
		fields := strings.Split(field, ".")
		if before, after, ok := strings.Cut(field, ".annotations."); ok {
			fields = append(strings.Split(before, "."), "annotations", after)
		}
		for _, name := range fields {
			switch in := value.(type) {
			case map[string]any:
				value = in[name]
			case []any:
				value = in[0]
			default:
				return nil
			}
		}
		return value
	}
	return nil
}

// What the API server of Kubernetes 1.36 says of an apply that would take two fields from kubectl.
func refusal(causes ...metav1.StatusCause) error {
	return apierrors.NewApplyConflict(causes, "Apply failed with conflicts")
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	deployment := objects(t, base)[2]
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
	if got := addon.Conflicts(objects(t, base)[1], refusal(metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: ".data.Corefile"})); len(got) != 1 || got[0].Object != "ConfigMap coredns" || got[0].Manager != "another manager" {
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
