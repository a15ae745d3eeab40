// SPDX-License-Identifier: Apache-2.0

package loadbalancercontroller

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// A cluster that others made, for kinds of theirs, knows the kinds of both, and keeps what they chose of its cache.
func TestOneClusterForSeveral(t *testing.T) {
	secret := corev1.SchemeGroupVersion.WithKind("Secret")
	others := func(o *cluster.Options) {
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(secret, meta.RESTScopeNamespace)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
			return mapper, nil
		}
		o.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Node{}: {}}
	}
	own := []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("EventList"),
		discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
	}
	for name, tc := range map[string]struct {
		options []cluster.Option
		kinds   []schema.GroupVersionKind
		kept    int
	}{
		"alone":       {[]cluster.Option{ClusterOptions}, own, 0},
		"with others": {[]cluster.Option{others, ClusterOptions}, append([]schema.GroupVersionKind{secret}, own...), 1},
	} {
		var o cluster.Options
		for _, option := range tc.options {
			option(&o)
		}
		mapper, err := o.MapperProvider(&rest.Config{}, http.DefaultClient)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range tc.kinds {
			mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil || (mapping.Scope == meta.RESTScopeRoot) != (kind.Kind == "Node") {
				t.Errorf("%s: %s is %+v: %v", name, kind.Kind, mapping, err)
			}
		}
		if len(o.Cache.ByObject) != tc.kept || o.Cache.DefaultTransform == nil {
			t.Errorf("%s: the cache is %+v", name, o.Cache)
		}
	}
}
