// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/fargate"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/machine"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// errDown is what each write is answered after the service was killed.
var errDown = errors.New("connection refused")

// podCache reads the pods of the cluster, as the cache does.
type podCache struct {
	cache.Cache
	from client.Client
}

func (c podCache) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return c.from.Get(ctx, key, into, options...)
}

func (c podCache) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return c.from.List(ctx, into, options...)
}

type roles struct {
	err    error
	tidied int
}

func (r *roles) PrepareFargate(context.Context, string) (string, error) { return "eks-pods", r.err }

func (r *roles) Tidy(context.Context) error { r.tidied++; return nil }

// testWorld is a cluster with a profile, and the management plane.
type testWorld struct {
	t          *testing.T
	management client.WithWatch
	cluster    client.WithWatch
	events     *events.FakeRecorder
	roles      *roles
	memory     int64
	follows    bool
	refuses    error // the answer to a dry run; nil if it is admitted
	denies     error // the answer to a binding; nil if it is made
	now        time.Time
	asked      int // reads from the management plane itself
	// left is how many writes succeed until all fail; negative for all.
	left     int
	profiles *profiles
	pods     *pods
}

func newWorld(t *testing.T) *testWorld {
	t.Helper()
	w := &testWorld{t: t, events: events.NewFakeRecorder(100), roles: &roles{}, memory: 24 << 30, follows: true, left: -1, now: noon}
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(all); err != nil {
			t.Fatal(err)
		}
	}
	of := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "blue"}, Spec: v1alpha1.ClusterSpec{Name: "blue"}}
	p := &v1alpha1.FargateProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "jobs", UID: "uid-of-jobs"},
		Spec:       v1alpha1.FargateProfileSpec{Name: "jobs", ClusterName: "blue", PodExecutionRoleARN: "arn:aws:iam::000000000000:role/pods", SubnetIDs: []v1alpha1.SubnetID{"subnet-a"}, Selectors: []v1alpha1.FargateSelector{{Namespace: "jobs"}}},
	}
	w.management = interceptor.NewClient(fake.NewClientBuilder().WithScheme(all).WithObjects(of, p).WithStatusSubresource(p, &v1alpha1.Machine{}).Build(), w.writes(nil))
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{fargate.MutatingKind, fargate.MutatingBindingKind, fargate.ValidatingKind, fargate.ValidatingBindingKind} {
		mapper.Add(schema.GroupVersionKind{Group: fargate.PolicyGroup, Version: "v1", Kind: kind}, meta.RESTScopeRoot)
	}
	for _, kind := range []string{"Pod", "PersistentVolumeClaim", "ConfigMap"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolume"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	w.cluster = interceptor.NewClient(fake.NewClientBuilder().WithScheme(all).WithRESTMapper(mapper).WithStatusSubresource(&corev1.Pod{}).
		WithIndex(&corev1.Pod{}, fieldScheduler, func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.SchedulerName} }).Build(), w.writes(w.probe))
	w.restart()
	return w
}

// probe answers a dry run as an API server that follows the policy, or not.
func (w *testWorld) probe(pod *corev1.Pod) error {
	if w.follows {
		pod.Spec.SchedulerName = v1alpha1.FargateScheduler
	}
	return w.refuses
}

// writes counts writes, and fails those after the last that is left.
func (w *testWorld) writes(probe func(*corev1.Pod) error) interceptor.Funcs {
	count := func(do func() error) error {
		if w.left == 0 {
			return errDown
		}
		w.left--
		return do()
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if pod, ok := o.(*corev1.Pod); ok && len(opts) > 0 {
				return probe(pod)
			}
			return count(func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return count(func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return count(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return count(func() error { return c.Apply(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return count(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, s client.Object, _ ...client.SubResourceCreateOption) error {
			binding, ok := s.(*corev1.Binding)
			if sub != "binding" || !ok {
				return fmt.Errorf("unexpected subresource %s", sub)
			}
			if w.denies != nil {
				return w.denies
			}
			return count(func() error {
				pod := &corev1.Pod{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(o), pod); err != nil {
					return err
				}
				if pod.UID != binding.UID || pod.Spec.NodeName != "" {
					return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, pod.Name, errors.New("it is bound"))
				}
				pod.Spec.NodeName = binding.Target.Name
				for key, value := range binding.Annotations {
					metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
				}
				return c.Update(ctx, pod)
			})
		},
	}
}

// restart is another process of the service.
func (w *testWorld) restart() {
	subnet := machine.Usage{Subnet: machine.Subnet{ID: "subnet-a", VPC: "vpc", Zone: "us-east-1a", CIDR: netip.MustParsePrefix("10.0.0.0/24")}}
	shared := world{
		Config: Config{
			ClusterName: "blue", Region: "us-east-1", User: "muster:service", ImageID: "ami-0123456789abcdef0", API: w.cluster, Pods: podCache{from: w.cluster}, Roles: w.roles, Recorder: w.events,
			Usage: func() ([]machine.Usage, error) { return []machine.Usage{subnet}, nil }, Now: func() time.Time { return w.now },
			Room: hostroom.New(func() (capacity.Offer, error) { return capacity.Host{CPUs: 2, Memory: w.memory}.Offer(0), nil }),
		},
		management: w.management, told: w.events,
		live: interceptor.NewClient(w.management, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				w.asked++
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				w.asked++
				return c.List(ctx, list, opts...)
			},
		}),
	}
	shared.Network.Subnets = nil
	w.profiles, w.pods = &profiles{world: shared}, &pods{world: shared}
}

func (w *testWorld) ofProfiles() error {
	w.t.Helper()
	_, err := w.profiles.Reconcile(w.t.Context(), reconcile.Request{})
	return err
}

func (w *testWorld) ofPod(name string) error {
	w.t.Helper()
	_, err := w.pods.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "jobs", Name: name}})
	return err
}

// settle looks at everything until nothing changes, as a process that has just started.
func (w *testWorld) settle() {
	w.t.Helper()
	for range 4 {
		if err := w.ofProfiles(); err != nil {
			w.t.Fatal(err)
		}
		names := map[string]bool{}
		var pods corev1.PodList
		if err := w.cluster.List(w.t.Context(), &pods); err != nil {
			w.t.Fatal(err)
		}
		for i := range pods.Items {
			names[pods.Items[i].Name] = true
		}
		for _, m := range w.machines() {
			names[m.Spec.Fargate.PodName] = true
		}
		for name := range names {
			if err := w.ofPod(name); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func (w *testWorld) machines() []v1alpha1.Machine {
	w.t.Helper()
	var all v1alpha1.MachineList
	if err := w.management.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	return all.Items
}

// launched is what the controller of machines does: machines that are to live are Ready, and others are gone.
func (w *testWorld) launched() {
	w.t.Helper()
	for _, m := range w.machines() {
		before := m.DeepCopy()
		if !m.DeletionTimestamp.IsZero() {
			m.Finalizers = nil
			if err := w.management.Patch(w.t.Context(), &m, client.MergeFrom(before)); err != nil {
				w.t.Fatal(err)
			}
			continue
		}
		m.Status.NodeName = v1alpha1.FargateNodePrefix + "ip-10-0-0-5.ec2.internal"
		m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "NodeReady", LastTransitionTime: metav1.NewTime(noon)}}
		if err := w.management.Status().Patch(w.t.Context(), &m, client.MergeFrom(before)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// run makes a pod, as the admission policy leaves it.
func (w *testWorld) run(name, uid string, change func(*corev1.Pod)) {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: name, UID: types.UID(uid), Labels: map[string]string{v1alpha1.LabelFargateProfile: "jobs"}},
		Spec:       corev1.PodSpec{SchedulerName: v1alpha1.FargateScheduler, Containers: []corev1.Container{{Name: "c"}}},
	}
	if change != nil {
		change(pod)
	}
	if err := w.cluster.Create(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
}

func (w *testWorld) pod(name string) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{}
	if err := w.cluster.Get(w.t.Context(), client.ObjectKey{Namespace: "jobs", Name: name}, pod); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		w.t.Fatal(err)
	}
	return pod
}

func (w *testWorld) profile() *v1alpha1.FargateProfile {
	w.t.Helper()
	p := &v1alpha1.FargateProfile{}
	if err := w.management.Get(w.t.Context(), client.ObjectKey{Namespace: "blue", Name: "jobs"}, p); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *testWorld) delete(o client.Object) {
	w.t.Helper()
	c := w.cluster
	if _, ok := o.(*v1alpha1.FargateProfile); ok {
		c = w.management
	}
	if err := c.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// why is what a pod says of why it has no Node.
func why(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

func TestLifeOfAPod(t *testing.T) {
	w := newWorld(t)
	w.settle()
	if p := w.profile(); !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) || p.Status.InstanceProfile != "eks-pods" {
		t.Fatalf("the profile is %+v", p.Status)
	}
	w.run("a", "uid-of-a", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	})
	w.run("b", "uid-of-b", nil)
	w.settle()
	if all := w.machines(); len(all) != 2 {
		t.Fatalf("two pods have %d machines", len(all))
	}
	if says := why(w.pod("a")); !strings.Contains(says, "is being launched") {
		t.Errorf("the pod says %q", says)
	}
	w.launched()
	w.settle()
	if pod := w.pod("a"); pod.Spec.NodeName != "fargate-ip-10-0-0-5.ec2.internal" || pod.Annotations[v1alpha1.AnnotationCapacityProvisioned] != "1vCPU 2GB" {
		t.Errorf("the pod is on %q, with %v", pod.Spec.NodeName, pod.Annotations)
	}
	w.delete(w.pod("a"))
	w.settle()
	w.launched()
	if all := w.machines(); len(all) != 1 || all[0].Spec.Fargate.PodName != "b" {
		t.Errorf("%d machines are left", len(all))
	}
	// A pod that takes its name has a machine of its own.
	w.run("a", "uid-of-another", nil)
	w.settle()
	if all := w.machines(); len(all) != 2 || all[0].Name == all[1].Name {
		t.Errorf("two pods have %d machines", len(all))
	}

	w.delete(w.profile())
	w.settle()
	if w.pod("a") != nil || w.pod("b") != nil {
		t.Error("pods of a deleted profile are left")
	}
	if p := w.profile(); p == nil || meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady).Reason != reasonDeleting {
		t.Errorf("while machines end the profile is %+v", p)
	}
	w.launched()
	w.settle()
	if all := w.machines(); len(all) != 0 || w.profile() != nil || w.roles.tidied != 1 {
		t.Errorf("%d machines are left, and the profile: %v", len(all), w.profile())
	}
}

// Wherever the service is killed, a pod has one machine, and no machine is without its pod.
func TestKilledAnywhere(t *testing.T) {
	for kill := range 12 {
		w := newWorld(t)
		crash := func(do func() error) {
			w.left = kill
			_ = do()
			w.left = -1
			w.restart()
		}
		crash(w.ofProfiles)
		w.settle()
		w.run("a", "uid-of-a", nil)
		crash(func() error { return w.ofPod("a") })
		w.settle()
		if all := w.machines(); len(all) != 1 {
			t.Fatalf("killed after %d writes: the pod has %d machines", kill, len(all))
		}
		w.launched()
		crash(func() error { return w.ofPod("a") })
		w.settle()
		if w.pod("a").Spec.NodeName == "" {
			t.Fatalf("killed after %d writes: the pod is not bound", kill)
		}
		w.delete(w.pod("a"))
		crash(func() error { return w.ofPod("a") })
		w.settle()
		w.launched()
		if all := w.machines(); len(all) != 0 {
			t.Fatalf("killed after %d writes: %d machines without a pod", kill, len(all))
		}
		w.delete(w.profile())
		crash(w.ofProfiles)
		w.settle()
		if w.profile() != nil {
			t.Fatalf("killed after %d writes: the profile is left", kill)
		}
	}
}

// A pod that is refused says why, once, and has no machine; it has one when the cause is gone.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.settle()
	for len(w.events.Events) > 0 {
		<-w.events.Events
	}
	w.run("a", "uid-of-a", func(p *corev1.Pod) { p.Spec.HostNetwork = true })
	w.run("b", "uid-of-b", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})
	w.run("c", "uid-of-c", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "batch"} })
	w.settle()
	for name, want := range map[string]string{"a": "fields not supported: HostNetwork", "b": "PVC data is not bound", "c": "demands labels that no machine of Fargate profile jobs has"} {
		if says := why(w.pod(name)); !strings.Contains(says, want) {
			t.Errorf("pod %s says %q, want %q", name, says, want)
		}
	}
	if n := len(w.events.Events); n != 3 || len(w.machines()) != 0 {
		t.Errorf("%d Events about three pods, and %d machines", n, len(w.machines()))
	}
	for _, o := range []client.Object{
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "efs.csi.aws.com"}}}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}},
	} {
		if err := w.cluster.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	w.settle()
	if all := w.machines(); len(all) != 1 || all[0].Spec.Fargate.PodName != "b" {
		t.Errorf("%d machines", len(all))
	}
}

// A host without room makes no machine, and the pod says so.
func TestNoRoom(t *testing.T) {
	w := newWorld(t)
	w.settle()
	w.memory = 1 << 30
	w.run("a", "uid-of-a", nil)
	w.settle()
	if says := why(w.pod("a")); !strings.Contains(says, "InsufficientInstanceCapacity: the host has no room for a machine of 0.25vCPU 0.5GB") || len(w.machines()) != 0 {
		t.Errorf("the pod says %q, and there are %d machines", says, len(w.machines()))
	}
	w.memory, w.now = 24<<30, noon.Add(refusedAgain)
	w.settle()
	if len(w.machines()) != 1 {
		t.Error("it has no machine though there is room")
	}
}

// A profile is Ready when its role can be used and the API server follows the policy.
func TestProfileIsNotReady(t *testing.T) {
	w := newWorld(t)
	w.follows = false
	if err := w.ofProfiles(); err != nil {
		t.Fatal(err)
	}
	if ready := meta.FindStatusCondition(w.profile().Status.Conditions, v1alpha1.ConditionReady); ready.Reason != reasonApplying {
		t.Errorf("%+v", ready)
	}
	w.roles.err = &fargate.RoleProblem{Reason: v1alpha1.ReasonPodExecutionRole, Message: "there is no IAM role pods"}
	w.settle()
	if ready := meta.FindStatusCondition(w.profile().Status.Conditions, v1alpha1.ConditionReady); ready.Reason != v1alpha1.ReasonPodExecutionRole || ready.Message != "there is no IAM role pods" {
		t.Errorf("%+v", ready)
	}
	w.run("a", "uid-of-a", nil)
	w.settle()
	if says := why(w.pod("a")); !strings.Contains(says, "Fargate profile jobs is not ready: there is no IAM role pods") {
		t.Errorf("the pod says %q", says)
	}
	w.roles.err, w.follows = nil, true
	w.settle()
	if len(w.machines()) != 1 {
		t.Error("a pod that waited for its profile has no machine")
	}
}
