// SPDX-License-Identifier: Apache-2.0

package zonalshift

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/api/v1alpha1"
)

// PolicyName is the name of the policy of a cluster that is shifted, and of its binding.
const PolicyName = "zonal-shift.muster.dev"

// The kinds of what Policy returns.
const (
	PolicyKind  = "MutatingAdmissionPolicy"
	BindingKind = "MutatingAdmissionPolicyBinding"
)

// PolicyGroup is the API group of both kinds.
const PolicyGroup = "admissionregistration.k8s.io"

// PolicyVersion is the version of PolicyGroup that has both kinds, where they are a beta or not.
func PolicyVersion(beta bool) string {
	if beta {
		return "v1beta1"
	}
	return "v1"
}

// Policy returns the policy that keeps endpoints of some zones out of EndpointSlices, and its binding. If the policy
// itself fails, the slice is written as its controller says: Services go on, and the slice is found by [Patch].
//
// The expressions use no function that the API server of 1.34 lacks.
func Policy(version string, zones []string) []*unstructured.Unstructured {
	list, _ := json.Marshal(zones) // a list of strings in JSON is one in CEL
	zone, _ := json.Marshal(zones[0])
	shifted := `has(e.zone) && e.zone in ` + string(list)
	mutation := `[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("` + v1alpha1.LabelZonalShift + `"), value: ` + string(zone) + `}] +
object.endpoints.transformList(i, e, ` + shifted + `, JSONPatch{op: "add", path: "/endpoints/" + string(i) + "/conditions", value: {
"ready": false, "serving": false, "terminating": has(e.conditions) && has(e.conditions.terminating) && e.conditions.terminating == true}})`
	policy := object(version, PolicyKind, map[string]any{
		"failurePolicy":      "Ignore",
		"reinvocationPolicy": "IfNeeded",
		"matchConstraints": map[string]any{
			"objectSelector": map[string]any{"matchLabels": map[string]any{"endpointslice.kubernetes.io/managed-by": ManagedBy}},
			"resourceRules": []any{map[string]any{
				"apiGroups": []any{"discovery.k8s.io"}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{"endpointslices"},
			}},
		},
		"matchConditions": []any{map[string]any{
			"name":       "in-a-shifted-zone",
			"expression": `has(object.endpoints) && object.endpoints != null && object.endpoints.exists(e, ` + shifted + `)`,
		}},
		"mutations": []any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": mutation}}},
	})
	return []*unstructured.Unstructured{policy, object(version, BindingKind, map[string]any{"policyName": PolicyName})}
}

func object(version, kind string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": PolicyGroup + "/" + version, "kind": kind, "metadata": map[string]any{"name": PolicyName}, "spec": spec,
	}}
}
