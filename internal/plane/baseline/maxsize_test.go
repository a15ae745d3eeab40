// SPDX-License-Identifier: Apache-2.0

package baseline_test

import (
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/api/v1alpha1"
)

// condition is an expression that is true or not.
type condition string

func (c condition) GetExpression() string { return string(c) }

func (condition) ReturnTypes() []*cel.Type { return []*cel.Type{cel.BoolType} }

// admitted is the object, after the API server's defaults, as the management plane's policy about node groups leaves
// it.
func admitted(t *testing.T, object, old *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	spec := get[*admissionregistrationv1.MutatingAdmissionPolicy](t, "management", "nodegroups.muster.dev").Spec
	environments := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	compiler, err := plugincel.NewCompositedCompiler(environments)
	if err != nil {
		t.Fatal(err)
	}
	kind := v1alpha1.GroupVersion.WithKind("NodeGroup")
	resource := v1alpha1.GroupVersion.WithResource("nodegroups")
	operation := admission.Create
	var before runtime.Object
	if old != nil {
		operation, before = admission.Update, old
	}
	attributes := &admission.VersionedAttributes{
		Attributes:      admission.NewAttributesRecord(object, before, kind, "muster", "g", resource, "", operation, nil, false, nil),
		VersionedObject: object, VersionedOldObject: before, VersionedKind: kind,
	}
	var conditions []plugincel.ExpressionAccessor
	for _, c := range spec.MatchConditions {
		conditions = append(conditions, condition(c.Expression))
	}
	request := plugincel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(resource), metav1.GroupVersionKind(kind))
	results, _, err := compiler.CompileCondition(conditions, plugincel.OptionalVariableDeclarations{}, environment.NewExpressions).
		ForInput(t.Context(), attributes, request, plugincel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Error != nil {
			t.Fatal(r.Error)
		}
		if r.EvalResult.Value() != true {
			return object
		}
	}
	for _, m := range spec.Mutations {
		patcher := patch.NewJSONPatcher(compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression},
			plugincel.OptionalVariableDeclarations{HasPatchTypes: true}, environment.NewExpressions))
		patched, err := patcher.Patch(t.Context(), patch.Request{
			MatchedResource: resource, VersionedAttributes: attributes, ObjectInterfaces: admission.NewObjectInterfacesFromScheme(runtime.NewScheme()),
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatal(err)
		}
		attributes.VersionedObject = patched
	}
	return attributes.VersionedObject.(*unstructured.Unstructured)
}

// The management plane writes the maxSize that Go's callers choose, and leaves alone what somebody chose.
func TestMaxSizeOfAppliedNodeGroups(t *testing.T) {
	group := func(spec string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		document := "{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {name: g, namespace: muster}, spec: {" + spec + "}}"
		raw, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		if err := object.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		return object
	}
	const local, simulated = "provider: local, ", "provider: simulated, "
	for _, test := range []struct {
		spec, old string
		want      any
	}{
		{local + "scalingConfig: {minSize: 0, desiredSize: 0}", "", int64(v1alpha1.DefaultMaxSize(v1alpha1.ProviderLocal, 0, 0))},
		{local + "scalingConfig: {minSize: 0, desiredSize: 5}", "", int64(v1alpha1.DefaultMaxSize(v1alpha1.ProviderLocal, 0, 5))},
		{local + "scalingConfig: {minSize: 0, desiredSize: 9}", "", int64(v1alpha1.DefaultMaxSize(v1alpha1.ProviderLocal, 0, 9))},
		{local + "scalingConfig: {minSize: 7, desiredSize: 6}", "", int64(v1alpha1.DefaultMaxSize(v1alpha1.ProviderLocal, 7, 6))},
		{local + "scalingConfig: {minSize: 0, desiredSize: 6000}", "", int64(v1alpha1.DefaultMaxSize(v1alpha1.ProviderLocal, 0, 6000))},
		{simulated + "scalingConfig: {minSize: 0, desiredSize: 1}", "", int64(v1alpha1.DefaultMaxSize(v1alpha1.ProviderSimulated, 0, 1))},
		{local + "scalingConfig: {minSize: 0, desiredSize: 1, maxSize: 0}", "", int64(0)},
		{local + "scalingConfig: {minSize: 0, desiredSize: 1, maxSize: 5000}", "", int64(5000)},
		{local + "scalingConfig: {minSize: 0, desiredSize: 9}", local + "scalingConfig: {minSize: 0, desiredSize: 1, maxSize: 5}", int64(5)},
		{local + "scalingConfig: {minSize: 0, desiredSize: 1}", local + "scalingConfig: {minSize: 0, desiredSize: 1, maxSize: 5000}", int64(5000)},
		{local + "scalingConfig: {minSize: 0, desiredSize: 1, maxSize: 7}", local + "scalingConfig: {minSize: 0, desiredSize: 1, maxSize: 5}", int64(7)},
		// Values that the schema refuses keep their own problem.
		{local + "scalingConfig: {minSize: 0, desiredSize: many}", "", nil},
		{local + "scalingConfig: {minSize: few, desiredSize: 1}", "", nil},
		{local + "scalingConfig: {minSize: 0}", "", nil},
		{local + "name: g", "", nil},
	} {
		var old *unstructured.Unstructured
		if test.old != "" {
			old = group(test.old)
		}
		object := admitted(t, group(test.spec), old)
		if got, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "scalingConfig", "maxSize"); got != test.want {
			t.Errorf("%s, before %s: maxSize %v, want %v", test.spec, test.old, got, test.want)
		}
	}
}
