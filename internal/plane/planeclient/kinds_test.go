// SPDX-License-Identifier: Apache-2.0

package planeclient

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
)

// The service maps and caches every kind of the management plane as the list of kinds says.
func TestTheServiceKnowsEveryKind(t *testing.T) {
	inMemory, limited := map[reflect.Type]bool{}, map[reflect.Type]bool{}
	for _, kind := range described() {
		inMemory[reflect.TypeOf(kind.Object)] = true
	}
	for object, by := range OfCluster("prod").ByObject {
		_, own := by.Namespaces["prod"]
		limited[reflect.TypeOf(object)] = own && len(by.Namespaces) == 1
	}
	for _, kind := range v1alpha1.Kinds() {
		of := reflect.TypeOf(kind.Object)
		mapping, err := Mapper().RESTMapping(v1alpha1.GroupVersion.WithKind(kind.Name()).GroupKind(), v1alpha1.GroupVersion.Version)
		if err != nil || (mapping.Scope == meta.RESTScopeNamespace) != kind.Namespaced {
			t.Errorf("%s: mapped to %+v: %v", kind.Name(), mapping, err)
		}
		if limited[of] != kind.Namespaced {
			t.Errorf("%s: limited to the cluster's namespace: %v, want %v", kind.Name(), limited[of], kind.Namespaced)
		}
		if inMemory[of] != kind.Described {
			t.Errorf("%s: in the cache of the AWS APIs: %v, want %v", kind.Name(), inMemory[of], kind.Described)
		}
	}
}
