// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/api/v1alpha1"
)

const (
	// PolicyName is the name of both policies of a cluster that has profiles, and of their bindings.
	PolicyName = "fargate.muster.dev"
	// PolicyGroup is the API group of the policies.
	PolicyGroup = "admissionregistration.k8s.io"
	// LabelProbe on a pod that is made as a dry run asks whether an API server follows the policy of a revision.
	LabelProbe = "muster.dev/fargate-probe"
)

// The kinds of what Policies returns.
const (
	MutatingKind          = "MutatingAdmissionPolicy"
	MutatingBindingKind   = "MutatingAdmissionPolicyBinding"
	ValidatingKind        = "ValidatingAdmissionPolicy"
	ValidatingBindingKind = "ValidatingAdmissionPolicyBinding"
)

// MutatingVersion is the version of PolicyGroup that has mutating policies, where they are a beta or not. Validating
// policies are of v1 everywhere.
func MutatingVersion(beta bool) string {
	if beta {
		return "v1beta1"
	}
	return "v1"
}

// Policies returns the admission policies of a cluster with some profiles, and their bindings: one policy gives the pods
// that a profile selects to the fargate-scheduler, and the priority of pods on Fargate, and the other one lets nobody but user put a pod on a machine of
// Fargate. version is that of mutating policies, and revision is what [Probe] asks for.
//
// If a policy itself fails, the pod is made as it was asked for: no other pod is stopped. The expressions use no
// function that the API server of 1.34 lacks.
func Policies(version, user, revision string, profiles []v1alpha1.FargateProfile) []*unstructured.Unstructured {
	names, selectedBy := "", make([]string, 0, len(profiles)+1)
	for i := range profiles {
		selected := expression(profiles[i].Spec.Selectors)
		selectedBy = append(selectedBy, selected)
		names += "(" + selected + " ? [" + quote(profiles[i].Spec.Name) + "] : []) + "
	}
	probe := labels + ".exists(k, k == " + quote(LabelProbe) + ") && " + labels + "[" + quote(LabelProbe) + "] == " + quote(revision)
	selectedBy = append(selectedBy, probe)
	names += "(" + probe + " ? [" + quote(revision) + "] : [])"
	key := quote(v1alpha1.LabelFargateProfile)
	mutating := object(version, MutatingKind, map[string]any{
		"failurePolicy":      "Ignore",
		"reinvocationPolicy": "Never",
		"matchConstraints":   rules([]any{"pods"}),
		"matchConditions": []any{
			map[string]any{"name": "of-no-other-scheduler", "expression": `has(object.spec.schedulerName) && object.spec.schedulerName in ["` + corev1.DefaultSchedulerName + `", "` + v1alpha1.FargateScheduler + `"] && !has(object.spec.nodeName)`},
			map[string]any{"name": "of-no-daemon-set", "expression": `!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, o.kind == "DaemonSet")`},
			map[string]any{"name": "selected-by-a-profile", "expression": "(" + strings.Join(selectedBy, ") || (") + ")"},
		},
		"variables": []any{
			map[string]any{"name": "profiles", "expression": names},
			map[string]any{"name": "profile", "expression": labels + ".exists(k, k == " + key + ") && " + labels + "[" + key + "] in variables.profiles ? " + labels + "[" + key + "] : variables.profiles[0]"},
		},
		"mutations": []any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": `[JSONPatch{op: "replace", path: "/spec/schedulerName", value: "` + v1alpha1.FargateScheduler + `"}] + ` + critical + ` +
(has(object.metadata.labels) ? [JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey(` + key + `), value: variables.profile}]
: [JSONPatch{op: "add", path: "/metadata/labels", value: {` + key + `: variables.profile}}])`}}},
	})
	validating := object("v1", ValidatingKind, map[string]any{
		"failurePolicy":    "Ignore",
		"matchConstraints": rules([]any{"pods", "pods/binding", "bindings"}),
		"matchConditions":  []any{map[string]any{"name": "by-another", "expression": `request.userInfo.username != ` + quote(user)}},
		"validations": []any{map[string]any{
			"expression": `request.kind.kind == "Pod" ? !has(object.spec.nodeName) || !object.spec.nodeName.startsWith("` + machinePrefix + `") : !object.target.name.startsWith("` + machinePrefix + `")`,
			"message":    "Pod not supported on Fargate: a machine of Fargate is for the one pod that it was made for, and takes no others, such as those of a DaemonSet",
			"reason":     "Forbidden",
		}},
	})
	return []*unstructured.Unstructured{
		validating, object("v1", ValidatingBindingKind, map[string]any{"policyName": PolicyName, "validationActions": []any{"Deny"}}),
		mutating, object(version, MutatingBindingKind, map[string]any{"policyName": PolicyName}),
	}
}

// critical gives a pod the priority class that pods have on Fargate on EKS, so that kube-scheduler preempts it for no other
// pod, such as one of a DaemonSet, which would not get its machine anyway. The three fields go together: the API server
// refuses a priority that is not that of the class.
const critical = `[JSONPatch{op: "add", path: "/spec/priorityClassName", value: "system-node-critical"}, JSONPatch{op: "add", path: "/spec/priority", value: 2000001000}, ` +
	`JSONPatch{op: "add", path: "/spec/preemptionPolicy", value: "PreemptLowerPriority"}]`

// machinePrefix begins the names of machines of Fargate, in every cluster.
const machinePrefix = v1alpha1.FargateNodePrefix + "ip-"

// labels are those of a pod in CEL.
const labels = `(has(object.metadata.labels) ? object.metadata.labels : {"": ""})`

// rules are the constraints of a policy about resources that are made.
func rules(resources []any) map[string]any {
	return map[string]any{"resourceRules": []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": resources}}}
}

// expression is what [Selects] decides, in CEL.
func expression(selectors []v1alpha1.FargateSelector) string {
	all := make([]string, 0, len(selectors))
	for _, s := range selectors {
		terms := []string{matches("request.namespace", s.Namespace)}
		for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
			terms = append(terms, labels+".exists(k, k == "+quote(key)+")", matches(labels+"["+quote(key)+"]", string(s.Labels[key])))
		}
		all = append(all, strings.Join(terms, " && "))
	}
	return "(" + strings.Join(all, ") || (") + ")"
}

// matches is what [Match] decides, in CEL.
func matches(text, pattern string) string {
	if !strings.ContainsAny(pattern, "*?") {
		return text + " == " + quote(pattern)
	}
	escaped := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return text + ".matches(" + quote("^"+escaped+"$") + ")"
}

// quote is a string in CEL: as in JSON, without escapes for HTML.
func quote(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always can be
	return strings.TrimSuffix(b.String(), "\n")
}

func object(version, kind string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": PolicyGroup + "/" + version, "kind": kind, "metadata": map[string]any{"name": PolicyName}, "spec": spec,
	}}
}

// Probe is a pod for a dry run, whose answer shows by [Follows] whether the API server follows the policy of a revision.
func Probe(revision string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "muster-fargate-probe", Labels: map[string]string{LabelProbe: revision}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "none", Image: "none"}}},
	}
}

// Follows reports whether the answer to [Probe] is one of an API server that follows the policy.
func Follows(answer *corev1.Pod) bool { return answer.Spec.SchedulerName == v1alpha1.FargateScheduler }
