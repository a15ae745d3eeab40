// SPDX-License-Identifier: Apache-2.0

package addoncontroller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/node/bootreport"
)

func TestCoreDNS(t *testing.T) {
	w := newWorld(t, newAddon("coredns", func(s *v1alpha1.AddonSpec) { s.ConfigurationValues = "replicaCount: 3" }))
	a := w.step("coredns")
	w.is(a, v1alpha1.AddonCreating, issueInsufficient, "0 of 3 pods of Deployment coredns are available")
	if managed, err := Managed(t.Context(), w.cluster); err != nil || !slices.Equal(managed, []string{"coredns"}) {
		t.Errorf("managed are %v, %v", managed, err)
	}
	w.runs()
	w.is(w.step("coredns"), v1alpha1.AddonActive, "", "")

	w.wants("coredns", func(s *v1alpha1.AddonSpec) { s.ConfigurationValues = "replicaCount: 4" })
	w.is(w.step("coredns"), v1alpha1.AddonUpdating, issueInsufficient, "3 of 4 pods")
	w.runs()
	w.is(w.step("coredns"), v1alpha1.AddonActive, "", "")

	d := w.deployment() // somebody's change in between stays
	d.Spec.Template.Spec.NodeSelector = map[string]string{"a": "b"}
	if err := w.cluster.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	d.Status.AvailableReplicas = 1
	if err := w.cluster.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "coredns-1", Namespace: "kube-system", Labels: map[string]string{"k8s-app": "kube-dns"}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available"}}
	if err := w.cluster.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.is(w.step("coredns"), v1alpha1.AddonDegraded, issueInsufficient, "pod coredns-1: 0/2 nodes are available")
	if d := w.deployment(); d.Spec.Template.Spec.NodeSelector["a"] != "b" {
		t.Error("somebody's change was undone")
	}
	if err := w.cluster.Delete(t.Context(), d); err != nil { // a deleted object comes back
		t.Fatal(err)
	}
	w.step("coredns")
	w.runs()
	w.is(w.step("coredns"), v1alpha1.AddonActive, "", "")

	w.away = errors.New("no route")
	w.is(w.step("coredns"), v1alpha1.AddonActive, "", "")
	w.now = w.now.Add(lost)
	w.is(w.step("coredns"), v1alpha1.AddonDegraded, issueUnreachable, "no route")
	w.away = nil
	w.is(w.step("coredns"), v1alpha1.AddonActive, "", "")

	if err := w.api.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if a := w.step("coredns"); a != nil {
		t.Errorf("it is there: %+v", a.Status)
	}
	for _, object := range []client.Object{&appsv1.Deployment{}, &corev1.ConfigMap{}, &corev1.ServiceAccount{}, &policyv1.PodDisruptionBudget{}} {
		if err := w.cluster.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "coredns"}, object); !apierrors.IsNotFound(err) {
			t.Errorf("%T is there: %v", object, err)
		}
	}
}

func TestPatience(t *testing.T) {
	w := newWorld(t, newAddon("coredns", nil))
	w.is(w.step("coredns"), v1alpha1.AddonCreating, issueInsufficient, "0 of 2")
	w.now = w.now.Add(patience)
	w.is(w.step("coredns"), v1alpha1.AddonDegraded, issueInsufficient, "0 of 2")
}

func TestTakingOver(t *testing.T) {
	w := newWorld(t, newAddon("coredns", nil))
	w.selfManaged()
	template := w.deployment().Spec.Template
	w.step("coredns")
	if len(w.gaveUp) != 2 || !strings.Contains(w.gaveUp[0], "ConfigMap") || !strings.Contains(w.gaveUp[1], "Deployment") {
		t.Errorf("what was muster's: %v", w.gaveUp)
	}
	if got := w.deployment(); got.Spec.Template.String() != template.String() {
		t.Errorf("the pods change: %s\nwere %s", got.Spec.Template.String(), template.String())
	}
	w.runs()
	w.is(w.step("coredns"), v1alpha1.AddonActive, "", "")
	w.wants("coredns", func(s *v1alpha1.AddonSpec) { s.Preserve = true })
	a := w.step("coredns")
	if err := w.api.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if a := w.step("coredns"); a != nil {
		t.Errorf("it is there: %+v", a.Status)
	}
	if got := w.managers(); !slices.Contains(got, "eks") {
		t.Errorf("what was to stay has the managers %v", got)
	}
	if managed, err := Managed(t.Context(), w.cluster); err != nil || len(managed) != 1 {
		t.Errorf("the service would apply its own again: %v, %v", managed, err)
	}
}

func TestConflicts(t *testing.T) {
	const values = `{"replicaCount":3,"resources":{"limits":{"memory":"200Mi"}},"corefile":"mine"}`
	w := newWorld(t, newAddon("coredns", func(s *v1alpha1.AddonSpec) { s.ConfigurationValues = values }))
	w.selfManaged()
	a := w.step("coredns")
	w.is(a, v1alpha1.AddonCreateFailed, issueConflict, "Conflicts found when trying to apply. Will not continue due to resolve conflicts mode. Conflicts:\n"+
		"ConfigMap coredns - .data.Corefile (set by muster)\nDeployment.apps coredns - .spec.template.spec.containers[name=\"coredns\"].resources.limits.memory (set by muster)")
	if d := w.deployment(); d.Spec.Replicas != nil || !slices.Equal(w.managers(), []string{"muster"}) {
		t.Errorf("a refused add-on changed it: %v", w.managers())
	}
	w.wants("coredns", func(s *v1alpha1.AddonSpec) { s.ResolveConflicts = v1alpha1.ConflictsPreserve })
	w.is(w.step("coredns"), v1alpha1.AddonCreateFailed, issueConflict, "")
	w.wants("coredns", func(s *v1alpha1.AddonSpec) { s.ResolveConflicts = v1alpha1.ConflictsOverwrite })
	w.step("coredns")
	w.runs()
	w.is(w.step("coredns"), v1alpha1.AddonActive, "", "")
	if got := w.deployment().Spec.Template.Spec.Containers[0].Resources.Limits.Memory().String(); got != "200Mi" {
		t.Errorf("its memory is %s", got)
	}

	theirs := w.deployment()
	theirs.Spec.Replicas = new(int32(7))
	if err := w.cluster.Update(t.Context(), theirs, client.FieldOwner("people")); err != nil {
		t.Fatal(err)
	}
	w.wants("coredns", func(s *v1alpha1.AddonSpec) {
		s.ResolveConflicts, s.ConfigurationValues = v1alpha1.ConflictsNone, strings.Replace(values, "mine", "new", 1)
	})
	w.is(w.step("coredns"), v1alpha1.AddonUpdateFailed, issueConflict, "Deployment.apps coredns - .spec.replicas (set by people)")
	w.wants("coredns", func(s *v1alpha1.AddonSpec) { s.ResolveConflicts = v1alpha1.ConflictsPreserve })
	w.step("coredns")
	w.runs()
	w.is(w.step("coredns"), v1alpha1.AddonActive, "", "")
	record := &corev1.ConfigMap{}
	if err := w.cluster.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "coredns"}, record); err != nil || record.Data["Corefile"] != "new" || *w.deployment().Spec.Replicas != 7 {
		t.Errorf("%v, %d, %v", record.Data, *w.deployment().Spec.Replicas, err)
	}
}

func TestWhatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		addon      string
		spec       func(*v1alpha1.AddonSpec)
		with       func(*world)
		phase      v1alpha1.AddonPhase
		code, says string
	}{
		"no such add-on": {"other", nil, nil, v1alpha1.AddonCreateFailed, issueUnsupported, "there is no add-on other"},
		"another version": {
			"coredns", func(s *v1alpha1.AddonSpec) { s.Version = "v1.0.0-eksbuild.1" }, nil, v1alpha1.AddonCreateFailed, issueUnsupported,
			"has the version v1.15.0-eksbuild.1",
		},
		"bad values":    {"coredns", func(s *v1alpha1.AddonSpec) { s.ConfigurationValues = "replicas: 1" }, nil, v1alpha1.AddonCreateFailed, issueUnsupported, "$.replicas"},
		"not on a host": {"coredns", nil, func(w *world) { w.r.Absent = func(string) string { return "no root" } }, v1alpha1.AddonDegraded, issueInsufficient, "no root"},
		"denied": {
			"coredns", nil, func(w *world) {
				w.refuse = apierrors.NewForbidden(appsv1.Resource("deployments"), "coredns", errors.New("no"))
			},
			v1alpha1.AddonCreateFailed, issueDenied, "does not take ServiceAccount coredns",
		},
		"an unknown field": {"coredns", nil, func(w *world) {
			w.refuse = apierrors.NewInternalError(errors.New("failed to create typed patch object (kube-system/coredns; apps/v1, Kind=Deployment): .spec.x: field not declared in schema"))
		}, v1alpha1.AddonCreateFailed, issueDenied, ".spec.x: field not declared in schema"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newAddon(c.addon, c.spec))
			if c.with != nil {
				c.with(w)
			}
			a := w.step(c.addon)
			w.is(a, c.phase, c.code, c.says)
			if err := w.api.Delete(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if a := w.step(c.addon); a != nil {
				t.Errorf("it cannot be deleted: %+v", a.Status)
			}
		})
	}
}

func TestProgramsOfMachines(t *testing.T) {
	machine := func(name, cluster string) *v1alpha1.Machine {
		return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineSpec{ClusterName: cluster, Provider: v1alpha1.ProviderLocal}}
	}
	w := newWorld(t, newAddon("kube-proxy", nil), newAddon("vpc-cni", nil), machine("i-1", "blue"), machine("i-2", "blue"), machine("i-3", "red"))
	reports := map[string]bootreport.Report{
		"i-1": {Reason: bootreport.ProgramFails, Message: "kubelet ends again and again"},
		"i-3": {Reason: bootreport.ProgramFails, Message: "kube-proxy ends again and again"},
	}
	w.r.Report = func(m *v1alpha1.Machine) (bootreport.Report, bool) { report, ok := reports[m.Name]; return report, ok }
	w.is(w.step("kube-proxy"), v1alpha1.AddonActive, "", "")
	reports["i-2"] = bootreport.Report{Reason: bootreport.ProgramFails, Message: "kube-proxy ends again and again: exit status 1"}
	a := w.step("kube-proxy")
	w.is(a, v1alpha1.AddonDegraded, issueInsufficient, "i-2: kube-proxy ends again and again: exit status 1")
	if !slices.Equal(a.Status.Issues[0].ResourceIDs, []string{"i-2"}) {
		t.Errorf("it is about %v", a.Status.Issues[0].ResourceIDs)
	}

	w.is(w.step("vpc-cni"), v1alpha1.AddonActive, "", "")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized"}}
	if err := w.cluster.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	w.is(w.step("vpc-cni"), v1alpha1.AddonDegraded, issueInsufficient, "n1: container runtime network not ready")
}

// The agents of machines that are nodes are asked, and of no other cluster.
func TestPodIdentityAgent(t *testing.T) {
	machine := func(name, cluster string, ready metav1.ConditionStatus) *v1alpha1.Machine {
		return &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineSpec{ClusterName: cluster, Provider: v1alpha1.ProviderLocal},
			Status: v1alpha1.MachineStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready}}},
		}
	}
	w := newWorld(t, newAddon("eks-pod-identity-agent", nil), machine("i-1", "blue", metav1.ConditionTrue), machine("i-2", "blue", metav1.ConditionTrue),
		machine("i-3", "blue", metav1.ConditionFalse), machine("i-4", "red", metav1.ConditionTrue))
	silent := map[string]bool{"i-3": true, "i-4": true}
	w.r.PodIdentity = func(_ context.Context, m *v1alpha1.Machine) error {
		if silent[m.Name] {
			return errors.New("connection refused")
		}
		return nil
	}
	w.is(w.step("eks-pod-identity-agent"), v1alpha1.AddonActive, "", "")
	silent["i-2"] = true
	a := w.step("eks-pod-identity-agent")
	w.is(a, v1alpha1.AddonDegraded, issueInsufficient, "does not answer on 1 of the machines: i-2: connection refused")
	if !slices.Equal(a.Status.Issues[0].ResourceIDs, []string{"i-2"}) {
		t.Errorf("it is about %v", a.Status.Issues[0].ResourceIDs)
	}
}

// An add-on that serves an API is healthy when the API server reaches it, and not before.
func TestAPIService(t *testing.T) {
	w := newWorld(t)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1.metrics.k8s.io"},
	}}
	says := func(code, want string) {
		t.Helper()
		issues, err := w.r.health(t.Context(), []*unstructured.Unstructured{object})
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			if len(issues) > 0 {
				t.Errorf("%+v", issues)
			}
			return
		}
		if len(issues) != 1 || issues[0].Code != code || !strings.Contains(issues[0].Message, want) {
			t.Errorf("%+v, want %s: %s", issues, code, want)
		}
	}
	says(issueNotFound, "is gone")
	there := object.DeepCopy()
	if err := w.cluster.Create(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	says(issueInternal, "has not asked")
	for status, want := range map[string]string{"False": "does not reach APIService v1beta1.metrics.k8s.io: FailedDiscoveryCheck: no route", "True": ""} {
		there.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": status, "reason": "FailedDiscoveryCheck", "message": "no route"}}}
		if err := w.cluster.Update(t.Context(), there); err != nil {
			t.Fatal(err)
		}
		says(issueInternal, want)
	}
	w.away = errors.New("away")
	if _, err := w.r.health(t.Context(), []*unstructured.Unstructured{object}); err == nil {
		t.Error("an outage is taken for health")
	}
}

// An add-on of a cluster's minor follows the API server, not what the cluster is to become: it is never newer.
func TestAnAddonFollowsTheAPIServer(t *testing.T) {
	t.Parallel()
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "blue", Namespace: "blue"}, Spec: v1alpha1.ClusterSpec{Name: "blue", Version: "1.37"}}
	cluster.Status.Version = "v1.36.4"
	w := newWorld(t, cluster, newAddon("kube-proxy", nil))
	has := func(want string) {
		t.Helper()
		known, _ := forVersion(want).Find("kube-proxy")
		if a := w.step("kube-proxy"); a.Status.Version != known.Version || a.Status.Phase != v1alpha1.AddonActive {
			t.Errorf("it is %s %s, want %s", a.Status.Phase, a.Status.Version, known.Version)
		}
	}
	has("1.36")
	cluster.Status.Version = "v1.37.2"
	if err := w.api.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	has("1.37")
	// An add-on whose version somebody chose keeps it whatever the API server becomes.
	known, _ := forVersion("1.37").Find("kube-proxy")
	w.wants("kube-proxy", func(s *v1alpha1.AddonSpec) { s.Version = known.Version })
	has("1.37")
	cluster.Status.Version = "v1.36.4"
	if err := w.api.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	has("1.37")
}
