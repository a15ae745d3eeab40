// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Insights ask a cluster for its Nodes, and changes of its node ports for its Services.
func TestMapperKnowsWhatAClusterIsAskedFor(t *testing.T) {
	for kind, scope := range map[string]meta.RESTScopeName{"ConfigMap": meta.RESTScopeNameNamespace, "Node": meta.RESTScopeNameRoot, "Service": meta.RESTScopeNameNamespace} {
		if mapping, err := Mapper().RESTMapping(schema.GroupKind{Kind: kind}, "v1"); err != nil || mapping.Scope.Name() != scope {
			t.Errorf("%s: %+v, %v", kind, mapping, err)
		}
	}
}
