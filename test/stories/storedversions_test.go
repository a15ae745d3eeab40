// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/plane/kinddefinitions"
	"muster.dev/muster/test/plane"
)

// TestStoredVersions has a real API server store a kind in another version than before. A definition without the version
// of before is refused until the objects are moved, and lists all of them afterwards.
//
//story:about plane/kinddefinitions plane/baseline
func TestStoredVersions(t *testing.T) {
	t.Parallel()
	p, err := plane.Start(t.Context(), plane.Config{Bin: programs(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	config, err := p.RESTConfig("administrator", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	define := func(stored string, versions ...string) error {
		return kinddefinitions.Apply(t.Context(), api, []*apiextensionsv1.CustomResourceDefinition{thingDefinition(stored, versions...)})
	}
	move := func() error {
		return kinddefinitions.MoveToStored(t.Context(), api, []*apiextensionsv1.CustomResourceDefinition{thingDefinition("v1", "v1")})
	}
	storedVersions := func() []string {
		is := thingDefinition("v1", "v1")
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(is), is); err != nil {
			t.Fatal(err)
		}
		return is.Status.StoredVersions
	}
	const objects = 600 // more than a page
	if err := define("v1alpha1", "v1alpha1"); err != nil {
		t.Fatal(err)
	}
	for n := range objects {
		if err := api.Create(t.Context(), thing("v1alpha1", fmt.Sprintf("thing-%d", n))); err != nil {
			t.Fatal(err)
		}
	}
	if err := define("v1", "v1alpha1", "v1"); err != nil {
		t.Fatal(err)
	}
	if is := storedVersions(); !slices.Equal(is, []string{"v1alpha1", "v1"}) {
		t.Fatalf("the stored versions are %v", is)
	}
	if err := define("v1", "v1"); err == nil || !strings.Contains(err.Error(), "status.storedVersions[0]") {
		t.Fatalf("the version of before is left out while objects are stored in it: %v", err)
	}
	if err := move(); err != nil {
		t.Fatal(err)
	}
	if is := storedVersions(); !slices.Equal(is, []string{"v1"}) {
		t.Errorf("the stored versions are %v", is)
	}
	if err := define("v1", "v1"); err != nil {
		t.Fatal(err)
	}
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(schema.GroupVersionKind{Group: "stories.muster.dev", Version: "v1", Kind: "ThingList"})
	if err := api.List(t.Context(), all); err != nil || len(all.Items) != objects {
		t.Fatalf("there are %d objects, %v", len(all.Items), err)
	}
	versions := map[string]string{}
	for _, o := range all.Items {
		if versions[o.GetName()] = o.GetResourceVersion(); o.GetGeneration() != 1 {
			t.Fatalf("%s has the generation %d", o.GetName(), o.GetGeneration())
		}
	}
	if err := move(); err != nil {
		t.Fatal(err)
	}
	if err := api.List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	for _, o := range all.Items {
		if o.GetResourceVersion() != versions[o.GetName()] {
			t.Fatalf("%s was written again", o.GetName())
		}
	}
}

// thingDefinition defines a kind with some versions, and says which version is stored.
func thingDefinition(stored string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.stories.muster.dev"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "stories.muster.dev", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing", ListKind: "ThingList", Plural: "things", Singular: "thing"},
		},
	}
	for _, version := range versions {
		definition.Spec.Versions = append(definition.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == stored,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}},
		})
	}
	return definition
}

func thing(version, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "stories.muster.dev/" + version, "kind": "Thing", "metadata": map[string]any{"name": name}, "spec": map[string]any{"size": int64(1)},
	}}
}
