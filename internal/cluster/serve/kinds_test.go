// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
)

// The service maps and caches every kind of the management plane as the list of kinds says.
func TestTheServiceKnowsEveryKind(t *testing.T) {
	described, limited := map[reflect.Type]bool{}, map[reflect.Type]bool{}
	for _, kind := range readKinds() {
		described[reflect.TypeOf(kind.Object)] = true
	}
	for object, by := range ofCluster("prod").ByObject {
		_, own := by.Namespaces["prod"]
		limited[reflect.TypeOf(object)] = own && len(by.Namespaces) == 1
	}
	for _, kind := range v1alpha1.Kinds() {
		of := reflect.TypeOf(kind.Object)
		mapping, err := managementMapper().RESTMapping(v1alpha1.GroupVersion.WithKind(kind.Name()).GroupKind(), v1alpha1.GroupVersion.Version)
		if err != nil || (mapping.Scope == meta.RESTScopeNamespace) != kind.Namespaced {
			t.Errorf("%s: mapped to %+v: %v", kind.Name(), mapping, err)
		}
		if limited[of] != kind.Namespaced {
			t.Errorf("%s: limited to the cluster's namespace: %v, want %v", kind.Name(), limited[of], kind.Namespaced)
		}
		if described[of] != kind.Described {
			t.Errorf("%s: in the cache of the AWS APIs: %v, want %v", kind.Name(), described[of], kind.Described)
		}
	}
}
