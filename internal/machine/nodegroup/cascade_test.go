// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
)

// The finalizers are those that an API server of v1.36 leaves on each object after `kubectl delete --cascade=POLICY`,
// and those that it left when only the controller's own was removed.
func TestDeletedWithACascade(t *testing.T) {
	for _, kind := range []struct {
		own    string
		object func() client.Object
		make   func(*world) reconcile.Reconciler
	}{
		{v1alpha1.FinalizerNodeGroup, func() client.Object { return newTestGroup(2) }, func(w *world) reconcile.Reconciler { return w.groups() }},
		{v1alpha1.FinalizerMachine, func() client.Object { return newTestMachine() }, func(w *world) reconcile.Reconciler { return w.machines() }},
	} {
		for _, cascade := range []string{"foregroundDeletion", "orphan"} {
			for _, finalizers := range [][]string{{kind.own, cascade}, {cascade}, {kind.own, cascade, "example.com/kept"}} {
				object := kind.object()
				object.SetFinalizers(finalizers)
				w := newWorld(t, object)
				if err := w.management.Delete(t.Context(), object); err != nil {
					t.Fatal(err)
				}
				mustReconcile(t, kind.make(w), object.GetName())
				mustReconcile(t, kind.make(w), object.GetName())
				stays := w.get(t, w.management, object, object.GetName())
				if others := slices.Contains(finalizers, "example.com/kept"); stays != others || stays && !slices.Equal(object.GetFinalizers(), []string{"example.com/kept"}) {
					t.Errorf("%T with %q: it stays (%v) with %q", object, finalizers, stays, object.GetFinalizers())
				}
			}
		}
	}
}

// A group that is deleted with a cascade goes after its machines, as any other.
func TestGroupDeletedWithACascade(t *testing.T) {
	group := newTestGroup(2)
	group.Finalizers = []string{"foregroundDeletion", v1alpha1.FinalizerNodeGroup}
	w := newWorld(t, newTestCluster(), group)
	mustReconcile(t, w.groups(), "workers")
	if err := w.management.Delete(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, w.groups(), "workers")
	mustReconcile(t, w.groups(), "workers")
	wantGroup(t, w.group(t), "Deleting", "waiting for 2 machines to go")
	for _, m := range w.list(t) {
		if m.DeletionTimestamp.IsZero() {
			t.Errorf("machine %s is not being deleted", m.Name)
		}
		w.end(t, &m)
	}
	mustReconcile(t, w.groups(), "workers")
	if w.get(t, w.management, group, "workers") {
		t.Errorf("the group stays with %q", group.Finalizers)
	}
}
