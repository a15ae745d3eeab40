// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// behind is a client whose cache shows nothing but what it showed once.
type behind struct {
	client.Client
	cache client.Reader
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	return b.cache.Get(ctx, key, object, opts...)
}

func (b behind) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return b.cache.List(ctx, list, opts...)
}

// A cache that is behind brings about no second token, no second launch, and no older status.
func TestMachineStaleCaches(t *testing.T) {
	for _, plane := range []string{"management", "cluster"} {
		t.Run(plane, func(t *testing.T) {
			w := newWorld(t, newTestMachine())
			before := newWorld(t, newTestMachine())
			r := w.machines()
			mustReconcile(t, r, id)
			if plane == "management" {
				r.management = behind{w.management, before.management}
			} else {
				r.cluster = behind{w.cluster, before.cluster}
			}
			result := mustReconcile(t, r, id)
			if (plane == "management") != (result.RequeueAfter == catchUp) {
				t.Errorf("looks again after %v", result.RequeueAfter)
			}
			if len(w.tokens(t)) != 1 || len(w.provider.userData) != 1 {
				t.Errorf("%d tokens, %d launches", len(w.tokens(t)), len(w.provider.userData))
			}
			want(t, w.machine(t), v1alpha1.MachineJoining, "Joining")
		})
	}
}

// Somebody removed the token of a machine that has not joined: it gets another as soon as that cannot be the cache's
// lag.
func TestMachineTokenTakenAway(t *testing.T) {
	w := newWorld(t, newTestMachine())
	r := w.machines()
	mustReconcile(t, r, id)
	secrets := w.tokens(t)
	if err := w.cluster.Delete(t.Context(), &secrets[0]); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(lag + time.Second)
	mustReconcile(t, r, id)
	if again := w.tokens(t); len(again) != 1 || again[0].Name == secrets[0].Name || len(w.provider.userData) != 2 {
		t.Errorf("%d tokens, %d launches", len(again), len(w.provider.userData))
	}
}
