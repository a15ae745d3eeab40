// SPDX-License-Identifier: Apache-2.0

package readcache_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/platform/readcache"
)

func lease(namespace, name, holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"holder": holder}}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
}

// holder reads who has a lease, from memory if that is allowed; "" if there is none.
func holder(ctx context.Context, t *testing.T, c client.Client, name string) string {
	t.Helper()
	l := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: "x", Name: name}, l)
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return *l.Spec.HolderIdentity
}

// filled reads until reads come from memory.
func filled(ctx context.Context, t *testing.T, a *api, c client.Client) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(time.Millisecond) {
		before := a.asked()
		holder(ctx, t, c, "first")
		if a.asked() == before {
			return
		}
	}
	t.Fatal("reads still ask the API server after a minute")
}

func TestReadsHaveWhatWasWritten(t *testing.T) {
	t.Parallel()
	const patience = 2 * time.Second // a read of the API server is quicker on any computer
	a, c, live := newAPI(t, patience)
	ctx := readcache.Allow(t.Context())
	first := lease("x", "first", "a")
	if err := live.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	filled(ctx, t, a, c)

	before := a.asked()
	if got := holder(ctx, t, c, "first"); got != "a" || a.asked() != before {
		t.Fatalf("%q after %d requests", got, a.asked()-before)
	}
	if holder(t.Context(), t, c, "first"); a.asked() != before+1 {
		t.Error("a read that is not marked came from memory")
	}

	for round, write := range []func() error{ // each by a client that is not the cache
		func() error { first.Spec.HolderIdentity = new("b"); return live.Update(t.Context(), first) },
		func() error { return live.Delete(t.Context(), first) },
		func() error { first = lease("x", "first", "c"); return live.Create(t.Context(), first) },
	} {
		want := []string{"b", "", "c"}[round]
		a.hold()
		if err := write(); err != nil {
			t.Fatal(err)
		}
		before = a.asked()
		began := time.Now()
		if got := holder(ctx, t, c, "first"); got != want || a.asked() != before+1 {
			t.Errorf("while the watch is held up %q is read by %d requests, want %q of the API server", got, a.asked()-before, want)
		}
		if took := time.Since(began); took < patience/2 {
			t.Errorf("the watch was not waited for: %v", took)
		}
		began = time.Now()
		if holder(ctx, t, c, "first"); time.Since(began) > patience/2 {
			t.Errorf("a watch that is late is waited for again: %v", time.Since(began))
		}
		a.release()
		filled(ctx, t, a, c)
		if got := holder(ctx, t, c, "first"); got != want {
			t.Errorf("from memory %q, want %q", got, want)
		}
	}
}

func TestAReadWaitsForTheWatch(t *testing.T) {
	t.Parallel()
	a, c, live := newAPI(t, time.Minute)
	ctx := readcache.Allow(t.Context())
	filled(ctx, t, a, c)
	a.hold()
	if err := live.Create(t.Context(), lease("x", "first", "a")); err != nil {
		t.Fatal(err)
	}
	before := a.asked()
	go func() {
		<-time.After(50 * time.Millisecond)
		a.release()
	}()
	if got := holder(ctx, t, c, "first"); got != "a" || a.asked() != before {
		t.Errorf("%q after %d requests of the API server, want it from memory", got, a.asked()-before)
	}
}

func TestAnAnswerThatIsLost(t *testing.T) {
	t.Parallel()
	a, c, live := newAPI(t, time.Minute)
	ctx := readcache.Allow(t.Context())
	filled(ctx, t, a, c)
	a.hold()
	a.mu.Lock()
	a.lose = true
	a.mu.Unlock()
	if err := live.Create(t.Context(), lease("x", "first", "a")); err == nil {
		t.Fatal("the answer was not lost")
	}
	if got := holder(ctx, t, c, "first"); got != "a" {
		t.Errorf("%q is read, and it had been written", got)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	a, c, live := newAPI(t, time.Minute)
	ctx := readcache.Allow(t.Context())
	for _, l := range []*coordinationv1.Lease{lease("y", "a", "1"), lease("x", "b", "2"), lease("x", "a", "1")} {
		if err := live.Create(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	filled(ctx, t, a, c)
	before := a.asked()
	for _, tt := range []struct {
		want    string
		options []client.ListOption
	}{
		{"[x/a x/b y/a]", nil},
		{"[x/a x/b]", []client.ListOption{client.InNamespace("x")}},
		{"[x/a]", []client.ListOption{client.InNamespace("x"), client.MatchingLabels{"holder": "1"}}},
		{"[]", []client.ListOption{client.InNamespace("z")}},
	} {
		var all coordinationv1.LeaseList
		if err := c.List(ctx, &all, tt.options...); err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for i := range all.Items {
			names = append(names, all.Items[i].Namespace+"/"+all.Items[i].Name)
			all.Items[i].Labels["holder"] = "spoilt" // it is a copy
		}
		if fmt.Sprint(names) != tt.want {
			t.Errorf("%v, want %s", names, tt.want)
		}
	}
	var shared, again coordinationv1.LeaseList
	for _, into := range []*coordinationv1.LeaseList{&shared, &again} {
		if err := c.List(ctx, into, client.UnsafeDisableDeepCopy); err != nil || len(into.Items) != 3 {
			t.Fatal(len(into.Items), err)
		}
	}
	if shared.Items[0].Labels["holder"] = "seen"; again.Items[0].Labels["holder"] != "seen" {
		t.Error("a reader that asked for no copies got some")
	}
	if a.asked() != before {
		t.Errorf("the API server was asked %d times", a.asked()-before)
	}
	if err := c.List(ctx, &coordinationv1.LeaseList{}, client.Limit(1)); err != nil || a.asked() != before+1 {
		t.Errorf("a page came from memory (%v)", err)
	}
}
