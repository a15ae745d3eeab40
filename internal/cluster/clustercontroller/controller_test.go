// SPDX-License-Identifier: Apache-2.0

package clustercontroller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

var errTest = errors.New("it does not work today")

// world is a management plane, and a host that says what it was asked to do.
type world struct {
	closed  []string
	t       *testing.T
	api     client.Client
	did     []string
	err     error // of the next thing that the host is asked to do
	served  bool
	message string
	writes  int
	empty   func() (int, error)
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Cluster{}, &corev1.Namespace{}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				w.writes++
				return c.SubResource(sub).Patch(ctx, object, patch, opts...)
			},
			// The fake has no subresource finalize: in the API server it changes spec.finalizers alone, and a namespace
			// without them goes.
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, _ ...client.SubResourceUpdateOption) error {
				if sub != "finalize" {
					t.Errorf("subresource %s", sub)
				}
				w.did = append(w.did, "finalize "+object.GetName())
				object.SetFinalizers(nil)
				return c.Update(ctx, object)
			},
		}).Build()
	return w
}

func (w *world) Host(_ context.Context, object *v1alpha1.Cluster) error {
	return w.do("host " + object.Spec.Name)
}

func (w *world) State(string) (bool, string) { return w.served, w.message }

// Close must come before anything is asked about machines that are left.
func (w *world) Close(object *v1alpha1.Cluster) { w.closed = append(w.closed, object.Spec.Name) }

func (w *world) Remove(_ context.Context, object *v1alpha1.Cluster) error {
	return w.do("remove " + object.Spec.Name)
}

func (w *world) Empty(_ context.Context, namespace string) (int, error) {
	if w.empty != nil {
		return w.empty()
	}
	return 0, w.do("empty " + namespace)
}

func (w *world) do(what string) error {
	w.did = append(w.did, what)
	err := w.err
	w.err = nil
	return err
}

func (w *world) reconcile(namespace, name string) (reconcile.Result, error) {
	w.t.Helper()
	r := &clusters{hosts: w, api: w.api, live: w.api}
	return r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
}

func (w *world) get(object client.Object) bool {
	w.t.Helper()
	err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(object), object)
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

// says checks the condition Ready, which is false.
func (w *world) says(object *v1alpha1.Cluster, reason, message string) {
	w.t.Helper()
	if !w.get(object) {
		w.t.Fatalf("cluster %s is gone", object.Name)
	}
	ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != reason || !strings.Contains(ready.Message, message) || len(ready.Message) > 1024 {
		w.t.Errorf("the condition is %+v, want %s: %s", ready, reason, message)
	}
}

func newCluster() *v1alpha1.Cluster {
	return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "blue", Namespace: "blue", UID: "one", Generation: 1}, Spec: v1alpha1.ClusterSpec{Name: "blue"}}
}

func newNamespace(finalizers ...string) *corev1.Namespace {
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "blue", Finalizers: finalizers},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
	}
}

func TestClusterIsStarted(t *testing.T) {
	object := newCluster()
	w := newWorld(t, object)
	for range 2 {
		if result, err := w.reconcile("blue", "blue"); err != nil || result.RequeueAfter != startingAgain {
			t.Errorf("got %+v, %v", result, err)
		}
		w.says(object, readiness.ReasonCreating, "the control plane is starting")
	}
	if w.writes != 1 {
		t.Errorf("%d writes of the status, want 1", w.writes)
	}
	if !slices.Contains(object.Finalizers, v1alpha1.FinalizerCluster) || object.Status.ObservedGeneration != 1 {
		t.Errorf("object %+v", object)
	}
	w.message = "starting the cluster: no ports are left"
	_, _ = w.reconcile("blue", "blue")
	w.says(object, readiness.ReasonCreating, "no ports are left")
	w.served, w.writes = true, 0
	if result, err := w.reconcile("blue", "blue"); err != nil || result.RequeueAfter != servedAgain || w.writes != 0 {
		t.Errorf("of one that is served: %+v, %v, %d writes", result, err, w.writes)
	}
	if diff := cmp.Diff([]string{"host blue", "host blue", "host blue", "host blue"}, w.did); diff != "" {
		t.Error(diff)
	}
	if result, err := w.reconcile("blue", "gone"); err != nil || result != (reconcile.Result{}) {
		t.Errorf("of one that is gone: %+v, %v", result, err)
	}
}

func TestClusterIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change          func(*v1alpha1.Cluster)
		err             error
		reason, message string
		again           time.Duration
		failed          bool
		did             []string
	}{
		"the namespace of another": {
			change: func(c *v1alpha1.Cluster) { c.Namespace = "green" }, reason: readiness.ReasonWrongName,
			message: `cluster "blue" must have the name blue, in namespace blue; this one is blue in namespace green`,
		},
		"another hash": {
			change: func(c *v1alpha1.Cluster) { c.Spec.Name = "Blue" }, reason: readiness.ReasonWrongName,
			message: `cluster "Blue" must have the name ` + v1alpha1.ClusterSlug("Blue"),
		},
		"refused by the host": {
			err: &Refusal{Reason: "InsufficientMemory", Message: strings.Repeat("x", 2000)}, reason: "InsufficientMemory", message: "xxx...",
			again: refusedAgain, did: []string{"host blue"},
		},
		"failed": {err: errTest, reason: ReasonFailed, message: errTest.Error(), failed: true, did: []string{"host blue"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := newCluster()
			if test.change != nil {
				test.change(object)
			}
			w := newWorld(t, object)
			w.err = test.err
			result, err := w.reconcile(object.Namespace, object.Name)
			if (err != nil) != test.failed || result.RequeueAfter != test.again {
				t.Errorf("got %+v, %v", result, err)
			}
			w.says(object, test.reason, test.message)
			if diff := cmp.Diff(test.did, w.did); diff != "" {
				t.Error(diff)
			}
			if len(test.did) > 0 {
				return
			}
			// A cluster without started processes goes at once.
			object.Finalizers = []string{metav1.FinalizerDeleteDependents}
			if err := errors.Join(w.api.Update(t.Context(), object), w.api.Delete(t.Context(), object)); err != nil {
				t.Fatal(err)
			}
			if _, err := w.reconcile(object.Namespace, object.Name); err != nil || w.get(object) || len(w.did) != 0 {
				t.Errorf("deleted: %v, %v", err, w.did)
			}
		})
	}
}

// Nobody else deletes the machines of a cluster that are of no node group.
func TestInstancesGoWithTheirCluster(t *testing.T) {
	object := newCluster()
	object.Finalizers = []string{v1alpha1.FinalizerCluster, metav1.FinalizerDeleteDependents}
	instance := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-00000000000000001", Finalizers: []string{v1alpha1.FinalizerMachine}}, Spec: v1alpha1.MachineSpec{ClusterName: "blue"}}
	others := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-00000000000000002"}, Spec: v1alpha1.MachineSpec{ClusterName: "green"}}
	of := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-00000000000000003"}, Spec: v1alpha1.MachineSpec{ClusterName: "blue", NodeGroup: "workers"}}
	w := newWorld(t, object, instance, others, of, newNamespace())
	if err := w.api.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile("blue", "blue"); err != nil {
		t.Fatal(err)
	}
	w.says(object, ReasonDeleting, "machines are being terminated: i-00000000000000001, i-00000000000000003")
	if !w.get(instance) || instance.DeletionTimestamp.IsZero() {
		t.Error("the instance is not deleted")
	}
	if !w.get(others) || !w.get(of) || len(w.did) > 0 {
		t.Errorf("others went with it: %v", w.did)
	}
	if !slices.Equal(w.closed, []string{"blue"}) {
		t.Errorf("clusters that launch no machines any more: %v", w.closed)
	}
}

func TestClusterIsRemoved(t *testing.T) {
	object := newCluster()
	object.Finalizers = []string{v1alpha1.FinalizerCluster, metav1.FinalizerDeleteDependents}
	group := &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: "workers", Namespace: "blue"}, Spec: v1alpha1.NodeGroupSpec{Name: "workers"}}
	other := &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: "workers", Namespace: "green"}, Spec: v1alpha1.NodeGroupSpec{Name: "workers"}}
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-00000000000000001"}, Spec: v1alpha1.MachineSpec{ClusterName: "blue", NodeGroup: "workers"}}
	others := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-00000000000000002"}, Spec: v1alpha1.MachineSpec{ClusterName: "green"}}
	namespace := newNamespace("keeps/it")
	w := newWorld(t, object, group, other, machine, others, namespace)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.api.Delete(t.Context(), object))
	if result, err := w.reconcile("blue", "blue"); err != nil || result.RequeueAfter != startingAgain {
		t.Errorf("got %+v, %v", result, err)
	}
	w.says(object, ReasonNodeGroupsExist, "node groups are: workers. Delete them, or all at once with `muster delete cluster blue --cascade`")
	must(w.api.Delete(t.Context(), group))
	_, err := w.reconcile("blue", "blue")
	must(err)
	w.says(object, ReasonDeleting, "machines are being terminated: i-00000000000000001")
	must(w.api.Delete(t.Context(), machine))
	if len(w.did) != 0 {
		t.Errorf("too early: %v", w.did)
	}
	w.err = errTest
	if _, err := w.reconcile("blue", "blue"); !errors.Is(err, errTest) {
		t.Errorf("got %v", err)
	}
	w.says(object, ReasonDeleting, errTest.Error())
	if w.get(namespace); !namespace.DeletionTimestamp.IsZero() {
		t.Error("the namespace is deleted before the cluster is gone")
	}
	_, err = w.reconcile("blue", "blue")
	must(err)
	if w.get(object) {
		t.Errorf("the object is still there: %+v", object)
	}
	if !w.get(namespace) || namespace.DeletionTimestamp.IsZero() {
		t.Error("the namespace is not being deleted")
	}
	if diff := cmp.Diff([]string{"remove blue", "remove blue"}, w.did); diff != "" {
		t.Error(diff)
	}
}

// A cache that is behind shows the cluster that is gone where the next one of its name is: that one is left alone.
func TestClusterOfTheSameName(t *testing.T) {
	next := newCluster()
	next.UID = "two"
	w := newWorld(t, next)
	behind := newCluster()
	behind.Finalizers, behind.DeletionTimestamp = []string{v1alpha1.FinalizerCluster}, &metav1.Time{Time: time.Unix(1, 0)}
	r := &clusters{hosts: w, api: stale{w.api, behind}, live: w.api}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(next)}); err != nil || len(w.did) != 0 {
		t.Errorf("%v, %v", err, w.did)
	}
}

// stale is a client whose cache has one object as it was.
type stale struct {
	client.Client
	was *v1alpha1.Cluster
}

func (s stale) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.was.DeepCopyInto(object.(*v1alpha1.Cluster))
	return nil
}

func TestNamespaceIsEmptiedInOrder(t *testing.T) {
	object := newCluster()
	object.Finalizers = []string{v1alpha1.FinalizerCluster}
	group := &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: "workers", Namespace: "blue", Finalizers: []string{"keeps/it"}}}
	namespace := newNamespace("keeps/it")
	addon := &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: "coredns", Namespace: "blue", Finalizers: []string{v1alpha1.FinalizerAddon}}}
	w := newWorld(t, object, group, namespace, addon)
	step := func() (reconcile.Result, error) {
		r := &namespaces{api: w.api, live: w.api, contents: w}
		return r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "blue"}})
	}
	if result, err := step(); err != nil || result != (reconcile.Result{}) || !w.get(group) || !group.DeletionTimestamp.IsZero() {
		t.Fatalf("a namespace that nobody deletes: %+v, %v", result, err)
	}
	if err := w.api.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if result, err := step(); err != nil || result.RequeueAfter != emptyAgain {
			t.Errorf("got %+v, %v", result, err)
		}
	}
	if !w.get(group) || group.DeletionTimestamp.IsZero() || !w.get(object) || !object.DeletionTimestamp.IsZero() {
		t.Errorf("the node group goes first: %v, %v", group.DeletionTimestamp, object.DeletionTimestamp)
	}
	group.Finalizers = nil
	if err := w.api.Update(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	if _, err := step(); err != nil || !w.get(object) || object.DeletionTimestamp.IsZero() || len(w.did) != 0 {
		t.Errorf("then the cluster: %v, %v, %v", err, object.DeletionTimestamp, w.did)
	}
	if !w.get(addon) || len(addon.Finalizers) == 0 {
		t.Error("an add-on of a cluster that is there was let go")
	}
	object.Finalizers = nil
	if err := w.api.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	w.err = errTest
	if _, err := step(); !errors.Is(err, errTest) || !w.get(namespace) || len(namespace.Status.Conditions) != 1 || namespace.Status.Conditions[0].Message != errTest.Error() {
		t.Errorf("what fails is said: %v, %+v", err, namespace.Status)
	}
	if !w.get(addon) || len(addon.Finalizers) != 0 {
		t.Errorf("an add-on of a cluster that is gone has the finalizers %v", addon.Finalizers)
	}
	w.empty = func() (int, error) { return 2, nil }
	if result, err := step(); err != nil || result.RequeueAfter != emptyAgain {
		t.Errorf("with objects left: %+v, %v", result, err)
	}
	w.empty = nil
	if _, err := step(); err != nil || w.get(namespace) {
		t.Errorf("in the end: %v, %+v", err, namespace)
	}
	if diff := cmp.Diff([]string{"empty blue", "empty blue", "finalize blue"}, w.did); diff != "" {
		t.Error(diff)
	}
}

// A namespace that is deleted although its cluster is protected keeps everything, and says why.
func TestNamespaceOfAProtectedCluster(t *testing.T) {
	object := newCluster()
	object.Finalizers, object.Spec.DeletionProtection = []string{v1alpha1.FinalizerCluster}, true
	group := &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: "workers", Namespace: "blue"}}
	namespace := newNamespace("keeps/it")
	w := newWorld(t, object, group, namespace)
	if err := w.api.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	r := &namespaces{api: w.api, live: w.api, contents: w}
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "blue"}}
	const want = `cluster "blue" has deletion protection enabled: namespace blue is emptied once spec.deletionProtection is false`
	if _, err := r.Reconcile(t.Context(), request); err == nil || !w.get(group) || !w.get(object) || !w.get(namespace) || namespace.Status.Conditions[0].Message != want {
		t.Errorf("%v, the namespace says %+v", err, namespace.Status.Conditions)
	}
	object.Spec.DeletionProtection = false
	if err := w.api.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), request); err != nil || w.get(group) {
		t.Errorf("without protection: %v, %v", err, group.DeletionTimestamp)
	}
}
