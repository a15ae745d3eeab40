// SPDX-License-Identifier: Apache-2.0

package scalingcontroller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

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
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/cloud/scalinglaunch"
)

const (
	template = "lt-0123456789abcdef0"
	groupUID = "11111111-2222-3333-4444-555555555555"
	// impossible is a MaxSize that the API server refuses.
	impossible = 999
)

// launcher makes Machines, as EC2 does; full has the subnets without room.
type launcher struct {
	api     client.Client
	full    map[string]bool
	version string
}

func (l *launcher) Resolve(_ context.Context, o scalinglaunch.Order) (scalinglaunch.Resolved, error) {
	t := o.Template
	if strings.HasPrefix(t.Version, "$") {
		t.Version = l.version
	}
	if t.Version == "9" {
		return scalinglaunch.Resolved{}, awsfault.Errorf("InvalidParameterValue", "no version 9")
	}
	kind := o.InstanceType
	if kind == "" {
		kind = "t3.medium"
	}
	return scalinglaunch.Resolved{Template: t, InstanceType: kind}, nil
}

func (l *launcher) Launch(ctx context.Context, o scalinglaunch.Order) error {
	if l.full[o.SubnetID] {
		return awsfault.Errorf("InsufficientInstanceCapacity", "no room in %s", o.SubnetID)
	}
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: o.ID, UID: types.UID(o.ID), Finalizers: []string{v1alpha1.FinalizerMachine}, Annotations: map[string]string{v1alpha1.AnnotationLaunchCause: o.Cause}},
		Spec:       v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, SubnetID: v1alpha1.SubnetID(o.SubnetID), InstanceType: o.InstanceType, ScalingGroup: &o.Group, Tags: o.Tags, ProtectedFromScaleIn: o.Protected},
	}
	return client.IgnoreAlreadyExists(l.api.Create(ctx, m))
}

// world is a group, its controller, and machines that run and go when they are told to.
type world struct {
	*testing.T
	api      client.Client
	launcher *launcher
	now      time.Time
	kill     int // writes until the service is killed; 0 for never
}

var errKilled = errors.New("killed")

func newWorld(t *testing.T, change func(*v1alpha1.AutoScalingGroup), objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	g := &v1alpha1.AutoScalingGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "workers", UID: groupUID},
		Spec: v1alpha1.AutoScalingGroupSpec{
			Name: "workers", MaxSize: 6, DesiredCapacity: 2, LaunchTemplate: &v1alpha1.LaunchTemplateReference{ID: template, Name: "workers", Version: "$Latest"},
			SubnetIDs: []v1alpha1.SubnetID{"subnet-0000000000000000a", "subnet-0000000000000000b"},
		},
	}
	if change != nil {
		change(g)
	}
	subnet := func(id, zone string) *v1alpha1.Subnet {
		return &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.SubnetSpec{AvailabilityZone: zone}}
	}
	objects = append(objects, g, subnet("subnet-0000000000000000a", "za"), subnet("subnet-0000000000000000b", "zb"))
	w := &world{T: t, now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	write := func() error {
		if w.kill > 0 {
			if w.kill--; w.kill == 0 {
				w.kill = -1
			}
		}
		if w.kill < 0 {
			return errKilled
		}
		return nil
	}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.AutoScalingGroup{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := write(); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := write(); err != nil {
				return err
			}
			if g, is := o.(*v1alpha1.AutoScalingGroup); is && g.Spec.MaxSize == impossible { // as the rules of the CRD refuse some
				return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("AutoScalingGroup").GroupKind(), g.Name, nil)
			}
			if g, is := o.(*v1alpha1.NodeGroup); is && g.Spec.ScalingConfig.MaxSize == impossible {
				return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("NodeGroup").GroupKind(), g.Name, nil)
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := write(); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := write(); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}).Build()
	w.launcher = &launcher{api: w.api, full: map[string]bool{}, version: "1"}
	return w
}

func (w *world) config() Config {
	return Config{Management: w.api, Launcher: w.launcher, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return w.now }}
}

// reconcile lets the controller work until it has nothing to do at once.
func (w *world) reconcile() {
	w.Helper()
	for range 20 {
		result, err := (&groups{w.config(), w.api}).Reconcile(w.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "workers"}})
		if err != nil && !errors.Is(err, errKilled) {
			w.Fatal(err)
		}
		if err == nil && result.RequeueAfter != soon {
			return
		}
		w.kill = 0
	}
}

// run has all machines run that are there, and those go that are being deleted.
func (w *world) run() {
	w.Helper()
	for _, m := range w.machines() {
		if !m.DeletionTimestamp.IsZero() {
			m.Finalizers = nil
			if err := w.api.Update(w.Context(), m); err != nil {
				w.Fatal(err)
			}
			continue
		}
		m.Status.ProviderID = "aws:///za/" + m.Name
		if err := w.api.Update(w.Context(), m); err != nil {
			w.Fatal(err)
		}
	}
}

// settle lets machines and the controller go on for a while.
func (w *world) settle() {
	w.Helper()
	for range 12 {
		w.reconcile()
		w.run()
		w.now = w.now.Add(time.Second)
	}
}

func (w *world) machines() []*v1alpha1.Machine {
	w.Helper()
	var all v1alpha1.MachineList
	if err := w.api.List(w.Context(), &all); err != nil {
		w.Fatal(err)
	}
	var of []*v1alpha1.Machine
	for i := range all.Items {
		of = append(of, &all.Items[i])
	}
	return of
}

func (w *world) group() *v1alpha1.AutoScalingGroup {
	w.Helper()
	g := &v1alpha1.AutoScalingGroup{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Name: "workers"}, g); err != nil {
		w.Fatal(err)
	}
	return g
}

func (w *world) change(change func(*v1alpha1.AutoScalingGroup)) {
	w.Helper()
	g := w.group()
	change(g)
	if err := w.api.Update(w.Context(), g); err != nil {
		w.Fatal(err)
	}
}

// states are the instances' states, sorted.
func (w *world) states() string {
	w.Helper()
	var all []string
	for _, i := range w.group().Status.Instances {
		all = append(all, string(i.State))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestScales(t *testing.T) {
	w := newWorld(t, func(g *v1alpha1.AutoScalingGroup) {
		g.Spec.AutoScaling = v1alpha1.AutoScaling{ProtectNewMachines: true, Tags: []v1alpha1.AutoScalingTag{{Key: "team", Value: "a", PropagateAtLaunch: true}, {Key: "not", Value: "b"}}}
	})
	w.reconcile()
	all := w.machines()
	if len(all) != 2 || w.states() != "Pending, Pending" || all[0].Spec.SubnetID == all[1].Spec.SubnetID {
		t.Fatalf("machines %+v, states %s", all, w.states())
	}
	if m := all[0]; !m.Spec.ProtectedFromScaleIn || m.Spec.Tags["team"] != "a" || m.Spec.Tags["not"] != "" || m.Spec.ScalingGroup.UID != groupUID || !strings.Contains(m.Annotations[v1alpha1.AnnotationLaunchCause], "increasing the capacity") {
		t.Errorf("machine %+v", m)
	}
	w.settle()
	g := w.group()
	if w.states() != "InService, InService" || g.Status.InService != 2 || !meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionReady) || g.Status.Instances[0].LaunchTemplate.Version != "1" {
		t.Errorf("status %+v", g.Status)
	}
	w.change(func(g *v1alpha1.AutoScalingGroup) { g.Spec.DesiredCapacity = 1 })
	w.settle()
	if len(w.machines()) != 2 {
		t.Error("a protected instance has ended")
	}
	for _, m := range w.machines() {
		m.Spec.ProtectedFromScaleIn = false
		if err := w.api.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	w.settle()
	if len(w.machines()) != 1 || w.states() != "InService" {
		t.Errorf("%d machines, states %s", len(w.machines()), w.states())
	}
	// Somebody else deletes the Machine: another one takes its place.
	gone := w.machines()[0]
	if err := w.api.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if all := w.machines(); len(all) != 1 || all[0].Name == gone.Name {
		t.Errorf("machines %+v", all)
	}
}

// Killed at every write, a group comes to its size with no machine too many at any time, and none without an owner.
func TestKilledAnywhere(t *testing.T) {
	for at := 1; at < 12; at++ {
		w := newWorld(t, nil)
		w.kill = at
		for range 6 {
			w.reconcile()
			if n := len(w.machines()); n > 2 {
				t.Fatalf("killed at write %d: %d machines", at, n)
			}
			w.run()
		}
		for _, m := range w.machines() {
			if !slices.ContainsFunc(w.group().Status.Instances, func(i v1alpha1.ScalingInstance) bool { return i.ID == m.Name }) {
				t.Errorf("killed at write %d: %s is not in the status", at, m.Name)
			}
		}
		if len(w.machines()) != 2 {
			t.Errorf("killed at write %d: %d machines", at, len(w.machines()))
		}
		w.kill = 0
		w.change(func(g *v1alpha1.AutoScalingGroup) { g.Spec.DesiredCapacity = 1 })
		w.kill = at
		w.settle()
		if len(w.machines()) != 1 {
			t.Errorf("killed at write %d while it shrinks: %d machines", at, len(w.machines()))
		}
		w.kill = 0
		if err := w.api.Delete(t.Context(), w.group()); err != nil {
			t.Fatal(err)
		}
		w.kill = at
		w.settle()
		if len(w.machines()) != 0 {
			t.Errorf("killed at write %d while it is deleted: %d machines", at, len(w.machines()))
		}
		if err := w.api.Get(t.Context(), client.ObjectKey{Name: "workers"}, &v1alpha1.AutoScalingGroup{}); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("killed at write %d: the group is left: %v", at, err)
		}
	}
}

// A machine of a group that is gone is deleted; a machine that is not in the status is taken in.
func TestOrphans(t *testing.T) {
	member := func(id, uid string) *v1alpha1.Machine {
		return &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: id, UID: types.UID(id), Finalizers: []string{v1alpha1.FinalizerMachine}},
			Spec:       v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, SubnetID: "subnet-0000000000000000a", ScalingGroup: &v1alpha1.MachineScalingGroup{Name: "workers", UID: types.UID(uid)}},
		}
	}
	w := newWorld(t, nil, member("i-0000000000000000a", groupUID), member("i-0000000000000000b", "another"))
	w.settle()
	var ids []string
	for _, m := range w.machines() {
		ids = append(ids, m.Name)
	}
	if len(ids) != 2 || !slices.Contains(ids, "i-0000000000000000a") || slices.Contains(ids, "i-0000000000000000b") {
		t.Errorf("machines %v", ids)
	}
}

func TestFailedLaunches(t *testing.T) {
	w := newWorld(t, nil)
	w.launcher.full["subnet-0000000000000000a"] = true
	w.settle()
	g := w.group()
	if len(w.machines()) != 2 || w.machines()[0].Spec.SubnetID != "subnet-0000000000000000b" || len(g.Status.Activities) == 0 || !strings.Contains(g.Status.Activities[0].StatusMessage, "no room in subnet-0000000000000000a") {
		t.Errorf("machines %+v, activities %+v", w.machines(), g.Status.Activities)
	}
	w.launcher.full["subnet-0000000000000000b"] = true
	w.change(func(g *v1alpha1.AutoScalingGroup) { g.Spec.DesiredCapacity = 3 })
	w.settle()
	ready := meta.FindStatusCondition(w.group().Status.Conditions, v1alpha1.ConditionReady)
	if len(w.machines()) != 2 || ready.Reason != "LaunchFailed" || !strings.Contains(ready.Message, "no room") {
		t.Errorf("machines %d, ready %+v", len(w.machines()), ready)
	}
	if n := len(w.group().Status.Activities); n > 6 {
		t.Errorf("%d activities within a few seconds: launches do not pause", n)
	}
	w.launcher.full = nil
	w.now = w.now.Add(time.Hour)
	w.settle()
	if len(w.machines()) != 3 || len(w.group().Status.Failures) > 1 {
		t.Errorf("machines %d, failures %+v", len(w.machines()), w.group().Status.Failures)
	}
}

// Launches that were begun together and fail are one failure, in the pause and for a refresh.
func TestABurstOfFailures(t *testing.T) {
	w := newWorld(t, func(g *v1alpha1.AutoScalingGroup) { g.Spec.MaxSize, g.Spec.DesiredCapacity = 12, 10 })
	w.launcher.full["subnet-0000000000000000a"] = true
	w.settle()
	g := w.group()
	if len(w.machines()) != 10 || len(g.Status.Failures) != 1 || g.Status.Failures[0].Count > 2 || len(g.Status.Activities) > 2 {
		t.Errorf("%d machines, failures %+v, %d activities", len(w.machines()), g.Status.Failures, len(g.Status.Activities))
	}
	ask := func(id string) v1alpha1.RefreshStatus {
		none := int32(0)
		w.change(func(g *v1alpha1.AutoScalingGroup) {
			g.Spec.Refresh = &v1alpha1.InstanceRefresh{ID: id, StartTime: metav1.NewTime(w.now), Preferences: v1alpha1.RefreshPreferences{MinHealthyPercentage: &none, InstanceWarmup: &none}}
		})
		w.settle()
		w.settle()
		all := w.group().Status.Refreshes
		return all[len(all)-1]
	}
	if s := ask("burst"); s.Status != v1alpha1.RefreshSuccessful {
		t.Errorf("ten launches at once, half of which find no room: %+v", s)
	}
	// Failures of long ago do not make a refresh fail.
	g = w.group()
	g.Status.Failures = []v1alpha1.LaunchFailure{{SubnetID: "subnet-0000000000000000a", Count: 7, Until: metav1.NewTime(w.now.Add(-time.Hour))}}
	if err := w.api.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if s := ask("later"); s.Status != v1alpha1.RefreshSuccessful {
		t.Errorf("after failures of long ago: %+v", s)
	}
}

func TestWishes(t *testing.T) {
	stranger := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "i-0000000000000000c", UID: "c", Finalizers: []string{v1alpha1.FinalizerMachine}},
		Spec:       v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, SubnetID: "subnet-0000000000000000a"},
	}
	w := newWorld(t, nil, stranger)
	w.settle()
	wish := func(id string, wish v1alpha1.Wish, desired int32) {
		t.Helper()
		w.change(func(g *v1alpha1.AutoScalingGroup) {
			g.Spec.DesiredCapacity = desired
			g.Spec.Wishes = nil
			if wish != "" {
				g.Spec.Wishes = []v1alpha1.InstanceWish{{InstanceID: id, Wish: wish, Cause: "asked"}}
			}
		})
		w.settle()
	}
	first := w.group().Status.Instances[0].ID
	wish(first, v1alpha1.WishStandby, 1)
	if w.states() != "InService, Standby" || len(w.machines()) != 3 {
		t.Errorf("in standby: %s", w.states())
	}
	wish(first, "", 2)
	if w.states() != "InService, InService" {
		t.Errorf("out of standby: %s", w.states())
	}
	wish(stranger.Name, v1alpha1.WishAttached, 3)
	if w.states() != strings.Join(slices.Repeat([]string{"InService"}, 3), ", ") || len(w.machines()) != 3 {
		t.Errorf("attached: %s", w.states())
	}
	wish(stranger.Name, v1alpha1.WishDetached, 2)
	if w.states() != "InService, InService" || len(w.machines()) != 3 {
		t.Errorf("detached: %s, %d machines", w.states(), len(w.machines()))
	}
	wish(first, v1alpha1.WishTerminated, 1)
	if w.states() != "InService" || len(w.machines()) != 2 {
		t.Errorf("terminated: %s", w.states())
	}
	var done []string
	for _, a := range w.group().Status.Activities {
		done = append(done, strings.TrimSuffix(strings.Fields(a.Description)[0]+" "+strings.Fields(a.Description)[3], ":"))
	}
	if want := "Moving to,Moving out,Attaching EC2,Detaching "; !strings.HasPrefix(strings.Join(done, ","), want) {
		t.Errorf("activities %v", done)
	}
}

// Killed anywhere, an instance that is detached is known as such as long as its Machine is a member, and ends with no group.
func TestKilledWhileDetaching(t *testing.T) {
	for at := 1; at < 5; at++ {
		w := newWorld(t, nil)
		w.settle()
		id := w.group().Status.Instances[0].ID
		w.change(func(g *v1alpha1.AutoScalingGroup) {
			g.Spec.DesiredCapacity = 1
			g.Spec.Wishes = []v1alpha1.InstanceWish{{InstanceID: id, Wish: v1alpha1.WishDetached, Cause: "asked"}}
		})
		w.kill = at
		for range 4 {
			_, _ = (&groups{w.config(), w.api}).Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "workers"}})
			known := slices.ContainsFunc(w.group().Status.Instances, func(i v1alpha1.ScalingInstance) bool { return i.ID == id })
			for _, m := range w.machines() {
				if m.Name == id && m.Spec.ScalingGroup != nil && !known {
					t.Errorf("killed at write %d: the group has forgotten an instance that it still has", at)
				}
			}
		}
		w.kill = 0
		w.settle()
		if all := w.machines(); len(all) != 2 || w.states() != "InService" {
			t.Errorf("killed at write %d: %d machines, states %s", at, len(all), w.states())
		}
		for _, m := range w.machines() {
			if !m.DeletionTimestamp.IsZero() || (m.Name == id) != (m.Spec.ScalingGroup == nil) {
				t.Errorf("killed at write %d: %+v", at, m)
			}
		}
	}
}

func TestHooks(t *testing.T) {
	w := newWorld(t, func(g *v1alpha1.AutoScalingGroup) {
		g.Spec.DesiredCapacity = 1
		g.Spec.Hooks = []v1alpha1.LifecycleHook{
			{Name: "up", Transition: v1alpha1.TransitionLaunching, HeartbeatTimeout: 60, DefaultResult: v1alpha1.LifecycleAbandon},
			{Name: "down", Transition: v1alpha1.TransitionTerminating, HeartbeatTimeout: 60, DefaultResult: v1alpha1.LifecycleContinue},
		}
	})
	w.settle()
	g := w.group()
	if w.states() != "Pending:Wait" || len(g.Status.Instances[0].Actions) != 1 || g.Status.Instances[0].Actions[0].Token == "" {
		t.Fatalf("status %+v", g.Status)
	}
	g.Status.Instances[0].Actions[0].Result = v1alpha1.LifecycleContinue
	if err := w.api.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if w.states() != "InService" {
		t.Errorf("completed: %s", w.states())
	}
	w.change(func(g *v1alpha1.AutoScalingGroup) { g.Spec.DesiredCapacity = 0 })
	w.settle()
	if w.states() != "Terminating:Wait" || len(w.machines()) != 1 || !w.machines()[0].DeletionTimestamp.IsZero() {
		t.Errorf("held: %s", w.states())
	}
	w.now = w.now.Add(time.Minute)
	w.settle()
	if w.states() != "" || len(w.machines()) != 0 {
		t.Errorf("time is up: %s", w.states())
	}
	// A launch that nobody completes is abandoned, and tried again.
	w.change(func(g *v1alpha1.AutoScalingGroup) { g.Spec.DesiredCapacity = 1; g.Spec.Hooks = g.Spec.Hooks[:1] })
	w.settle()
	first := w.machines()[0].Name
	w.now = w.now.Add(time.Minute)
	w.settle()
	if all := w.machines(); len(all) != 1 || all[0].Name == first || w.states() != "Pending:Wait" {
		t.Errorf("machines %+v, states %s", all, w.states())
	}
}

// A hook that is deleted holds nothing any more, also if nobody completed its actions.
func TestADeletedHookHoldsNothing(t *testing.T) {
	hooks := []v1alpha1.LifecycleHook{
		{Name: "up", Transition: v1alpha1.TransitionLaunching, HeartbeatTimeout: 7200, DefaultResult: v1alpha1.LifecycleContinue},
		{Name: "down", Transition: v1alpha1.TransitionTerminating, HeartbeatTimeout: 7200, DefaultResult: v1alpha1.LifecycleContinue},
	}
	w := newWorld(t, func(g *v1alpha1.AutoScalingGroup) { g.Spec.DesiredCapacity, g.Spec.Hooks = 1, hooks[:1] })
	w.settle()
	first := w.machines()[0].Name
	if w.states() != "Pending:Wait" {
		t.Fatalf("states %s", w.states())
	}
	w.change(func(g *v1alpha1.AutoScalingGroup) { g.Spec.Hooks = nil })
	w.settle()
	if all := w.machines(); w.states() != "InService" || len(all) != 1 || all[0].Name == first {
		t.Errorf("states %s: the launch was not abandoned, as on AWS", w.states())
	}
	w.change(func(g *v1alpha1.AutoScalingGroup) { g.Spec.DesiredCapacity, g.Spec.Hooks = 0, hooks[1:] })
	w.settle()
	if w.states() != "Terminating:Wait" {
		t.Errorf("states %s", w.states())
	}
	w.change(func(g *v1alpha1.AutoScalingGroup) { g.Spec.Hooks = nil })
	w.settle()
	if len(w.machines()) != 0 {
		t.Errorf("states %s", w.states())
	}
}

func TestRefresh(t *testing.T) {
	zero := int32(0)
	ask := func(w *world, r v1alpha1.InstanceRefresh) {
		r.ID, r.StartTime, r.Preferences.InstanceWarmup = fmt.Sprint("refresh-", len(w.group().Status.Refreshes)), metav1.NewTime(w.now), &zero
		w.change(func(g *v1alpha1.AutoScalingGroup) { g.Spec.Refresh = &r })
	}
	last := func(w *world) v1alpha1.RefreshStatus { all := w.group().Status.Refreshes; return all[len(all)-1] }
	ids := func(w *world) string {
		var all []string
		for _, m := range w.machines() {
			all = append(all, m.Name)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	w := newWorld(t, nil)
	w.settle()
	before := ids(w)
	ask(w, v1alpha1.InstanceRefresh{})
	w.reconcile()
	if s := last(w); s.Status != v1alpha1.RefreshInProgress || s.Total != 2 {
		t.Errorf("begun: %+v", s)
	}
	w.settle()
	after := ids(w)
	if s := last(w); s.Status != v1alpha1.RefreshSuccessful || s.Left != 0 || s.EndTime == nil || slices.ContainsFunc(strings.Fields(after), func(id string) bool { return strings.Contains(before, id) }) {
		t.Errorf("done: %+v, %s then %s", s, before, after)
	}

	// Instances of the newest version are left alone.
	ask(w, v1alpha1.InstanceRefresh{Preferences: v1alpha1.RefreshPreferences{SkipMatching: true}})
	w.settle()
	if s := last(w); s.Status != v1alpha1.RefreshSuccessful || ids(w) != after {
		t.Errorf("skipped: %+v", s)
	}
	w.launcher.version = "2"
	ask(w, v1alpha1.InstanceRefresh{Preferences: v1alpha1.RefreshPreferences{SkipMatching: true}})
	w.settle()
	if s := last(w); s.Status != v1alpha1.RefreshSuccessful || ids(w) == after || w.group().Status.Instances[0].LaunchTemplate.Version != "2" {
		t.Errorf("of version 2: %+v", s)
	}

	// A refresh with another template: the group has it in the end.
	ask(w, v1alpha1.InstanceRefresh{LaunchTemplate: &v1alpha1.LaunchTemplateReference{ID: template, Version: "7"}})
	w.settle()
	if g := w.group(); last(w).Status != v1alpha1.RefreshSuccessful || g.Spec.LaunchTemplate.Version != "7" || g.Status.Instances[1].LaunchTemplate.Version != "7" {
		t.Errorf("of version 7: %+v", g)
	}

	// A refresh that is rolled back: the instances are those of the group's template again.
	ask(w, v1alpha1.InstanceRefresh{LaunchTemplate: &v1alpha1.LaunchTemplateReference{ID: template, Version: "8"}})
	w.reconcile()
	w.change(func(g *v1alpha1.AutoScalingGroup) { g.Spec.Refresh.Ended = v1alpha1.RefreshRolledBack })
	w.settle()
	if g := w.group(); last(w).Status != v1alpha1.RefreshRollbackSuccessful || g.Spec.LaunchTemplate.Version != "7" || len(g.Status.Instances) != 2 ||
		slices.ContainsFunc(g.Status.Instances, func(i v1alpha1.ScalingInstance) bool { return i.LaunchTemplate.Version != "7" }) {
		t.Errorf("rolled back: %+v", g.Status)
	}

	// A refresh that cannot launch anything goes back by itself if it is to, and has failed if not.
	for auto, want := range map[bool]v1alpha1.RefreshState{true: v1alpha1.RefreshRollbackSuccessful, false: v1alpha1.RefreshFailed} {
		ask(w, v1alpha1.InstanceRefresh{LaunchTemplate: &v1alpha1.LaunchTemplateReference{ID: template, Version: "9"}, Preferences: v1alpha1.RefreshPreferences{AutoRollback: auto}})
		for range 12 {
			w.settle()
			w.now = w.now.Add(time.Minute)
		}
		if s := last(w); s.Status != want || !strings.Contains(s.Reason, "no version 9") {
			t.Errorf("auto rollback %v: %+v", auto, s)
		}
	}
	w.now = w.now.Add(time.Hour)
	w.settle()
	if len(w.machines()) != 2 {
		t.Errorf("%d machines", len(w.machines()))
	}
	ask(w, v1alpha1.InstanceRefresh{})
	w.reconcile()
	w.change(func(g *v1alpha1.AutoScalingGroup) { g.Spec.Refresh.Ended = v1alpha1.RefreshCancelled })
	w.settle()
	if s := last(w); s.Status != v1alpha1.RefreshCancelledState || len(w.machines()) != 2 {
		t.Errorf("cancelled: %+v", s)
	}
}

// A scheduled action with sizes that no group may have stops neither the group nor its other actions.
func TestSchedulesOfImpossibleSizes(t *testing.T) {
	many, refused, one, past := int32(9999), int32(impossible), int32(1), metav1.NewTime(time.Date(2026, 11, 29, 11, 0, 0, 0, time.UTC))
	actions := []v1alpha1.ScheduledAction{
		{Name: "too many", Recurrence: "*/5 * * * *", MaxSize: &many, Done: past},
		{Name: "refused", StartTime: new(metav1.NewTime(time.Date(2026, 11, 29, 12, 1, 0, 0, time.UTC))), MaxSize: &refused, Done: past},
		{Name: "at the same time", StartTime: new(metav1.NewTime(time.Date(2026, 11, 29, 11, 30, 0, 0, time.UTC))), DesiredCapacity: &one, Done: past},
	}
	node := &v1alpha1.NodeGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "workers"},
		Spec:       v1alpha1.NodeGroupSpec{Name: "workers", ScalingConfig: v1alpha1.ScalingConfig{MaxSize: 4, DesiredSize: 2}, AutoScaling: &v1alpha1.AutoScaling{ScheduledActions: actions}},
	}
	w := newWorld(t, func(g *v1alpha1.AutoScalingGroup) { g.Spec.AutoScaling.ScheduledActions = actions }, node)
	for range 2 {
		w.settle()
		if _, err := (&schedules{w.config()}).Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "blue", Name: "workers"}}); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(2 * time.Minute)
	}
	w.settle()
	if g := w.group(); g.Spec.MaxSize != 6 || g.Spec.DesiredCapacity != 1 || len(w.machines()) != 1 || len(g.Spec.AutoScaling.ScheduledActions) != 1 {
		t.Errorf("%d machines, group %+v", len(w.machines()), g.Spec)
	}
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil || node.Spec.ScalingConfig.DesiredSize != 1 || node.Spec.ScalingConfig.MaxSize != 4 {
		t.Errorf("node group %+v, %v", node.Spec, err)
	}
}

func TestSchedules(t *testing.T) {
	four := int32(4)
	action := v1alpha1.ScheduledAction{Name: "noon", StartTime: new(metav1.NewTime(time.Date(2026, 11, 29, 12, 5, 0, 0, time.UTC))), DesiredCapacity: &four, Done: metav1.NewTime(time.Date(2026, 11, 29, 11, 0, 0, 0, time.UTC))}
	node := &v1alpha1.NodeGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "workers"},
		Spec:       v1alpha1.NodeGroupSpec{Name: "workers", ScalingConfig: v1alpha1.ScalingConfig{MaxSize: 4, DesiredSize: 1}, AutoScaling: &v1alpha1.AutoScaling{ScheduledActions: []v1alpha1.ScheduledAction{action}}},
	}
	w := newWorld(t, func(g *v1alpha1.AutoScalingGroup) {
		g.Spec.AutoScaling.ScheduledActions = []v1alpha1.ScheduledAction{action}
	}, node)
	w.settle()
	scheduled := func() time.Duration {
		result, err := (&schedules{w.config()}).Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "blue", Name: "workers"}})
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	if wait := scheduled(); wait <= 0 || wait > 5*time.Minute || len(w.machines()) != 2 {
		t.Errorf("before its time: %v, %d machines", wait, len(w.machines()))
	}
	w.now = w.now.Add(5 * time.Minute)
	scheduled()
	w.settle()
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil || node.Spec.ScalingConfig.DesiredSize != 4 || len(node.Spec.AutoScaling.ScheduledActions) != 0 {
		t.Errorf("node group %+v, %v", node.Spec, err)
	}
	g := w.group()
	if len(w.machines()) != 4 || len(g.Spec.AutoScaling.ScheduledActions) != 0 || !strings.Contains(g.Spec.Change.Cause, "a scheduled action update of AutoScalingGroup constraints") {
		t.Errorf("%d machines, group %+v", len(w.machines()), g.Spec)
	}
	if !slices.ContainsFunc(w.machines(), func(m *v1alpha1.Machine) bool {
		return strings.Contains(m.Annotations[v1alpha1.AnnotationLaunchCause], "a scheduled action update")
	}) {
		t.Error("no machine says that a scheduled action made it")
	}
}
