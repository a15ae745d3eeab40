// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// A kind's list must hold the kind's objects: the two are given separately, and a wrong pair compiles.
func TestListsAreOfTheirKind(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds() {
		if seen[k.Name()] {
			t.Errorf("%s is listed twice", k.Name())
		}
		seen[k.Name()] = true
		items, ok := reflect.TypeOf(k.List).Elem().FieldByName("Items")
		if !ok || items.Type.Elem() != reflect.TypeOf(k.Object).Elem() {
			t.Errorf("%s: the list is %T", k.Name(), k.List)
		}
	}
}

func TestSchemeAndMapperKnowEveryKind(t *testing.T) {
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	AddToMapper(mapper)
	for _, k := range Kinds() {
		for _, name := range []string{k.Name(), k.Name() + "List"} {
			if !scheme.Recognizes(GroupVersion.WithKind(name)) {
				t.Errorf("the scheme does not know %s", name)
			}
		}
		mapping, err := mapper.RESTMapping(GroupVersion.WithKind(k.Name()).GroupKind(), GroupVersion.Version)
		if err != nil {
			t.Errorf("the mapper does not know %s: %v", k.Name(), err)
			continue
		}
		if namespaced := mapping.Scope == meta.RESTScopeNamespace; namespaced != k.Namespaced || mapping.Resource.Resource != k.Resource() {
			t.Errorf("%s: mapped to %v, namespaced %v", k.Name(), mapping.Resource, namespaced)
		}
		_, err = mapper.RESTMapping(GroupVersion.WithKind(k.Name()+"List").GroupKind(), GroupVersion.Version)
		if (err == nil) != k.Namespaced {
			t.Errorf("%sList: %v; a cache of one namespace asks for it", k.Name(), err)
		}
	}
}
