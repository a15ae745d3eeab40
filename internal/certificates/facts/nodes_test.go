// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/certificates/policy"
)

// nodePlane holds Nodes and can be broken.
type nodePlane struct {
	plane
	names []string
}

func node(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Labels: map[string]string{"a": "b"}}}
}

func (p *nodePlane) List(metav1.ListOptions) (runtime.Object, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down != nil {
		return nil, p.down
	}
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, name := range p.names {
		list.Items = append(list.Items, *node(name))
	}
	return list, nil
}

func startNodes(t *testing.T, p cache.ListerWatcher) (*Nodes, func() []Change) {
	t.Helper()
	var mu sync.Mutex
	var changes []Change
	n, err := NewNodes(NodesConfig{Objects: p, Logger: slog.New(slog.DiscardHandler), OnChange: func(c Change) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, c)
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); n.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return n, func() []Change {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		got := changes
		changes = nil
		return got
	}
}

func TestNodesTellAtOnceThatAllAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := gated{&nodePlane{names: []string{nodeA}}, make(chan struct{})}
		n, changes := startNodes(t, p)
		if c := changes(); len(c) > 0 || n.HasSynced() {
			t.Errorf("before they were read: %+v", c)
		}
		close(p.open)
		if c := changes(); !cmp.Equal(c, []Change{{All: true}}) || !n.HasSynced() {
			t.Errorf("changes: %+v", c)
		}
	})
}

func TestNodesExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &nodePlane{names: []string{nodeA}}
		open := make(chan struct{})
		n, changes := startNodes(t, gated{p, open})
		if f := n.Exists(nodeA); f.State != policy.Unknown || f.Why != "they have not been read yet" {
			t.Errorf("before they were read: %+v", f)
		}
		close(open)
		elapse(time.Second)
		if diff := cmp.Diff([]Change{{All: true}}, changes()); diff != "" || !n.HasSynced() {
			t.Errorf("read (-want +got):\n%s", diff)
		}
		now := time.Now()
		exists := func(what, name string, want bool) {
			t.Helper()
			if diff := cmp.Diff(policy.Know(want, nodesSource, now), n.Exists(name)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		exists("that is there", nodeA, true)
		exists("that is not", nodeB, false)
		exists("without a name", "", false)
		p.stream.Add(node(nodeB))
		if diff := cmp.Diff([]Change{{Nodes: []string{nodeB}}}, changes()); diff != "" {
			t.Errorf("added (-want +got):\n%s", diff)
		}
		exists("that came", nodeB, true)
		p.stream.Modify(node(nodeB))
		if c := changes(); len(c) > 0 {
			t.Errorf("a heartbeat was told: %+v", c)
		}
		p.stream.Delete(node(nodeB))
		if diff := cmp.Diff([]Change{{Nodes: []string{nodeB}}}, changes()); diff != "" {
			t.Errorf("deleted (-want +got):\n%s", diff)
		}
		exists("that went", nodeB, false)
		if o, _, _ := n.informer.GetStore().GetByKey(nodeA); o.(*metav1.PartialObjectMetadata).Labels != nil {
			t.Error("more than the name is kept")
		}
	})
}

func TestNodesWithoutAWatchAreUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &nodePlane{names: []string{nodeA}}
		p.set(errors.New("forbidden"))
		n, changes := startNodes(t, p)
		elapse(time.Second)
		if f := n.Exists(nodeA); f.State != policy.Unknown || f.Why != "they have not been read yet: forbidden" {
			t.Errorf("that cannot be read: %+v", f)
		}
		p.set(nil)
		elapse(2 * time.Minute)
		if f := n.Exists(nodeA); f.State != policy.Known {
			t.Errorf("that can be read again: %+v", f)
		}
		changes()
		p.set(errors.New("connection refused"))
		elapse(20 * time.Second)
		if f := n.Exists(nodeA); f.State != policy.Known || time.Since(f.At) < 15*time.Second {
			t.Errorf("broken for a moment: %+v", f)
		}
		elapse(15 * time.Second)
		if f := n.Exists(nodeA); f.State != policy.Unknown || !strings.Contains(f.Why, "has not answered since") {
			t.Errorf("broken for too long: %+v", f)
		}
		if s := n.Status(); s.Problem != "connection refused" || s.Age < 30*time.Second || !s.Synced {
			t.Errorf("status %+v", s)
		}
		p.set(nil)
		elapse(2 * time.Minute)
		if diff := cmp.Diff([]Change{{All: true}}, changes()); diff != "" {
			t.Errorf("restored (-want +got):\n%s", diff)
		}
	})
}

func TestNewNodesRefuses(t *testing.T) {
	all := NodesConfig{Objects: &nodePlane{}, OnChange: func(Change) {}, Logger: slog.New(slog.DiscardHandler)}
	for name, breakIt := range map[string]func(*NodesConfig){
		"Nodes to read": func(c *NodesConfig) { c.Objects = nil },
		"somebody":      func(c *NodesConfig) { c.OnChange = nil },
		"a logger":      func(c *NodesConfig) { c.Logger = nil },
	} {
		c := all
		breakIt(&c)
		if _, err := NewNodes(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// Only metadata is asked for.
func TestNodeNames(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") || r.URL.Path != "/api/v1/nodes" {
			t.Errorf("asked for %s of %s", r.Header.Get("Accept"), r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}`)
	}))
	defer server.Close()
	lw, err := NodeNames(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	o, err := cache.ToListerWatcherWithContext(lw).ListWithContext(t.Context(), metav1.ListOptions{})
	if list, ok := o.(*metav1.PartialObjectMetadataList); err != nil || !ok || len(list.Items) != 1 || list.Items[0].Name != "a" {
		t.Errorf("got %+v, %v", o, err)
	}
	if _, err := NodeNames(&rest.Config{Host: "://"}); err == nil {
		t.Error("a wrong address was accepted")
	}
}
