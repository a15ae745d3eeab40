// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
)

// Every kind of the management plane has columns, or is named as one that has none.
func TestEveryKindHasColumnsOrNone(t *testing.T) {
	// The kinds that "muster get" has no columns for: AWS's tools and kubectl show them, and "muster zonal-shift list" shifts.
	without := map[string]bool{
		"VPC": true, "Subnet": true, "SecurityGroup": true, "AccessPoint": true, "VolumeSnapshot": true, "AWSRecord": true, "LaunchTemplate": true, "ZonalShift": true,
		"IAMAccount": true, "IAMUser": true, "IAMRole": true, "IAMInstanceProfile": true, "IAMPolicy": true, "IAMOpenIDConnectProvider": true,
	}
	listed := map[reflect.Type]v1alpha1.Kind{}
	for _, kind := range v1alpha1.Kinds() {
		listed[reflect.TypeOf(kind.List)] = kind
	}
	got := map[string]bool{}
	for _, k := range Kinds() {
		if k.group != v1alpha1.GroupVersion.Group {
			continue
		}
		kind, ok := listed[reflect.TypeOf(k.List())]
		if !ok {
			t.Errorf("muster get %s lists %T, which v1alpha1.Kinds does not name", k.Plural, k.List())
			continue
		}
		got[kind.Name()] = true
		if k.Plural != kind.Resource() || k.Singular != strings.ToLower(kind.Name()) {
			t.Errorf("muster get calls %s %q and %q, the API server %q", kind.Name(), k.Singular, k.Plural, kind.Resource())
		}
		if k.InNamespace() && !kind.Namespaced {
			t.Errorf("muster delete looks for %s in the namespace of a cluster, and objects of the kind have none", k.Plural)
		}
	}
	for _, kind := range v1alpha1.Kinds() {
		if got[kind.Name()] == without[kind.Name()] {
			t.Errorf("%s: muster get has columns: %v; named as one without: %v", kind.Name(), got[kind.Name()], without[kind.Name()])
		}
		delete(without, kind.Name())
	}
	for name := range without {
		t.Errorf("%s is named as a kind without columns and does not exist", name)
	}
}

func TestTheMapperKnowsEveryKind(t *testing.T) {
	for _, kind := range v1alpha1.Kinds() {
		mapping, err := NewMapper().RESTMapping(v1alpha1.GroupVersion.WithKind(kind.Name()).GroupKind(), v1alpha1.GroupVersion.Version)
		if err != nil || (mapping.Scope == meta.RESTScopeNamespace) != kind.Namespaced {
			t.Errorf("%s: mapped to %+v: %v", kind.Name(), mapping, err)
		}
	}
}
