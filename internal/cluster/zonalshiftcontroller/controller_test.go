// SPDX-License-Identifier: Apache-2.0

package zonalshiftcontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/zonalshift"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// errDown is what each call is answered after the service or an API server went away.
var errDown = errors.New("connection refused")

// world is a cluster with a node and an endpoint in each of two zones, and the management plane.
type world struct {
	t          *testing.T
	management client.WithWatch
	cluster    client.WithWatch
	events     *events.FakeRecorder
	now        time.Time
	r          *reconciler
	// follows reports whether the API server has taken up the policy that is there, or that it is gone.
	follows, inForce bool
	// left is how many writes succeed until all calls fail; negative for all.
	left int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: noon, follows: true, left: -1, events: events.NewFakeRecorder(100)}
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(all); err != nil {
			t.Fatal(err)
		}
	}
	of := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "blue"}, Spec: v1alpha1.ClusterSpec{Name: "blue", ZonalShift: &v1alpha1.ClusterZonalShift{Enabled: true}}}
	w.management = interceptor.NewClient(fake.NewClientBuilder().WithScheme(all).WithObjects(of).WithStatusSubresource(&v1alpha1.ZonalShift{}, of).Build(), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.write(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{zonalshift.PolicyKind, zonalshift.BindingKind} {
		mapper.Add(schema.GroupVersionKind{Group: zonalshift.PolicyGroup, Version: "v1", Kind: kind}, meta.RESTScopeRoot)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	objects := []client.Object{w.slice()}
	for _, zone := range []string{"a", "b"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: zone, Labels: map[string]string{corev1.LabelTopologyZone: "us-east-1" + zone}}})
	}
	w.cluster = interceptor.NewClient(fake.NewClientBuilder().WithScheme(all).WithRESTMapper(mapper).WithObjects(objects...).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.write(func() error {
				if err := c.Patch(ctx, o, p, opts...); err != nil {
					return err
				}
				return w.admit(ctx, c, o)
			})
		},
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error { // without storing it
			if w.left == 0 {
				return errDown
			}
			if w.follows {
				w.inForce = w.policyIsThere() //nolint:contextcheck // it has the test's
			}
			if slice, ok := o.(*discoveryv1.EndpointSlice); ok && w.inForce {
				metav1.SetMetaDataLabel(&slice.ObjectMeta, v1alpha1.LabelZonalShift, "us-east-1a")
			}
			return nil
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return w.write(func() error { return c.Apply(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.write(func() error { return c.Delete(ctx, o, opts...) })
		},
	})
	w.restart()
	return w
}

func (*world) slice() *discoveryv1.EndpointSlice {
	endpoint := func(zone string) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{"10.0.0." + zone}, Zone: new("us-east-1" + zone), Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true)}}
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web-1", Labels: map[string]string{discoveryv1.LabelManagedBy: zonalshift.ManagedBy, discoveryv1.LabelServiceName: "web"}},
		Endpoints:  []discoveryv1.Endpoint{endpoint("a"), endpoint("b")},
	}
}

// write counts a write, and fails those after the last that is left.
func (w *world) write(do func() error) error {
	if w.left == 0 {
		return errDown
	}
	w.left--
	return do()
}

// admit is what the policy makes of a slice that is written, in an API server that follows it.
func (w *world) admit(ctx context.Context, c client.Client, o client.Object) error {
	slice, ok := o.(*discoveryv1.EndpointSlice)
	if w.follows {
		w.inForce = w.policyIsThere() //nolint:contextcheck // it has the test's
	}
	if !ok || !w.inForce {
		return nil
	}
	for i := range slice.Endpoints {
		if e := &slice.Endpoints[i]; *e.Zone == "us-east-1a" {
			e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false)}
			metav1.SetMetaDataLabel(&slice.ObjectMeta, v1alpha1.LabelZonalShift, *e.Zone)
		}
	}
	return c.Update(ctx, slice)
}

func (w *world) policyIsThere() bool {
	w.t.Helper()
	there := 0
	for _, kind := range []string{zonalshift.PolicyKind, zonalshift.BindingKind} {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(zonalshift.PolicyGroup + "/v1")
		o.SetKind(kind)
		err := w.cluster.Get(w.t.Context(), client.ObjectKey{Name: zonalshift.PolicyName}, o)
		if client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
		if err == nil {
			there++
		}
	}
	return there == 2
}

// restart is another process of the service.
func (w *world) restart() {
	w.r = &reconciler{
		Config:     Config{Namespace: "blue", API: w.cluster, Now: func() time.Time { return w.now }},
		management: w.management, nodes: w.cluster, recorder: w.events,
	}
}

func (w *world) look() (reconcile.Result, error) {
	w.t.Helper()
	return w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "blue", Name: "blue"}})
}

// settle looks until nothing is pending.
func (w *world) settle() reconcile.Result {
	w.t.Helper()
	for range 10 {
		result, err := w.look()
		if err != nil {
			w.t.Fatal(err)
		}
		if result.RequeueAfter != pendingAgain && result.RequeueAfter != settled || result.RequeueAfter == policyAgain && w.shifted() {
			return result
		}
	}
	w.t.Fatal("it does not settle")
	return reconcile.Result{}
}

func (w *world) shifted() bool { return strings.Contains(w.state(), "zones=us-east-1a") }

func (w *world) start(expires time.Duration) {
	w.t.Helper()
	s := &v1alpha1.ZonalShift{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "shift"}, Spec: v1alpha1.ZonalShiftSpec{ClusterName: "blue", AwayFrom: "us-east-1a", ExpiryTime: metav1.NewTime(w.now.Add(expires))}}
	if err := w.management.Create(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

// change changes the shift.
func (w *world) change(how func(*v1alpha1.ZonalShift)) {
	w.t.Helper()
	s := &v1alpha1.ZonalShift{}
	if err := w.management.Get(w.t.Context(), client.ObjectKey{Namespace: "blue", Name: "shift"}, s); err != nil {
		w.t.Fatal(err)
	}
	how(s)
	if err := w.management.Update(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

// state is what there is of a shift, in a line.
func (w *world) state() string {
	w.t.Helper()
	ctx := w.t.Context()
	var nodes corev1.NodeList
	slice, of, s := &discoveryv1.EndpointSlice{}, &v1alpha1.Cluster{}, &v1alpha1.ZonalShift{}
	err := errors.Join(w.cluster.List(ctx, &nodes), w.cluster.Get(ctx, client.ObjectKey{Namespace: "n", Name: "web-1"}, slice), w.management.Get(ctx, client.ObjectKey{Namespace: "blue", Name: "blue"}, of))
	if e := w.management.Get(ctx, client.ObjectKey{Namespace: "blue", Name: "shift"}, s); !apierrors.IsNotFound(e) {
		err = errors.Join(err, e)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	text := "zones=" + strings.Join(of.Status.ShiftedZones, ",") + " cordoned="
	for _, n := range nodes.Items {
		if n.Spec.Unschedulable {
			text += n.Name
		}
	}
	out := slice.Endpoints[0].Conditions
	applied := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionApplied)
	if applied == nil {
		applied = &metav1.Condition{}
	}
	return text + fmt.Sprintf(" policy=%v out=%v label=%s phase=%s applied=%s", w.policyIsThere(), !*out.Ready && !*out.Serving, slice.Labels[v1alpha1.LabelZonalShift], s.Status.Phase, applied.Status)
}

const (
	whileShifted = "zones=us-east-1a cordoned=a policy=true out=true label=us-east-1a phase=ACTIVE applied=True"
	// The endpoint is out until its controller, which no test here has, writes what is true.
	afterShift = "zones= cordoned= policy=false out=true label= phase=%s applied=False"
)

func (w *world) is(want string) {
	w.t.Helper()
	if got := w.state(); got != want {
		w.t.Errorf("it is %s\nwant  %s", got, want)
	}
}

// A shift is applied, and undone when it is cancelled, expires, or is deleted, also while nobody looked.
func TestShift(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(*world)
		phase string
	}{
		"cancelled":               {func(w *world) { w.change(func(s *v1alpha1.ZonalShift) { s.Spec.Canceled = true }) }, "CANCELED"},
		"expired":                 {func(w *world) { w.now = w.now.Add(time.Hour) }, "EXPIRED"},
		"expired with no service": {func(w *world) { w.now = w.now.Add(9 * time.Hour); w.restart() }, "EXPIRED"},
		"deleted with no service": {func(w *world) {
			if err := w.management.Delete(t.Context(), &v1alpha1.ZonalShift{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "shift"}}); err != nil {
				t.Fatal(err)
			}
			w.restart()
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start(time.Hour)
			if result := w.settle(); result.RequeueAfter != policyAgain {
				t.Errorf("it looks again after %v", result.RequeueAfter)
			}
			w.is(whileShifted)
			c.end(w)
			if result := w.settle(); result.RequeueAfter != 0 || !w.r.idle {
				t.Errorf("it looks again after %v", result.RequeueAfter)
			}
			want := fmt.Sprintf(afterShift, c.phase)
			if c.phase == "" {
				want = strings.TrimSuffix(want, "False")
			}
			w.is(want)
		})
	}
}

// Whichever write is the last one before the service is killed, the next process ends where the first would have.
func TestKilledAtEachWrite(t *testing.T) {
	for _, ends := range []bool{false, true} {
		writes := 0
		for last := 0; ; last++ {
			w := newWorld(t)
			w.start(time.Hour)
			want := whileShifted
			if ends {
				w.settle()
				w.now = w.now.Add(time.Hour)
				want = fmt.Sprintf(afterShift, "EXPIRED")
			}
			w.left = last
			for range 3 {
				_, _ = w.look()
			}
			killed := w.left == 0
			w.left = -1
			w.restart()
			w.settle()
			w.is(want)
			if !killed {
				break
			}
			writes++
		}
		if writes < 6 {
			t.Errorf("ends: %v: it was killed at %d writes alone", ends, writes)
		}
	}
}

// Until the API server follows the policy, the shift is not applied, and slices are written again; the same at its end.
func TestTheAPIServerIsBehind(t *testing.T) {
	w := newWorld(t)
	w.follows = false
	w.start(time.Hour)
	for range 3 {
		if result, err := w.look(); err != nil || result.RequeueAfter != pendingAgain {
			t.Fatal(result, err)
		}
	}
	w.is("zones=us-east-1a cordoned=a policy=true out=false label= phase= applied=False")
	w.follows = true
	w.settle()
	w.is(whileShifted)
	w.follows = false
	w.change(func(s *v1alpha1.ZonalShift) { s.Spec.Canceled = true })
	if result, err := w.look(); err != nil || result.RequeueAfter != pendingAgain {
		t.Fatal(result, err)
	}
	w.is("zones= cordoned= policy=false out=true label=us-east-1a phase=ACTIVE applied=False")
	w.follows = true
	w.settle()
	w.is(fmt.Sprintf(afterShift, "CANCELED"))
}

// A policy that somebody deletes or changes comes back, and an Event says so.
func TestThePolicyComesBack(t *testing.T) {
	for name, spoil := range map[string]func(context.Context, *world, *unstructured.Unstructured) error{
		"deleted": func(ctx context.Context, w *world, o *unstructured.Unstructured) error {
			return w.cluster.Delete(ctx, o)
		},
		"changed": func(ctx context.Context, w *world, o *unstructured.Unstructured) error {
			if err := unstructured.SetNestedSlice(o.Object, nil, "spec", "mutations"); err != nil {
				return err
			}
			return w.cluster.Update(ctx, o)
		},
	} {
		w := newWorld(t)
		w.start(time.Hour)
		w.settle()
		if said := w.said(); strings.Contains(said, "Restored") {
			t.Errorf("%s: Events of a new shift: %s", name, said)
		}
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(zonalshift.PolicyGroup + "/v1")
		o.SetKind(zonalshift.PolicyKind)
		if err := w.cluster.Get(t.Context(), client.ObjectKey{Name: zonalshift.PolicyName}, o); err != nil {
			t.Fatal(err)
		}
		if err := spoil(t.Context(), w, o); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(policyAgain)
		w.settle()
		w.is(whileShifted)
		if said := w.said(); !strings.Contains(said, "Warning ZonalShiftPolicyRestored") {
			t.Errorf("%s: Events: %s", name, said)
		}
		w.now = w.now.Add(policyAgain)
		w.settle()
		if said := w.said(); strings.Contains(said, "Restored") {
			t.Errorf("%s: Events without a cause: %s", name, said)
		}
	}
}

// A slice that its controller writes while the policy is away, or before the API server follows the new one, is found
// when that follows.
func TestWrittenWithoutThePolicy(t *testing.T) {
	w := newWorld(t)
	w.start(time.Hour)
	w.settle()
	for _, o := range zonalshift.Policy("v1", []string{"us-east-1a"}) {
		if err := w.cluster.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	w.follows, w.inForce = false, false
	write := func() {
		is := &discoveryv1.EndpointSlice{}
		if err := w.cluster.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "web-1"}, is); err != nil {
			t.Fatal(err)
		}
		is.Endpoints, is.Labels = w.slice().Endpoints, w.slice().Labels
		if err := w.cluster.Update(t.Context(), is); err != nil {
			t.Fatal(err)
		}
	}
	w.now = w.now.Add(policyAgain)
	for range 3 {
		write()
		if result, err := w.look(); err != nil || result.RequeueAfter != pendingAgain {
			t.Fatal(result, err)
		}
	}
	w.follows = true
	w.settle()
	w.is(whileShifted)
	write() // through an API server beside it, which follows later
	w.now = w.now.Add(policyAgain)
	w.settle()
	w.is(whileShifted)
}

// said are the Events since the last look at them.
func (w *world) said() string {
	var all []string
	for {
		select {
		case e := <-w.events.Events:
			all = append(all, e)
		default:
			slices.Sort(all)
			return strings.Join(all, "\n")
		}
	}
}

// Without a shift nothing is asked of the cluster after the first look, however often Nodes change.
func TestIdle(t *testing.T) {
	w := newWorld(t)
	w.settle()
	w.left = 0
	for range 3 {
		if _, err := w.look(); err != nil {
			t.Fatal(err)
		}
	}
	w.left = -1
	w.start(time.Hour)
	w.settle()
	w.is(whileShifted)
}
