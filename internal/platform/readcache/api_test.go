// SPDX-License-Identifier: Apache-2.0

package readcache_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/platform/readcache"
)

// api is an API server of Leases whose watch can be held up.
type api struct {
	t       *testing.T
	mu      sync.Mutex
	version int
	leases  map[string]*coordinationv1.Lease
	events  []event
	held    int           // events that the watch has reported are the ones before
	moved   chan struct{} // closed when there is more to report
	open    bool          // whether the watch reports all
	gets    int
	lists   int
	lose    bool // whether the answers of writes are lost; the writes are made
}

type event struct {
	version int
	Type    string                `json:"type"`
	Object  *coordinationv1.Lease `json:"object"`
}

// newAPI makes one, and a cache whose reads have this patience with its watch.
func newAPI(t *testing.T, patience time.Duration) (*api, *readcache.Cache, client.Client) {
	t.Helper()
	a := &api{t: t, leases: map[string]*coordinationv1.Lease{}, moved: make(chan struct{}), open: true}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	config := &rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	writes := readcache.NewWrites(coordinationv1.GroupName)
	writes.SetPatience(patience)
	writes.Wrap(config)
	live, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	c, err := readcache.New(readcache.Config{Client: live, Writes: writes, Kinds: []readcache.Kind{{Object: &coordinationv1.Lease{}, List: &coordinationv1.LeaseList{}}}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); c.Run(t.Context()) }() // which ends before the test is cleaned up
	t.Cleanup(func() { server.CloseClientConnections(); <-done })
	return a, c, live
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") != "" {
		a.watch(w, r)
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/apis/coordination.k8s.io/v1/"), "/") // leases, or namespaces/NS/leases[/NAME]
	a.mu.Lock()
	defer a.mu.Unlock()
	key := ""
	if len(parts) == 4 {
		key = parts[1] + "/" + parts[3]
	}
	old := a.leases[key]
	switch r.Method {
	case http.MethodGet:
		if key == "" {
			a.lists++
			a.list(w, r)
			return
		}
		if a.gets++; old == nil {
			a.status(w, http.StatusNotFound, metav1.StatusReasonNotFound, "")
			return
		}
		_ = json.NewEncoder(w).Encode(old)
		return
	case http.MethodPost, http.MethodPut:
		now := &coordinationv1.Lease{}
		_ = json.NewDecoder(r.Body).Decode(now)
		if r.Method == http.MethodPost {
			now.Namespace, now.UID = parts[1], types.UID(fmt.Sprint("uid-", a.version))
			key = now.Namespace + "/" + now.Name
		}
		kind := map[bool]string{true: "ADDED", false: "MODIFIED"}[r.Method == http.MethodPost]
		a.write(key, now, kind)
		if !a.lose {
			_ = json.NewEncoder(w).Encode(now)
		}
	case http.MethodDelete:
		a.write(key, old, "DELETED")
		if !a.lose {
			a.status(w, http.StatusOK, "", old.UID)
		}
	}
	if a.lose {
		panic(http.ErrAbortHandler)
	}
}

func (a *api) status(w http.ResponseWriter, code int, reason metav1.StatusReason, uid types.UID) {
	s := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Reason: reason, Code: int32(code), Details: &metav1.StatusDetails{UID: uid}}
	if reason != "" {
		s.Status = metav1.StatusFailure
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(s)
}

// write makes a change and has the watch report it. The lock is held.
func (a *api) write(key string, lease *coordinationv1.Lease, kind string) {
	a.version++
	now := lease.DeepCopy()
	now.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
	now.ResourceVersion = strconv.Itoa(a.version)
	*lease = *now
	if a.leases[key] = now; kind == "DELETED" {
		delete(a.leases, key)
	}
	a.events = append(a.events, event{a.version, kind, now})
	close(a.moved)
	a.moved = make(chan struct{})
}

func (a *api) list(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("resourceVersion") == "0" {
		a.t.Error("a list of the API server's own cache")
	}
	all := coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{Kind: "LeaseList", APIVersion: "coordination.k8s.io/v1"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(a.version)}}
	for _, l := range a.leases {
		all.Items = append(all.Items, *l)
	}
	_ = json.NewEncoder(w).Encode(all)
}

// watch reports changes, all of them or those that the test lets it.
func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for next := 0; ; {
		a.mu.Lock()
		var report []event
		for ; next < len(a.events) && (a.open || next < a.held); next++ {
			if a.events[next].version > since {
				report = append(report, a.events[next])
			}
		}
		moved := a.moved
		a.mu.Unlock()
		for _, e := range report {
			_ = json.NewEncoder(w).Encode(e)
		}
		w.(http.Flusher).Flush()
		select {
		case <-moved:
		case <-r.Context().Done():
			return
		}
	}
}

// hold keeps the watch from reporting anything else, and release has it go on.
func (a *api) hold() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open, a.held = false, len(a.events)
}

func (a *api) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = true
	close(a.moved)
	a.moved = make(chan struct{})
}

// asked is how often objects were read past the cache.
func (a *api) asked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gets + a.lists
}
