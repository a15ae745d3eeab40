// SPDX-License-Identifier: Apache-2.0

package addoncontroller

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/addon"
	"muster.dev/muster/internal/cluster/baseline"
	"muster.dev/muster/internal/node/bootreport"
)

const dns = `
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: coredns, namespace: kube-system}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: coredns, namespace: kube-system}, data: {Corefile: ours}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: coredns, namespace: kube-system}
  spec:
    selector: {matchLabels: {k8s-app: kube-dns}}
    template:
      metadata: {labels: {k8s-app: kube-dns}}
      spec:
        containers: [{name: coredns, image: i, resources: {limits: {memory: 170Mi}}}]
`

func baseObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var list []map[string]any
	if err := yaml.Unmarshal([]byte(dns), &list); err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, object := range list {
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	return objects
}

// world is a management plane and a cluster, without the controllers of Deployments.
type world struct {
	t            *testing.T
	api, cluster client.Client
	r            *addons
	now          time.Time
	gaveUp       []string
	began        bool  // the cluster has its self-managed add-ons
	refuse       error // of every apply
	away         error // of every read
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, now: time.Unix(1800000000, 0)}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Addon{}).Build()
	w.cluster = fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithStatusSubresource(&appsv1.Deployment{}).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if w.refuse != nil {
				return w.refuse
			}
			var o client.ApplyOptions
			o.ApplyOptions(opts)
			raw, err := json.Marshal(object)
			if err != nil {
				return err
			}
			if o.FieldManager == "muster" && !strings.Contains(string(raw), `"spec"`) && !strings.Contains(string(raw), `"data"`) && w.began {
				// The API server has the manager give its fields up. The fake fills in empty fields before, and finds conflicts.
				w.gaveUp = append(w.gaveUp, string(raw))
				return nil
			}
			return c.Apply(ctx, object, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if w.away != nil {
				return w.away
			}
			return c.Get(ctx, key, object, opts...)
		},
	}).Build()
	w.r = &addons{api: w.api, now: func() time.Time { return w.now }, answered: map[string]time.Time{}, Config: Config{
		ClusterName: "blue", Cluster: w.cluster, Catalogue: addon.New(addon.Programs{Kubernetes: "v1.36.3", CoreDNS: "v1.15.0", CNI: "v1.9.1"}),
		Objects: func(string) ([]*unstructured.Unstructured, error) { return baseObjects(t), nil },
	}}
	return w
}

func newAddon(name string, change func(*v1alpha1.AddonSpec)) *v1alpha1.Addon {
	a := &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "blue", Generation: 1}, Spec: v1alpha1.AddonSpec{AddonName: name}}
	if change != nil {
		change(&a.Spec)
	}
	return a
}

// step reconciles until nothing changes any more, and returns the add-on; nil if it is gone.
func (w *world) step(name string) *v1alpha1.Addon {
	w.t.Helper()
	a := &v1alpha1.Addon{}
	for range 5 {
		if _, err := w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "blue", Name: name}}); err != nil && w.away == nil {
			w.t.Fatal(err)
		}
		if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "blue", Name: name}, a); err != nil {
			return nil
		}
	}
	return a
}

// wants changes the spec of an add-on, as the API server does.
func (w *world) wants(name string, change func(*v1alpha1.AddonSpec)) {
	w.t.Helper()
	a := &v1alpha1.Addon{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "blue", Name: name}, a); err != nil {
		w.t.Fatal(err)
	}
	change(&a.Spec)
	a.Generation++
	if err := w.api.Update(w.t.Context(), a); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deployment() *appsv1.Deployment {
	w.t.Helper()
	d := &appsv1.Deployment{}
	if err := w.cluster.Get(w.t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "coredns"}, d); err != nil {
		w.t.Fatal(err)
	}
	return d
}

// runs has all pods of the Deployment available.
func (w *world) runs() {
	w.t.Helper()
	d := w.deployment()
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, AvailableReplicas: n}
	if err := w.cluster.Status().Update(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) is(a *v1alpha1.Addon, phase v1alpha1.AddonPhase, code, says string) {
	w.t.Helper()
	got, message := "", ""
	if len(a.Status.Issues) > 0 {
		got, message = a.Status.Issues[0].Code, a.Status.Issues[0].Message
	}
	if a.Status.Phase != phase || got != code || !strings.Contains(message, says) {
		w.t.Errorf("it is %s, %s %q, want %s, %s %q", a.Status.Phase, got, message, phase, code, says)
	}
	ready := meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady)
	if ready != (phase == v1alpha1.AddonActive) {
		w.t.Errorf("Ready is %v of %s", ready, phase)
	}
}

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

	d := w.deployment() // what somebody changes in between stays
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
	if err := w.cluster.Delete(t.Context(), d); err != nil { // what is gone comes back
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

// A cluster begins with a CoreDNS of the field manager muster.
func (w *world) selfManaged() {
	w.t.Helper()
	if err := baseline.Apply(w.t.Context(), w.cluster, baseObjects(w.t)); err != nil {
		w.t.Fatal(err)
	}
	w.began = true
}

func (w *world) managers() []string {
	w.t.Helper()
	var names []string
	for _, e := range w.deployment().ManagedFields {
		if e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" {
			names = append(names, e.Manager)
		}
	}
	return names
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
		"no program":    {"metrics-server", nil, nil, v1alpha1.AddonDegraded, issueInsufficient, "metrics-server is not part of this release of Muster"},
		"no agent":      {"eks-pod-identity-agent", nil, nil, v1alpha1.AddonDegraded, issueInsufficient, "eks-pod-identity-agent is not part"},
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
	w.r.Report = func(id string) (bootreport.Report, bool) { report, ok := reports[id]; return report, ok }
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
