// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/api/v1alpha1/crds"
)

// server does to an object what the API server's custom resource storage does: fill in defaults, then check the schema,
// the lists and the rules, with the packages it does so with.
type server struct {
	schema *structuralschema.Structural
	fields schemavalidation.SchemaValidator
	rules  *schemacel.Validator
}

func servers(t *testing.T) map[string]server {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]server{}
	for _, definition := range all {
		internal := internalDefinition(t, definition)
		props, err := apiextensions.GetSchemaForVersion(internal, "v1alpha1")
		if err != nil {
			t.Fatal(err)
		}
		structural, err := structuralschema.NewStructural(props.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		fields, _, err := schemavalidation.NewSchemaValidator(props.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		out[definition.Spec.Names.Kind] = server{structural, fields, schemacel.NewValidator(structural, true, celconfig.PerCallLimit)}
	}
	return out
}

func internalDefinition(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	t.Helper()
	definition = definition.DeepCopy()
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(definition)
	definition.Status.StoredVersions = []string{"v1alpha1"}
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition, internal, nil); err != nil {
		t.Fatal(err)
	}
	return internal
}

func (s server) create(t *testing.T, object map[string]any) field.ErrorList {
	t.Helper()
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.schema)
	defaulting.Default(object, s.schema)
	if object["kind"] == "NodeGroup" {
		withMaxSize(t, object)
	}
	return s.check(t, object, nil)
}

func (s server) check(t *testing.T, object, old map[string]any) field.ErrorList {
	t.Helper()
	errs := schemavalidation.ValidateCustomResource(nil, object, s.fields)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.schema, object)...)
	if len(errs) > 0 {
		return errs // rules run on what the schema let pass only
	}
	var before any
	if old != nil {
		before = old
	}
	errs, _ = s.rules.Validate(t.Context(), nil, s.schema, object, before, celconfig.RuntimeCELCostBudget)
	return errs
}

// TestDefinitions compares the definitions with the list of kinds, and asks the API server's own check, which also estimates the cost of every rule.
func TestDefinitions(t *testing.T) {
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	// Names by the list of kinds, keyed by the name of the definition that must have them.
	want := map[string]apiextensionsv1.CustomResourceDefinitionNames{}
	scopes := map[string]apiextensionsv1.ResourceScope{}
	for _, k := range v1alpha1.Kinds() {
		name := k.Resource() + "." + v1alpha1.GroupVersion.Group
		want[name] = apiextensionsv1.CustomResourceDefinitionNames{
			Kind: k.Name(), ListKind: reflect.TypeOf(k.List).Elem().Name(), Plural: k.Resource(), Singular: strings.ToLower(k.Name()),
		}
		scopes[name] = apiextensionsv1.ClusterScoped
		if k.Namespaced {
			scopes[name] = apiextensionsv1.NamespaceScoped
		}
	}
	got, gotScopes := map[string]apiextensionsv1.CustomResourceDefinitionNames{}, map[string]apiextensionsv1.ResourceScope{}
	for _, definition := range all {
		names := definition.Spec.Names
		names.ShortNames, names.Categories = nil, nil
		got[definition.Name], gotScopes[definition.Name] = names, definition.Spec.Scope
		for _, problem := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), internalDefinition(t, definition)) {
			t.Errorf("%s: %v", definition.Name, problem)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names of the definitions (-v1alpha1.Kinds +crds):\n%s", diff)
	}
	if diff := cmp.Diff(scopes, gotScopes); diff != "" {
		t.Errorf("scopes of the definitions (-v1alpha1.Kinds +crds):\n%s", diff)
	}
}

// Every file in testdata is one document a person may write, whose name starts with good or bad. A comment in its first line
// names the fields that are wrong. The API server and the Go functions must say the same of each.
func TestCRDAndGoAgree(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	api := servers(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for document := range strings.SplitSeq(string(data), "\n---\n") {
				agree(t, api, document)
			}
		})
	}
}

func agree(t *testing.T, api map[string]server, document string) {
	t.Helper()
	first, _, _ := strings.Cut(document, "\n")
	var want []string
	if list, ok := strings.CutPrefix(first, "# wrong:"); ok {
		want = strings.Fields(list)
	} else if first != "# right" {
		t.Fatalf("a case begins with '# right' or '# wrong: <fields>', not with %q", first)
	}
	object := parse(t, document)
	kind, _ := object["kind"].(string)
	served := api[kind].create(t, object)
	if got := paths(served); !slices.Equal(got, want) {
		t.Errorf("the API server finds wrong: %q, want %q\n%v\n%s", got, want, served.ToAggregate(), document)
	}
	var problems field.ErrorList
	var decoded any
	switch kind {
	case "Cluster":
		cluster := &v1alpha1.Cluster{}
		cluster.Default()
		decode(t, document, cluster)
		problems, decoded = v1alpha1.ValidateCluster(cluster), cluster
	case "NodeGroup":
		group := &v1alpha1.NodeGroup{}
		group.Default()
		decode(t, document, group)
		if scaling := &group.Spec.ScalingConfig; !strings.Contains(document, "maxSize: ") {
			scaling.MaxSize = v1alpha1.DefaultMaxSize(group.Spec.Provider, scaling.MinSize, scaling.DesiredSize)
		}
		problems, decoded = v1alpha1.ValidateNodeGroup(group), group
	default:
		return
	}
	if got := paths(problems); !slices.Equal(got, want) {
		t.Errorf("Go finds wrong: %q, want %q\n%v\n%s", got, want, problems.ToAggregate(), document)
	}
	if len(want) > 0 {
		return
	}
	// Go must have filled in the same defaults as the API server.
	fromServer := decoded.(interface{ DeepCopyObject() runtime.Object }).DeepCopyObject()
	stored, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	decode(t, string(stored), fromServer)
	if diff := cmp.Diff(fromServer, decoded); diff != "" {
		t.Errorf("defaults (-API server +Go):\n%s", diff)
	}
}

// withMaxSize gives a node group that leaves out its maxSize the default, as the management plane's policy does before an object is checked; a
// test of that policy is beside it, in internal/plane/baseline.
func withMaxSize(t *testing.T, object map[string]any) {
	t.Helper()
	scaling, found, _ := unstructured.NestedMap(object, "spec", "scalingConfig")
	if _, chosen := scaling["maxSize"]; !found || chosen {
		return
	}
	provider, _, _ := unstructured.NestedString(object, "spec", "provider")
	least, _ := scaling["minSize"].(int64)
	desired, _ := scaling["desiredSize"].(int64)
	scaling["maxSize"] = int64(v1alpha1.DefaultMaxSize(v1alpha1.Provider(provider), int32(least), int32(desired)))
	if err := unstructured.SetNestedMap(object, scaling, "spec", "scalingConfig"); err != nil {
		t.Fatal(err)
	}
}

// parse reads whole numbers as such, as the API server does, which encoding/json does not.
func parse(t *testing.T, document string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func decode(t *testing.T, document string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatal(err)
	}
}

// paths returns the wrong fields, each once and without what is below a list or map, which the two name differently.
func paths(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		path, _, _ := strings.Cut(err.Field, "[")
		if strings.HasPrefix(path, "spec.labels.") {
			path = "spec.labels"
		}
		if path == "metadata.name" || path == "<nil>" {
			path = ""
		}
		if path == "" {
			path = "metadata.name"
		}
		out = append(out, path)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
