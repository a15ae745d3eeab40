// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"pgregory.net/rapid"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/manifest/manifesttest"
)

// condition is an expression that is true or not.
type condition string

func (c condition) GetExpression() string { return string(c) }

func (condition) ReturnTypes() []*cel.Type { return []*cel.Type{cel.BoolType} }

// variable is a variable of a policy.
type variable admissionregistrationv1.Variable

func (v variable) GetName() string { return v.Name }

func (v variable) GetExpression() string { return v.Expression }

func (variable) ReturnTypes() []*cel.Type { return []*cel.Type{cel.AnyType, cel.DynType} }

const (
	user1    = "muster:service"
	revision = "0123456789abcdef"
)

type fataler interface {
	Context() context.Context
	Helper()
	Fatal(args ...any)
}

// policyOf is the policy of a kind, as the API server reads it.
func policyOf(t fataler, kind string, into any, profiles []v1alpha1.FargateProfile) {
	t.Helper()
	for _, object := range Policies("v1", user1, revision, profiles) {
		if object.GetKind() != kind {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("there is no " + kind)
}

// conditions are those of a policy, in order.
func conditions(all []admissionregistrationv1.MatchCondition) []plugincel.ExpressionAccessor {
	var expressions []plugincel.ExpressionAccessor
	for _, c := range all {
		expressions = append(expressions, condition(c.Expression))
	}
	return expressions
}

// holds reports whether all expressions are true of a request.
func holds(t fataler, compiler *plugincel.CompositedCompiler, expressions []plugincel.ExpressionAccessor, attributes *admission.VersionedAttributes) bool {
	t.Helper()
	request := plugincel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(attributes.GetResource()), metav1.GroupVersionKind(attributes.VersionedKind))
	results, _, err := compiler.CompileCondition(expressions, plugincel.OptionalVariableDeclarations{}, environment.NewExpressions).
		ForInput(t.Context(), attributes, request, plugincel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudgetMatchConditions)
	if err != nil {
		t.Fatal(err)
	}
	for i := range results {
		if results[i].Error != nil {
			t.Fatal(expressions[i].GetExpression(), results[i].Error)
		}
		if results[i].EvalResult.Value() != true {
			return false
		}
	}
	return true
}

// admitted is a pod as the API server of a minor leaves it: upstream's own code evaluates the policy.
func admitted(t fataler, minor string, in *corev1.Pod, profiles ...v1alpha1.FargateProfile) *corev1.Pod {
	t.Helper()
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{}
	policyOf(t, MutatingKind, policy, profiles)
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MustParse(minor)))
	if err != nil {
		t.Fatal(err)
	}
	kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	attributes := &admission.VersionedAttributes{
		Attributes:      admission.NewAttributesRecord(in, nil, kind, in.Namespace, in.Name, resource, "", admission.Create, nil, false, nil),
		VersionedObject: in.DeepCopy(), VersionedKind: kind,
	}
	if !holds(t, compiler, conditions(policy.Spec.MatchConditions), attributes) {
		return in
	}
	for _, v := range policy.Spec.Variables {
		compiler.CompileAndStoreVariable(variable(v), plugincel.OptionalVariableDeclarations{}, environment.NewExpressions)
	}
	patcher := patch.NewJSONPatcher(compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: policy.Spec.Mutations[0].JSONPatch.Expression},
		plugincel.OptionalVariableDeclarations{HasPatchTypes: true}, environment.NewExpressions))
	patched, err := patcher.Patch(compiler.CreateContext(t.Context()), patch.Request{
		MatchedResource: resource, VersionedAttributes: attributes, ObjectInterfaces: admission.NewObjectInterfacesFromScheme(scheme),
	}, celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatal(err)
	}
	return patched.(*corev1.Pod)
}

func made(namespace string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels},
		Spec:       corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// The policy gives the pods that a profile selects to the fargate-scheduler, and no others. An API server takes
// expressions that the minor before it takes (environment.DefaultCompatibilityVersion), so that 1.33 stands for the one
// of 1.34.
func TestThePolicy(t *testing.T) {
	profiles := []v1alpha1.FargateProfile{
		profile("a", v1alpha1.FargateSelector{Namespace: "shop", Labels: map[string]v1alpha1.FargateLabel{"app.kubernetes.io/name": "we?", "x": "*"}}, v1alpha1.FargateSelector{Namespace: "jobs"}),
		profile("b", v1alpha1.FargateSelector{Namespace: "team-*"}, v1alpha1.FargateSelector{Namespace: "shop"}),
	}
	daemon := made("shop", nil)
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: new(true)}}
	owned := made("shop", nil)
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", Controller: new(true)}}
	bound, another := made("shop", nil), made("shop", nil)
	bound.Spec.NodeName, another.Spec.SchedulerName = "n", "mine"
	named, humble := made("jobs", nil), made("jobs", nil)
	named.Spec.SchedulerName = v1alpha1.FargateScheduler
	humble.Spec.PriorityClassName, humble.Spec.Priority, humble.Spec.PreemptionPolicy = "low", new(int32(-1)), new(corev1.PreemptNever)
	probe := Probe(revision)
	probe.Spec.SchedulerName = corev1.DefaultSchedulerName
	old := Probe("another")
	old.Spec.SchedulerName = corev1.DefaultSchedulerName
	web := map[string]string{"app.kubernetes.io/name": "web", "x": ""}
	for _, minor := range []string{"1.33", "1.34", "1.35"} {
		for name, c := range map[string]struct {
			pod  *corev1.Pod
			want string
		}{
			"by its namespace":     {made("jobs", nil), "a"},
			"by its labels":        {made("shop", web), "a"},
			"by a label":           {made("shop", map[string]string{v1alpha1.LabelFargateProfile: "b", "app.kubernetes.io/name": "web", "x": ""}), "b"},
			"by a label of others": {made("jobs", map[string]string{v1alpha1.LabelFargateProfile: "b"}), "a"},
			"by a pattern":         {made("team-red", nil), "b"},
			"of a ReplicaSet":      {owned, "b"},
			"of no profile":        {made("default", web), ""},
			"of a DaemonSet":       {daemon, ""},
			"that is bound":        {bound, ""},
			"of another scheduler": {another, ""},
			"that names Fargate's": {named, "a"},
			"of another priority":  {humble, "a"},
			"a probe":              {probe, revision},
			"an old probe":         {old, ""},
		} {
			got := admitted(t, minor, c.pod, profiles...)
			if Follows(got) != (c.want != "") || c.want != "" && got.Labels[v1alpha1.LabelFargateProfile] != c.want {
				t.Errorf("%s: a pod %s has the scheduler %s and the labels %v, want %q", minor, name, got.Spec.SchedulerName, got.Labels, c.want)
			}
			if s := got.Spec; c.want != "" && (s.PriorityClassName != "system-node-critical" || s.Priority == nil || *s.Priority != 2000001000 || s.PreemptionPolicy == nil || *s.PreemptionPolicy != corev1.PreemptLowerPriority) {
				t.Errorf("%s: a pod %s has the priority class %q, the priority %v and the policy %v", minor, name, s.PriorityClassName, s.Priority, s.PreemptionPolicy)
			}
			for key, value := range c.pod.Labels {
				if got.Labels[key] != value && key != v1alpha1.LabelFargateProfile {
					t.Errorf("%s: a pod %s lost the label %s", minor, name, key)
				}
			}
		}
	}
}

// The API server decides by the policy as the fargate-scheduler does afterwards.
func TestThePolicyDecidesAsTheScheduler(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*?-]{1,4}`)
		var profiles []v1alpha1.FargateProfile
		for i := range rapid.IntRange(1, 3).Draw(t, "profiles") {
			var selectors []v1alpha1.FargateSelector
			for range rapid.IntRange(1, 2).Draw(t, "selectors") {
				s := v1alpha1.FargateSelector{Namespace: pattern.Draw(t, "namespace")}
				for key, value := range rapid.MapOfN(rapid.SampledFrom([]string{"x", "a.b/c"}), pattern, 0, 2).Draw(t, "labels") {
					if s.Labels == nil {
						s.Labels = map[string]v1alpha1.FargateLabel{}
					}
					s.Labels[key] = v1alpha1.FargateLabel(value)
				}
				selectors = append(selectors, s)
			}
			profiles = append(profiles, profile(string(rune('p'+i)), selectors...))
		}
		labels := rapid.MapOfN(rapid.SampledFrom([]string{"x", "a.b/c", v1alpha1.LabelFargateProfile}), rapid.SampledFrom([]string{"a", "ab", "b-a", "p", "q"}), 0, 3).Draw(t, "pod's labels")
		pod := made(rapid.SampledFrom([]string{"a", "ab", "b-a", "bb"}).Draw(t, "pod's namespace"), labels)
		want, ok := Chosen(profiles, pod.Namespace, pod.Labels)
		got := admitted(t, "1.35", pod, profiles...)
		if Follows(got) != ok || ok && got.Labels[v1alpha1.LabelFargateProfile] != want.Spec.Name {
			t.Fatalf("the API server says %s %v, and the scheduler %v", got.Spec.SchedulerName, got.Labels, want)
		}
	})
}

// Nobody but the service puts a pod on a machine of Fargate.
func TestNobodyElseBinds(t *testing.T) {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	policyOf(t, ValidatingKind, policy, nil)
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MustParse("1.33")))
	if err != nil {
		t.Fatal(err)
	}
	on := func(node string) *corev1.Pod {
		pod := made("shop", nil)
		pod.Spec.NodeName = node
		return pod
	}
	const theirs, ours = "ip-10-0-0-5.ec2.internal", "fargate-ip-10-0-0-5.ec2.internal"
	for name, c := range map[string]struct {
		who, subresource string
		object           runtime.Object
		want             bool
	}{
		"a pod":                             {"alice", "", on(""), true},
		"a pod on a node":                   {"alice", "", on(theirs), true},
		"a pod on a machine of Fargate":     {"alice", "", on(ours), false},
		"a binding":                         {"system:kube-scheduler", "binding", &corev1.Binding{Target: corev1.ObjectReference{Name: theirs}}, true},
		"a binding to a machine of Fargate": {"system:kube-scheduler", "binding", &corev1.Binding{Target: corev1.ObjectReference{Name: ours}}, false},
		"the service's binding":             {user1, "binding", &corev1.Binding{Target: corev1.ObjectReference{Name: ours}}, true},
	} {
		kind := corev1.SchemeGroupVersion.WithKind(map[string]string{"": "Pod", "binding": "Binding"}[c.subresource])
		attributes := &admission.VersionedAttributes{
			Attributes:      admission.NewAttributesRecord(c.object, nil, kind, "shop", "web", corev1.SchemeGroupVersion.WithResource("pods"), c.subresource, admission.Create, nil, false, &user.DefaultInfo{Name: c.who}),
			VersionedObject: c.object, VersionedKind: kind,
		}
		got := !holds(t, compiler, conditions(policy.Spec.MatchConditions), attributes) ||
			holds(t, compiler, []plugincel.ExpressionAccessor{condition(policy.Spec.Validations[0].Expression)}, attributes)
		if got != c.want {
			t.Errorf("%s by %s is let through: %v", name, c.who, got)
		}
	}
}

func TestPoliciesAsTheyAreWritten(t *testing.T) {
	profiles := []v1alpha1.FargateProfile{profile("batch", v1alpha1.FargateSelector{Namespace: "batch"}, v1alpha1.FargateSelector{Namespace: "team-*", Labels: map[string]v1alpha1.FargateLabel{"size": "small"}})}
	manifesttest.Golden(t, filepath.Join("testdata", "policies.yaml"), Policies("v1", user1, revision, profiles))
	for _, object := range Policies(MutatingVersion(true), user1, revision, nil) {
		if beta := strings.HasSuffix(object.GetAPIVersion(), "/v1beta1"); beta != strings.HasPrefix(object.GetKind(), "Mutating") {
			t.Errorf("%s is of %s", object.GetKind(), object.GetAPIVersion())
		}
	}
}
