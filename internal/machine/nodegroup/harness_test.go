// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/nodegroupspec"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/release/releasetest"
)

const (
	id       = "i-0123456789abcdef0"
	nodeName = "ip-192-168-64-11.ec2.internal"
)

var errTest = errors.New("made to fail")

// world is both planes and a provider, any call of which can be made to fail.
type world struct {
	parts
	provider *provider
	routes   *routes
	roles    *roles
	faults   *faults
	events   *recorder
	now      time.Time
	health   Health
	usage    []machine.Usage
}

// scheme is made once: that takes longer than most tests.
var scheme = sync.OnceValues(Scheme)

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme, err := scheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		faults: &faults{left: map[string]int{}, calls: map[string]int{}},
		events: &recorder{},
		now:    time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
	}
	for _, subnet := range clusternetworktest.Network().Subnets {
		w.usage = append(w.usage, machine.Usage{Subnet: machine.Subnet{ID: subnet.ID, VPC: clusternetworktest.VPCID, Zone: subnet.Zone, CIDR: subnet.CIDR}})
	}
	w.provider = &provider{faults: w.faults, now: func() time.Time { return w.now }}
	w.routes = &routes{faults: w.faults, set: map[netip.Prefix]netip.Addr{}}
	build := func(plane string, mine func(client.Object) bool) client.Client {
		builder := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(w.faults.intercept(plane)).
			WithIndex(&corev1.Pod{}, fieldNodeName, func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
			WithStatusSubresource(&v1alpha1.Cluster{}, &v1alpha1.NodeGroup{}, &v1alpha1.Machine{}, &corev1.Node{})
		for _, object := range objects {
			if mine(object) {
				builder = builder.WithObjects(object)
			}
		}
		return builder.Build()
	}
	musters := func(object client.Object) bool {
		kinds, _, _ := scheme.ObjectKinds(object)
		return kinds[0].Group == v1alpha1.GroupVersion.Group
	}
	w.management = build("management", musters)
	w.cluster = build("cluster", func(object client.Object) bool { return !musters(object) })
	w.managementLive, w.clusterLive = w.management, w.cluster
	w.steps = joinlog.NewTracker()
	w.recorder, w.nodeEvents = w.events, w.events
	w.roles = &roles{faults: w.faults}
	w.Config = Config{
		Release: release.Default(), Releases: releasetest.List(),
		NodeRoles:   w.roles,
		ClusterName: "muster",
		Providers:   map[v1alpha1.Provider]machine.Provider{v1alpha1.ProviderLocal: w.provider},
		Routes:      map[v1alpha1.Provider]Routes{v1alpha1.ProviderLocal: w.routes},
		Network:     clusternetworktest.Network(),
		Usage:       func() ([]machine.Usage, error) { return w.usage, nil },
		UserData: func(_ *v1alpha1.Machine, token string) ([]byte, error) {
			return []byte("token: " + token), w.faults.call("userdata")
		},
		Health: func(context.Context) Health { return w.health },
		Log:    slog.New(slog.DiscardHandler),
		Random: rand.NewChaCha8([32]byte{1}),
		Now:    func() time.Time { return w.now },

		DrainTime: v1alpha1.MaxDrainTimeout,
	}
	return w
}

func (w *world) machines() *machines {
	return &machines{parts: w.parts, relaunch: newPacer(), memory: newMemory(), ranges: newPodRanges()}
}
func (w *world) groups() *groups { return &groups{parts: w.parts} }

func (w *world) get(t *testing.T, c client.Client, object client.Object, name string) bool {
	t.Helper()
	err := w.faults.off(func() error { return c.Get(t.Context(), keyOf(object, name), object) })
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// keyOf is the key of an object of the test's cluster.
func keyOf(object client.Object, name string) client.ObjectKey {
	switch object.(type) {
	case *v1alpha1.Cluster, *v1alpha1.NodeGroup:
		return client.ObjectKey{Namespace: "muster", Name: name}
	}
	return client.ObjectKey{Name: name}
}

// groupRequest asks for a node group of the test's cluster.
func groupRequest(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: keyOf(&v1alpha1.NodeGroup{}, name)}
}

func (w *world) machine(t *testing.T) *v1alpha1.Machine {
	t.Helper()
	m := &v1alpha1.Machine{}
	if !w.get(t, w.management, m, id) {
		t.Fatalf("machine %s is gone", id)
	}
	return m
}

func (w *world) tokens(t *testing.T) []corev1.Secret {
	t.Helper()
	list := &corev1.SecretList{}
	if err := w.faults.off(func() error { return w.cluster.List(t.Context(), list) }); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func reconcileOnce(t *testing.T, r reconcile.Reconciler, name string) (reconcile.Result, error) {
	t.Helper()
	switch r.(type) {
	case *machines, *strangers:
		return r.Reconcile(t.Context(), request(name))
	}
	return r.Reconcile(t.Context(), groupRequest(name)) // a Cluster's key is made like that of a group
}

func mustReconcile(t *testing.T, r reconcile.Reconciler, name string) reconcile.Result {
	t.Helper()
	result, err := reconcileOnce(t, r, name)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func newTestMachine() *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: id, UID: "machine-uid", Generation: 1, Labels: map[string]string{v1alpha1.LabelCluster: "muster", v1alpha1.LabelNodeGroup: "workers"}},
		Spec:       v1alpha1.MachineSpec{ClusterName: "muster", NodeGroup: "workers", Provider: v1alpha1.ProviderLocal},
	}
}

func newTestNode(ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: "node-uid", Labels: nodegroupspec.ManagedLabels(newTestMachine(), ami.OfMachine(&v1alpha1.Machine{}))},
		Spec:       corev1.NodeSpec{ProviderID: v1alpha1.ProviderID("us-east-1a", id), PodCIDR: "10.244.1.0/24"},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: ready, Reason: "KubeletSaysSo", Message: "said so"},
		}},
	}
}

// roles is NodeRoles in memory.
type roles struct {
	faults  *faults
	problem *RoleProblem
	refusal error
	notYet  bool
	checks  int
	tidied  int
}

func (r *roles) Prepare(_ context.Context, role string) (string, error) {
	if r.problem != nil {
		return "", r.problem
	}
	if r.notYet {
		return "", ErrNotYet
	}
	return "profile-of-" + role, r.faults.call("Prepare")
}

func (r *roles) Tidy(context.Context) error {
	r.tidied++
	return r.faults.call("Tidy")
}

func (r *roles) Check(context.Context, *v1alpha1.Machine) error {
	r.checks++
	if err := r.faults.call("Check"); err != nil {
		return err
	}
	return r.refusal
}

// provider is machine.Provider in memory.
type provider struct {
	faults    *faults
	now       func() time.Time
	instances []machine.Instance
	userData  []string
	request   machine.LaunchRequest // the last one
	onEnd     func()                // runs in the middle of Terminate

	podRange    netip.Prefix // of all instances
	launchError error
	damaged     bool // the records of all instances are
}

func (p *provider) index(id string) int {
	return slices.IndexFunc(p.instances, func(i machine.Instance) bool { return i.ID == id })
}

func (p *provider) Launch(_ context.Context, request machine.LaunchRequest) (machine.Instance, error) {
	if err := p.faults.call("Launch"); err != nil {
		return machine.Instance{}, fmt.Errorf("%w with %s", err, request.UserData)
	}
	if p.launchError != nil {
		return machine.Instance{}, p.launchError
	}
	p.userData = append(p.userData, string(request.UserData))
	p.request = request
	i := p.index(request.ID)
	if i < 0 {
		n := 11 + len(p.instances)
		p.instances = append(p.instances, machine.Instance{
			ID: request.ID, LaunchTime: p.now(), PodRange: p.podRange, OwnIDs: request.OwnIDs,
			PrivateIP:      netip.AddrFrom4([4]byte{192, 168, 64, byte(n)}),
			PrivateDNSName: fmt.Sprintf("ip-192-168-64-%d.ec2.internal", n),
			Zone:           "us-east-1a",
		})
		i = len(p.instances) - 1
	}
	p.instances[i].State, p.instances[i].Lifecycle = machine.Running, request.Lifecycle
	return p.instances[i], nil
}

func (p *provider) Get(_ context.Context, id string) (machine.Instance, error) {
	if err := p.faults.call("Get"); err != nil {
		return machine.Instance{}, err
	}
	if p.damaged {
		return machine.Instance{}, fmt.Errorf("%w /instance.json", machine.ErrDamaged)
	}
	if i := p.index(id); i >= 0 {
		return p.instances[i], nil
	}
	return machine.Instance{}, machine.ErrNotFound
}

func (p *provider) List(context.Context) ([]machine.Instance, error) {
	return slices.Clone(p.instances), p.faults.call("List")
}

func (p *provider) Stop(_ context.Context, id string) error {
	if err := p.faults.call("Stop"); err != nil {
		return err
	}
	if i := p.index(id); i >= 0 {
		p.instances[i].State = machine.Stopped
	}
	return nil
}

func (p *provider) Terminate(_ context.Context, id string) error {
	if err := p.faults.call("Terminate"); err != nil {
		return err
	}
	if p.onEnd != nil {
		p.onEnd()
	}
	if i := p.index(id); i >= 0 {
		p.instances = slices.Delete(p.instances, i, i+1)
	}
	return nil
}

type routes struct {
	faults *faults
	set    map[netip.Prefix]netip.Addr
}

func (r *routes) SetRoute(_ context.Context, podCIDR netip.Prefix, via netip.Addr) error {
	r.set[podCIDR] = via
	return r.faults.call("SetRoute")
}

func (r *routes) DeleteRoute(_ context.Context, podCIDR netip.Prefix) error {
	delete(r.set, podCIDR)
	return r.faults.call("DeleteRoute")
}

// faults makes the n-th call of a kind fail, and counts calls.
type faults struct {
	mu    sync.Mutex
	left  map[string]int // 1: the next call fails
	calls map[string]int
	quiet bool
	// before is called with the name of each call, before it is carried out; nothing is if nil.
	before func(name string)
	// evict does what the API server does of an eviction; the pod is gone at once if nil.
	evict func(c client.Client, pod client.Object) error
}

func (f *faults) call(name string) error {
	f.mu.Lock()
	if before := f.before; before != nil && !f.quiet {
		f.mu.Unlock()
		_ = f.off(func() error { before(name); return nil })
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	if f.quiet {
		return nil
	}
	f.calls[name]++
	if f.left[name]--; f.left[name] == 0 {
		return errTest
	}
	return nil
}

func (f *faults) fail(name string, nth int) { f.left[name] = nth }

func (f *faults) off(do func() error) error {
	f.mu.Lock()
	f.quiet = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.quiet = false
		f.mu.Unlock()
	}()
	return do()
}

func (f *faults) intercept(plane string) interceptor.Funcs {
	name := func(verb string, object any) string { return fmt.Sprintf("%s %s %T", plane, verb, object) }
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if err := f.call(name("get", object)); err != nil {
				return err
			}
			return c.Get(ctx, key, object, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := f.call(name("list", list)); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if err := f.call(name("create", object)); err != nil {
				return err
			}
			return c.Create(ctx, object, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			if err := f.call(name("delete", object)); err != nil {
				return err
			}
			return c.Delete(ctx, object, opts...)
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteAllOfOption) error {
			if err := f.call(name("deleteAllOf", object)); err != nil {
				return err
			}
			return c.DeleteAllOf(ctx, object, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := f.call(name("patch", object)); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, opts...)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, object, body client.Object, opts ...client.SubResourceCreateOption) error {
			if err := f.call(name("create "+sub, object)); err != nil {
				return err
			}
			if f.evict != nil {
				return f.evict(c, object)
			}
			return c.SubResource(sub).Create(ctx, object, body, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := f.call(name("patch "+sub, object)); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, object, patch, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := f.call(name("update "+sub, object)); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, object, opts...)
		},
	}
}

// recorder remembers events.
type recorder struct{ list []string }

func (r *recorder) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.list = append(r.list, kind+" "+reason+": "+fmt.Sprintf(note, args...))
}
