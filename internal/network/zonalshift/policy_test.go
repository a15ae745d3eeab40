// SPDX-License-Identifier: Apache-2.0

package zonalshift

import (
	"fmt"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// condition is an expression that is true or not.
type condition string

func (c condition) GetExpression() string { return string(c) }

func (condition) ReturnTypes() []*cel.Type { return []*cel.Type{cel.BoolType} }

// admitted is a slice as the API server of a minor leaves it: upstream's own code evaluates the policy.
func admitted(t *testing.T, minor string, in *discoveryv1.EndpointSlice, zones ...string) *discoveryv1.EndpointSlice {
	t.Helper()
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(Policy("v1", zones)[0].Object, policy, true); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := discoveryv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MustParse(minor)))
	if err != nil {
		t.Fatal(err)
	}
	kind, resource := discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	attributes := &admission.VersionedAttributes{
		Attributes:      admission.NewAttributesRecord(in, nil, kind, in.Namespace, in.Name, resource, "", admission.Create, nil, false, nil),
		VersionedObject: in.DeepCopy(), VersionedKind: kind,
	}
	request := plugincel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(resource), metav1.GroupVersionKind(kind))
	matches := []plugincel.ExpressionAccessor{condition(policy.Spec.MatchConditions[0].Expression)}
	results, _, err := compiler.CompileCondition(matches, plugincel.OptionalVariableDeclarations{}, environment.NewExpressions).
		ForInput(t.Context(), attributes, request, plugincel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudgetMatchConditions)
	if err != nil || results[0].Error != nil {
		t.Fatal(err, results)
	}
	if results[0].EvalResult.Value() != true {
		return in
	}
	patcher := patch.NewJSONPatcher(compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: policy.Spec.Mutations[0].JSONPatch.Expression},
		plugincel.OptionalVariableDeclarations{HasPatchTypes: true}, environment.NewExpressions))
	patched, err := patcher.Patch(t.Context(), patch.Request{
		MatchedResource: resource, VersionedAttributes: attributes, ObjectInterfaces: admission.NewObjectInterfacesFromScheme(scheme),
	}, celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatal(err)
	}
	return patched.(*discoveryv1.EndpointSlice)
}

// The policy takes the endpoints of the zone out, changes nothing else, and leaves its own work alone, also of a slice
// with as many endpoints as a slice may have. An API server takes expressions that the minor before it takes
// (environment.DefaultCompatibilityVersion), so that 1.33 stands for the one of 1.34.
func TestThePolicy(t *testing.T) {
	for _, minor := range []string{"1.33", "1.34", "1.35"} {
		for name, in := range map[string]*discoveryv1.EndpointSlice{
			"mixed": slice("x", ep("10.0.0.1", "us-east-1a", "RS"), ep("10.0.0.2", "us-east-1b", "RS"), ep("10.0.0.3", "us-east-1a", "?"), ep("10.0.0.4", "", "RS"), ep("10.0.0.5", "us-east-1a", "ST")),
			"none":  slice("x"), "elsewhere": slice("x", ep("10.0.0.2", "us-east-1b", "?")), "full": full(),
		} {
			got := admitted(t, minor, in, "us-east-1a")
			want := in.DeepCopy()
			for i := range want.Endpoints {
				if e := &want.Endpoints[i]; e.Zone != nil && *e.Zone == "us-east-1a" {
					want.Labels["muster.dev/zonal-shift"] = "us-east-1a"
					terminating := e.Conditions.Terminating != nil && *e.Conditions.Terminating
					e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false), Terminating: &terminating}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s: %s", minor, name, diff)
			}
			if patch := Patch(got, []string{"us-east-1a"}); patch != nil {
				t.Errorf("%s, %s: it is to be written again: %s", minor, name, patch)
			}
			if diff := cmp.Diff(got, admitted(t, minor, got, "us-east-1a")); diff != "" {
				t.Errorf("%s, %s: it is changed again: %s", minor, name, diff)
			}
		}
	}
}

// full is a slice with 1,000 endpoints, which is the most that one may have, in two zones.
func full() *discoveryv1.EndpointSlice {
	s := slice("x")
	for i := range 1000 {
		e := ep(fmt.Sprintf("10.0.%d.%d", i/250, i%250), "us-east-1"+string(rune('a'+i%2)), "RS")
		e.NodeName, e.Hostname = new("ip-172-31-0-5.ec2.internal"), new("web")
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}
