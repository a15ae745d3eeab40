// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
)

// during runs do in the middle of the nth call of the management plane that has a name, before the plane carries it
// out.
func (w *world) during(call string, nth int, do func()) {
	seen := 0
	w.faults.before = func(name string) {
		if name != call {
			return
		}
		if seen++; seen == nth {
			do()
		}
	}
}

// The list of machines is from before the creation, and the write of the status reads the group anew, now deleted.
func TestGroupDeletedWhileItsMachinesAreMade(t *testing.T) {
	for nth := 1; nth <= 3; nth++ {
		w := newWorld(t, newTestCluster(), newTestGroup(3))
		r := w.groups()
		w.during("management create *v1alpha1.Machine", nth, func() {
			if err := w.management.Delete(t.Context(), newTestGroup(3)); err != nil {
				t.Error(err)
			}
		})
		for range 4 {
			mustReconcile(t, r, "workers")
		}
		wantGroup(t, w.group(t), "Deleting", "to go")
		if made := len(w.list(t)); made != nth {
			t.Errorf("%d machines were made of a group that was deleted at number %d", made, nth)
		}
		for _, m := range w.list(t) {
			if alive(m) {
				t.Errorf("machine %s of the deleted group stays", m.Name)
			}
			w.end(t, &m)
		}
		mustReconcile(t, r, "workers")
		if w.get(t, w.management, &v1alpha1.NodeGroup{}, "workers") {
			t.Error("the group stays")
		}
	}
}

// The cache does not show yet that the group is deleted, or that another has its name.
func TestNoMachineForAGroupThatIsGoing(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, w *world){
		"deleted": func(t *testing.T, w *world) {
			t.Helper()
			if err := w.management.Delete(t.Context(), newTestGroup(3)); err != nil {
				t.Fatal(err)
			}
		},
		"gone": func(t *testing.T, w *world) { t.Helper(); w.forceAway(t) },
		"replaced": func(t *testing.T, w *world) {
			t.Helper()
			w.forceAway(t)
			next := newTestGroup(3)
			next.UID, next.Finalizers = "next-uid", []string{v1alpha1.FinalizerNodeGroup}
			if err := w.management.Create(t.Context(), next); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			old := newTestGroup(3)
			old.Finalizers = []string{v1alpha1.FinalizerNodeGroup}
			w, before := newWorld(t, newTestCluster(), old.DeepCopy()), newWorld(t, newTestCluster(), old.DeepCopy())
			change(t, w)
			r := w.groups()
			r.management = lagging{Client: w.management, cache: before.management}
			mustReconcile(t, r, "workers")
			if made := len(w.list(t)); made != 0 {
				t.Errorf("%d machines were made", made)
			}
		})
	}
}

// forceAway removes the group as a person does who does not wait.
func (w *world) forceAway(t *testing.T) {
	t.Helper()
	err := w.faults.off(func() error {
		group := &v1alpha1.NodeGroup{}
		if err := w.management.Get(t.Context(), groupRequest("workers").NamespacedName, group); err != nil {
			return client.IgnoreNotFound(err)
		}
		group.Finalizers = nil
		if err := w.management.Update(t.Context(), group); err != nil {
			return client.IgnoreNotFound(err)
		}
		return client.IgnoreNotFound(w.management.Delete(t.Context(), group))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// end lets a machine go that is being deleted, as the machine controller does.
func (w *world) end(t interface {
	Fatal(...any)
	Context() context.Context
}, m *v1alpha1.Machine,
) {
	m.Finalizers = nil
	if err := w.faults.off(func() error { return w.management.Update(t.Context(), m) }); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

func TestMachinesOfAGroupThatIsGoneAreEnded(t *testing.T) {
	w := newWorld(t, newTestCluster(), newTestGroup(3))
	mustReconcile(t, w.groups(), "workers")
	machines := w.list(t)
	machines[0].Labels = nil // labels are people's
	if err := w.management.Update(t.Context(), &machines[0]); err != nil {
		t.Fatal(err)
	}
	w.forceAway(t)
	w.events.list = nil
	mustReconcile(t, w.groups(), "workers")
	for _, m := range w.list(t) {
		if alive(m) {
			t.Errorf("machine %s outlives its group", m.Name)
		}
		if want := "Warning NodeGroupGone: its node group workers is gone; deleting the machine"; !slices.Contains(w.events.list, want) {
			t.Errorf("events are %q", w.events.list)
		}
	}
}

// A group of the same name is another one: it neither counts the machines of the one before nor is let go before they
// are.
func TestMachinesOfTheGroupBefore(t *testing.T) {
	w := newWorld(t, newTestCluster(), newTestGroup(3))
	mustReconcile(t, w.groups(), "workers")
	old := w.list(t)
	w.forceAway(t)
	next := newTestGroup(2)
	next.UID = "next-uid"
	if err := w.management.Create(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, w.groups(), "workers")
	mustReconcile(t, w.groups(), "workers")
	own := 0
	for _, m := range w.list(t) {
		isOld := slices.ContainsFunc(old, func(o v1alpha1.Machine) bool { return o.Name == m.Name })
		if isOld == alive(m) {
			t.Errorf("machine %s: of the group before %v, alive %v", m.Name, isOld, alive(m))
		}
		if !isOld {
			own++
		}
	}
	if own != 2 {
		t.Errorf("the group has %d machines, want 2", own)
	}
}

// lagging reads muster's kinds from what was, and writes to what is.
type lagging struct {
	client.Client
	cache client.Reader
}

func (l lagging) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	return l.cache.Get(ctx, key, object, opts...)
}

func (l lagging) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return l.cache.List(ctx, list, opts...)
}

// snapshot is a cache that shows what was there when it was taken.
type snapshot struct {
	clusters v1alpha1.ClusterList
	groups   v1alpha1.NodeGroupList
	machines v1alpha1.MachineList
}

func take(t *rapid.T, from client.Reader) *snapshot {
	s := &snapshot{}
	for _, list := range []client.ObjectList{&s.clusters, &s.groups, &s.machines} {
		if err := from.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *snapshot) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch o := object.(type) {
	case *v1alpha1.Cluster:
		for i := range s.clusters.Items {
			if s.clusters.Items[i].Name == key.Name {
				s.clusters.Items[i].DeepCopyInto(o)
				return nil
			}
		}
	case *v1alpha1.NodeGroup:
		for i := range s.groups.Items {
			if s.groups.Items[i].Name == key.Name {
				s.groups.Items[i].DeepCopyInto(o)
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", object)}, key.Name)
}

func (s *snapshot) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if l, ok := list.(*v1alpha1.MachineList); ok {
		s.machines.DeepCopyInto(l)
		return nil
	}
	return errors.New("not a list that the group controller asks its cache for")
}

// Whatever happens in which order, and whichever calls fail: the controller lets no group go that a machine refers to,
// and in the end every machine that stays is of a group that exists, which has as many as it is to have.
func TestGroupsAndMachinesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, newTestCluster(), newTestGroup(3))
		live := w.management
		cache := take(rt, live)
		r := w.groups()
		uids := 0
		wild := true // while people and faults are about

		people := map[string]func(){
			"delete":  func() { _ = live.Delete(t.Context(), newTestGroup(0)) },
			"force":   func() { w.forceAway(t) },
			"refresh": func() { cache = take(rt, live) },
			"scale": func() {
				group := &v1alpha1.NodeGroup{}
				if live.Get(t.Context(), groupRequest("workers").NamespacedName, group) == nil {
					group.Spec.ScalingConfig.DesiredSize = rapid.Int32Range(0, 4).Draw(rt, "desired")
					_ = live.Update(t.Context(), group)
				}
			},
			"create": func() {
				group := newTestGroup(rapid.Int32Range(0, 4).Draw(rt, "size"))
				uids++
				group.UID = types.UID(fmt.Sprintf("group-%d", uids))
				_ = live.Create(t.Context(), group)
			},
			"end": func() {
				for _, m := range w.list(t) {
					if !alive(m) && rapid.Bool().Draw(rt, "ends") {
						w.end(rt, &m)
					}
				}
			},
		}
		names := []string{"nothing", "nothing", "nothing", "create", "delete", "end", "force", "refresh", "scale"}
		happen := func() {
			if act := people[rapid.SampledFrom(names).Draw(rt, "happens")]; act != nil {
				_ = w.faults.off(func() error { act(); return nil })
			}
		}
		around := func(call string, do func() error) error {
			if !wild {
				return do()
			}
			happen()
			if rapid.IntRange(0, 9).Draw(rt, "fault") == 0 {
				return errTest
			}
			if err := do(); err != nil {
				return err
			}
			happen()
			if rapid.IntRange(0, 19).Draw(rt, "answer lost") == 0 && !strings.Contains(call, "patch") {
				return errTest
			}
			return nil
		}
		r.managementLive = interceptor.NewClient(live.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
				return around("get", func() error { return c.Get(ctx, key, object, opts...) })
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				return around("list", func() error { return c.List(ctx, list, opts...) })
			},
		})
		writes := interceptor.NewClient(live.(client.WithWatch), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
				return around("create", func() error { return c.Create(ctx, object, opts...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
				return around("delete", func() error { return c.Delete(ctx, object, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
				return around("patch", func() error {
					err := c.Patch(ctx, object, patch, opts...)
					if err == nil && len(object.GetFinalizers()) == 0 {
						for _, m := range w.list(t) { //nolint:contextcheck // the test's own look, whatever becomes of the request
							if m.Spec.NodeGroup == object.GetName() {
								rt.Errorf("the controller let the group go, and machine %s refers to it", m.Name)
							}
						}
					}
					return err
				})
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				return around("patch status", func() error { return c.SubResource(sub).Patch(ctx, object, patch, opts...) })
			},
		})
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			if rapid.Bool().Draw(rt, "the cache catches up") {
				cache = take(rt, live)
			}
			r.management = lagging{Client: writes, cache: cache}
			_, _ = r.Reconcile(t.Context(), groupRequest("workers"))
		}
		wild = false
		for range 4 {
			cache = take(rt, live)
			r.management = lagging{Client: writes, cache: cache}
			if _, err := r.Reconcile(t.Context(), groupRequest("workers")); err != nil {
				rt.Fatal(err)
			}
			for _, m := range w.list(t) {
				if !alive(m) {
					w.end(rt, &m)
				}
			}
		}
		group := &v1alpha1.NodeGroup{}
		exists := w.get(t, live, group, "workers")
		machines := w.list(t)
		switch {
		case !exists && len(machines) > 0:
			rt.Errorf("%d machines outlive their group", len(machines))
		case exists && !group.DeletionTimestamp.IsZero():
			rt.Errorf("the deleted group stays, with %d machines", len(machines))
		case exists && len(machines) != int(group.Spec.ScalingConfig.DesiredSize):
			rt.Errorf("%d machines, want %d", len(machines), group.Spec.ScalingConfig.DesiredSize)
		}
		for _, m := range machines {
			if owner := m.Spec.NodeGroupUID; owner != group.UID {
				rt.Errorf("machine %s is of group %s; the one that exists is %s", m.Name, owner, group.UID)
			}
		}
	})
}
