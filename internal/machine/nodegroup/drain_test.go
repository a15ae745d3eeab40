// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/plane/readiness"
)

// draining is a world with a machine that has pods of every kind and is being deleted, and answers evictions as an API
// server does: the pod is marked, and goes when its kubelet has ended it.
func draining(t *testing.T) (*world, *machines) {
	t.Helper()
	w, r := joined(t)
	for _, p := range []*corev1.Pod{
		running("web-0"), running("web-1"),
		changed(running("agent"), func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", Controller: new(true)}}
		}),
		changed(running("static"), func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}),
		changed(running("job"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		changed(running("elsewhere"), func(p *corev1.Pod) { p.Spec.NodeName = "ip-192-168-64-12.ec2.internal" }),
	} {
		if err := w.cluster.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.cluster.Create(t.Context(), readyHost("ip-192-168-64-12.ec2.internal")); err != nil { // where pods could go
		t.Fatal(err)
	}
	w.faults.evict = func(c client.Client, pod client.Object) error {
		return w.faults.off(func() error { return c.Delete(context.WithoutCancel(t.Context()), pod) }) // its finalizer is the kubelet
	}
	w.now = time.Now()
	w.markDeleted(t)
	w.events.list = nil
	return w, r
}

// readyHost is the Node of a host that joined by itself.
func readyHost(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func running(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "pod-uid", Finalizers: []string{"example.com/kubelet"}},
		Spec:       corev1.PodSpec{NodeName: nodeName},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func changed(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(p)
	return p
}

// ends has the kubelet report the end of a pod.
func (w *world) ends(t *testing.T, name string) {
	t.Helper()
	pod := &corev1.Pod{}
	err := w.faults.off(func() error {
		if err := w.cluster.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, pod); err != nil {
			return err
		}
		pod.Finalizers = nil
		return w.cluster.Update(t.Context(), pod)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// evicted are the pods that were told to end and those that are gone, of those that were there.
func (w *world) evicted(t *testing.T) []string {
	t.Helper()
	list := &corev1.PodList{}
	if err := w.faults.off(func() error { return w.cluster.List(t.Context(), list) }); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range []string{"agent", "elsewhere", "job", "static", "web-0", "web-1"} {
		i := slices.IndexFunc(list.Items, func(p corev1.Pod) bool { return p.Name == name })
		if i < 0 || !list.Items[i].DeletionTimestamp.IsZero() {
			names = append(names, name)
		}
	}
	return names
}

func (w *world) untouched(t *testing.T, when string) {
	t.Helper()
	node := &corev1.Node{}
	if !w.get(t, w.cluster, node, nodeName) || !node.Spec.Unschedulable {
		t.Errorf("%s: the Node is gone or takes pods", when)
	}
	if len(w.provider.instances) != 1 || len(w.routes.set) != 1 {
		t.Errorf("%s: %d instances, %d routes", when, len(w.provider.instances), len(w.routes.set))
	}
}

func (w *world) wantDrained(t *testing.T, reason, message string) {
	t.Helper()
	m := w.machine(t)
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained)
	if c == nil || c.Reason != reason || !strings.Contains(c.Message, message) {
		t.Errorf("condition is %+v, want %s: %s", c, reason, message)
	}
	if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); m.Status.Phase != v1alpha1.MachineTerminating || !strings.Contains(ready.Message, message) {
		t.Errorf("phase %s, condition %+v", m.Status.Phase, ready)
	}
}

func TestDrain(t *testing.T) {
	w, r := draining(t)
	if wait := mustReconcile(t, r, id).RequeueAfter; wait != drainAgain {
		t.Errorf("looks again after %s", wait)
	}
	w.untouched(t, "pods are ending")
	w.wantDrained(t, "Draining", "2 pods are left, default/web-0 among them")
	if got := w.evicted(t); !slices.Equal(got, []string{"web-0", "web-1"}) {
		t.Errorf("evicted %q", got)
	}
	w.ends(t, "web-0")
	w.now = w.now.Add(time.Second)
	mustReconcile(t, w.machines(), id) // as after kill -9
	w.untouched(t, "one pod is ending")
	w.wantDrained(t, "Draining", "1 pod is left, default/web-1 among them")
	w.ends(t, "web-1")
	mustReconcile(t, w.machines(), id)
	if w.get(t, w.management, &v1alpha1.Machine{}, id) || len(w.provider.instances) != 0 {
		t.Error("the machine stays")
	}
	events := strings.Join(w.events.list, "\n")
	for _, want := range []string{"Normal Draining: evicting the pods of node " + nodeName, "Normal Drained: "} {
		if strings.Count(events, want) != 1 {
			t.Errorf("events, want one %q:\n%s", want, events)
		}
	}
}

// A machine whose record is damaged is drained and ends: as long as it is there, no new machine gets an address.
func TestDrainOfADamagedRecord(t *testing.T) {
	w, _ := draining(t)
	w.provider.damaged = true
	mustReconcile(t, w.machines(), id)
	w.wantDrained(t, "Draining", "2 pods are left")
	w.ends(t, "web-0")
	w.ends(t, "web-1")
	mustReconcile(t, w.machines(), id)
	if w.get(t, w.management, &v1alpha1.Machine{}, id) || len(w.provider.instances) != 0 {
		t.Error("the machine stays")
	}
}

// refusal is what upstream's API server answers to an eviction that a disruption budget forbids
// (pkg/registry/core/pod/storage/eviction.go).
func refusal() error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget web needs 2 healthy pods and has 2 currently",
	})
	return err
}

func TestDrainWaitsForDisruptionBudgets(t *testing.T) {
	w, r := draining(t)
	marked := w.faults.evict
	w.faults.evict = func(c client.Client, pod client.Object) error {
		if pod.GetName() == "web-0" {
			return refusal()
		}
		return marked(c, pod)
	}
	if wait := mustReconcile(t, r, id).RequeueAfter; wait != blockedAgain {
		t.Errorf("looks again after %s", wait)
	}
	w.wantDrained(t, "Draining", "2 pods are left, and default/web-0 may not be evicted: The disruption budget web needs 2 healthy pods and has 2 currently")
	if got := w.evicted(t); !slices.Equal(got, []string{"web-1"}) {
		t.Errorf("evicted %q: one pod that may not go holds up the others", got)
	}
	w.ends(t, "web-1")
	began := w.now
	for _, after := range []time.Duration{time.Minute, v1alpha1.MaxDrainTimeout - time.Second} {
		w.now = began.Add(after)
		mustReconcile(t, w.machines(), id)
		w.untouched(t, after.String())
	}
	if n := w.faults.calls["cluster create eviction *v1.Pod"]; n != 4 {
		t.Errorf("%d evictions were asked for, want web-0 each time and web-1 once", n)
	}
	w.now = began.Add(v1alpha1.MaxDrainTimeout)
	mustReconcile(t, w.machines(), id)
	if w.get(t, w.management, &v1alpha1.Machine{}, id) || len(w.provider.instances) != 0 {
		t.Error("the machine stays when the time is up")
	}
	events := strings.Join(w.events.list, "\n")
	if want := "Warning DrainTimedOut: 1 pod is left, and default/web-0 may not be evicted"; strings.Count(events, want) != 1 {
		t.Errorf("events:\n%s", events)
	}
	if n := strings.Count(events, "DrainBlocked"); n > 1 {
		t.Errorf("%d events say the same:\n%s", n, events)
	}
}

// A budget that has given a pod away counts it as gone, although nobody has deleted it: the service or the API server
// was killed in the middle of the eviction. That pod goes, and no later pod of its name.
func TestDrainEndsAnEvictionThatWasCutShort(t *testing.T) {
	w, r := draining(t)
	w.faults.evict = func(client.Client, client.Object) error { return refusal() }
	created := func(pod string) metav1.Time {
		is := &corev1.Pod{}
		if err := w.cluster.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: pod}, is); err != nil {
			t.Fatal(err)
		}
		return is.CreationTimestamp
	}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptedPods: map[string]metav1.Time{
			"web-0": metav1.NewTime(created("web-0").Add(time.Second)),
			"web-1": created("web-1"),
		}},
	}
	if err := w.cluster.Create(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	if _, err := staticMapper().RESTMapping(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget").GroupKind(), "v1"); err != nil {
		t.Errorf("a real cluster cannot be asked: %v", err)
	}
	w.faults.fail("cluster list *v1.PodDisruptionBudgetList", 1)
	if _, err := reconcileOnce(t, r, id); !errors.Is(err, errTest) {
		t.Errorf("the budgets cannot be read: %v", err)
	}
	mustReconcile(t, r, id)
	if got := w.evicted(t); !slices.Equal(got, []string{"web-0"}) {
		t.Errorf("deleted %q", got)
	}
	w.wantDrained(t, "Draining", "2 pods are left, and default/web-1 may not be evicted: The disruption budget web needs 2 healthy pods and has 2 currently")
}

// A cluster that ends has its pods deleted, whatever budgets they have. They get the time that they ask for.
func TestDrainOfAClusterThatEnds(t *testing.T) {
	w, r := draining(t)
	w.faults.evict = func(client.Client, client.Object) error { return refusal() }
	mustReconcile(t, r, id)
	w.wantDrained(t, "Draining", "may not be evicted")
	cluster := newTestCluster()
	cluster.Finalizers = []string{v1alpha1.FinalizerCluster}
	if err := errors.Join(w.management.Create(t.Context(), cluster), w.management.Delete(t.Context(), cluster)); err != nil {
		t.Fatal(err)
	}
	w.faults.fail("management get *v1alpha1.Cluster", 1)
	if _, err := reconcileOnce(t, r, id); !errors.Is(err, errTest) {
		t.Errorf("the cluster cannot be read: %v", err)
	}
	mustReconcile(t, r, id)
	if got := w.evicted(t); !slices.Equal(got, []string{"web-0", "web-1"}) {
		t.Errorf("deleted %q", got)
	}
	w.untouched(t, "pods are ending")
	w.wantDrained(t, "Draining", "2 pods are left, default/web-0 among them")
	w.ends(t, "web-0")
	w.ends(t, "web-1")
	mustReconcile(t, r, id)
	if len(w.provider.instances) != 0 {
		t.Error("the machine stays")
	}
}

// On the last node nothing that a disruption budget waits for can become ready elsewhere, unless something is to take
// the node's place.
func TestDrainOfTheLastNode(t *testing.T) {
	staying, going := newTestMachine(), newTestMachine()
	staying.Name, going.Name, going.Finalizers = "i-fffffffffffffffff", "i-eeeeeeeeeeeeeeeee", []string{v1alpha1.FinalizerMachine}
	hostOf := func(id string) *corev1.Node {
		node := readyHost("ip-192-168-64-13.ec2.internal")
		node.Spec.ProviderID = v1alpha1.ProviderID("us-east-1a", id)
		return node
	}
	for name, test := range map[string]struct {
		objects []client.Object
		nodes   []client.Object
		last    bool
	}{
		"nothing else":                     {last: true},
		"a group that wants none":          {objects: []client.Object{newTestGroup(0)}, last: true},
		"a group that wants one":           {objects: []client.Object{newTestGroup(1)}},
		"a machine that is to join":        {objects: []client.Object{staying}},
		"a host that is Ready":             {nodes: []client.Object{readyHost("mine")}},
		"a node of a machine that goes":    {objects: []client.Object{going}, nodes: []client.Object{hostOf(going.Name)}, last: true},
		"a node of a machine that is gone": {nodes: []client.Object{hostOf("i-ddddddddddddddddd")}},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := draining(t)
			w.faults.evict = func(client.Client, client.Object) error { return refusal() }
			if err := w.cluster.Delete(t.Context(), readyHost("ip-192-168-64-12.ec2.internal")); err != nil {
				t.Fatal(err)
			}
			for _, o := range test.objects {
				object, _ := o.DeepCopyObject().(client.Object)
				if err := w.management.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
				if o == going {
					if err := w.management.Delete(t.Context(), object); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, o := range test.nodes {
				if err := w.cluster.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			mustReconcile(t, r, id)
			if !test.last {
				w.wantDrained(t, "Draining", "may not be evicted")
				if got := w.evicted(t); len(got) != 0 {
					t.Errorf("deleted %q", got)
				}
				return
			}
			w.wantDrained(t, "Draining", "2 pods are left, default/web-0 among them; "+readiness.LastNode)
			if got := w.evicted(t); !slices.Equal(got, []string{"web-0", "web-1"}) {
				t.Errorf("deleted %q", got)
			}
			if events := strings.Join(w.events.list, "\n"); strings.Count(events, "Warning LastNode: ") != 1 {
				t.Errorf("events:\n%s", events)
			}
			w.now = w.now.Add(graceMore + 5*time.Second)
			mustReconcile(t, r, id)
			if len(w.provider.instances) != 0 {
				t.Error("the machine waits for pods past their grace period")
			}
		})
	}
}

// A time that is up stays up: what fails afterwards is tried again without the pods.
func TestDrainTimedOutOnce(t *testing.T) {
	w, r := draining(t)
	mustReconcile(t, r, id)
	w.now = w.now.Add(v1alpha1.MaxDrainTimeout)
	w.faults.fail("Terminate", 1)
	if _, err := reconcileOnce(t, r, id); err == nil {
		t.Fatal("no error")
	}
	w.now = w.now.Add(-time.Minute) // even if the clock is set back
	mustReconcile(t, w.machines(), id)
	if len(w.provider.instances) != 0 {
		t.Error("the machine stays")
	}
}

// Where nobody could end the pods, they are not waited for.
func TestDrainWithoutAnybody(t *testing.T) {
	for name, happen := range map[string]func(t *testing.T, w *world){
		"the instance is gone":    func(_ *testing.T, w *world) { w.provider.instances = nil },
		"the instance is stopped": func(_ *testing.T, w *world) { w.provider.instances[0].State = machine.Stopped },
		"the kubelet is silent":   func(t *testing.T, w *world) { t.Helper(); w.setReady(t, corev1.ConditionUnknown) },
		"the Node is gone": func(t *testing.T, w *world) {
			t.Helper()
			if err := w.cluster.Delete(t.Context(), newTestNode(corev1.ConditionTrue)); err != nil {
				t.Fatal(err)
			}
		},
		"the Node is another's": func(t *testing.T, w *world) {
			t.Helper()
			node := &corev1.Node{}
			w.get(t, w.cluster, node, nodeName)
			node.Spec.ProviderID = v1alpha1.ProviderID("us-east-1a", "i-fffffffffffffffff")
			if err := w.cluster.Update(t.Context(), node); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := draining(t)
			happen(t, w)
			mustReconcile(t, r, id)
			if w.get(t, w.management, &v1alpha1.Machine{}, id) || len(w.provider.instances) != 0 {
				t.Error("the machine waits")
			}
			evicted := slices.Contains(w.evicted(t), "web-0")
			if another := name == "the Node is another's"; evicted == another {
				t.Errorf("evicted %q", w.evicted(t))
			}
		})
	}
}

// The grace period of a pod is over, and the kubelet does not say so.
func TestDrainPodThatDoesNotGo(t *testing.T) {
	w, r := draining(t)
	mustReconcile(t, r, id)
	w.now = w.now.Add(graceMore + 5*time.Second)
	mustReconcile(t, r, id)
	if len(w.provider.instances) != 0 {
		t.Error("the machine waits for a pod past its grace period")
	}
}

// denial is what upstream's API server answers to an eviction that a webhook denies with a message alone: it gives no
// reason (k8s.io/apiserver, pkg/admission/plugin/webhook/errors).
func denial() error {
	return webhookerrors.ToStatusErr("pods.example.com", &metav1.Status{Message: "not on a Sunday"})
}

// A webhook keeps one pod: it holds up neither the others nor the end of the machine.
func TestDrainWhereAWebhookDenies(t *testing.T) {
	w, r := draining(t)
	marked := w.faults.evict
	w.faults.evict = func(c client.Client, pod client.Object) error {
		if pod.GetName() == "web-0" {
			return denial()
		}
		return marked(c, pod)
	}
	if wait := mustReconcile(t, r, id).RequeueAfter; wait != blockedAgain {
		t.Errorf("looks again after %s", wait)
	}
	w.wantDrained(t, "Draining", `default/web-0 may not be evicted: admission webhook "pods.example.com" denied the request: not on a Sunday`)
	if got := w.evicted(t); !slices.Equal(got, []string{"web-1"}) {
		t.Errorf("evicted %q", got)
	}
	w.ends(t, "web-1")
	w.now = w.now.Add(v1alpha1.MaxDrainTimeout)
	mustReconcile(t, r, id)
	if len(w.provider.instances) != 0 {
		t.Error("the machine stays when the time is up")
	}
}
