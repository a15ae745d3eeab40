// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/certificates/policy"
)

// management is a management cluster of Cluster API: an API server with Machines, in some versions.
type management struct {
	*httptest.Server
	mu       sync.Mutex
	versions []string
	machines map[string]string // by "namespace/name", in JSON
	streams  map[chan string]bool
	asked    []string
	version  int
}

func newManagement(t *testing.T, versions ...string) *management {
	t.Helper()
	m := &management{versions: versions, machines: map[string]string{}, streams: map[chan string]bool{}}
	m.Server = httptest.NewServer(m)
	t.Cleanup(func() { m.disconnect(); m.Close() })
	return m
}

// put adds or changes a machine, and tells the watchers.
func (m *management) put(kind, key, meta, spec, status string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version++
	namespace, name, _ := strings.Cut(key, "/")
	text := fmt.Sprintf(`{"apiVersion":"cluster.x-k8s.io/VERSION","kind":"Machine","metadata":{"namespace":%q,"name":%q,"resourceVersion":"%d","annotations":{"a":"b"}%s},"spec":{%s},"status":{%s}}`,
		namespace, name, m.version, meta, spec, status)
	m.machines[key] = text
	if kind == "DELETED" {
		delete(m.machines, key)
	}
	for s := range m.streams {
		s <- fmt.Sprintf(`{"type":%q,"object":%s}`, kind, text)
	}
}

// upgrade changes the versions that are served, as an upgrade of Cluster API does, and ends all watches.
func (m *management) upgrade(versions ...string) {
	m.mu.Lock()
	m.versions = versions
	m.mu.Unlock()
	m.disconnect()
}

func (m *management) disconnect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.streams {
		close(s)
		delete(m.streams, s)
	}
}

// watched waits until somebody watches: events before that are nobody's.
func (m *management) watched(t *testing.T) {
	t.Helper()
	until(t, "it is watched", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.streams) > 0
	})
}

func (m *management) paths() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.asked...)
}

func (m *management) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.asked = append(m.asked, r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	fail := func(code int, reason metav1.StatusReason) {
		m.mu.Unlock()
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(code), Reason: reason})
	}
	if r.URL.Path == "/apis/cluster.x-k8s.io" && len(m.versions) > 0 {
		group := metav1.APIGroup{Name: "cluster.x-k8s.io"}
		for _, v := range m.versions {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{Version: v, GroupVersion: "cluster.x-k8s.io/" + v})
		}
		_ = json.NewEncoder(w).Encode(group)
		m.mu.Unlock()
		return
	}
	served := ""
	for _, v := range m.versions {
		if r.URL.Path == "/apis/cluster.x-k8s.io/"+v+"/machines" || r.URL.Path == "/apis/cluster.x-k8s.io/"+v+"/namespaces/fleet/machines" {
			served = v
		}
	}
	switch {
	case served == "":
		fail(http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	case r.URL.Query().Get("sendInitialEvents") != "":
		fail(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		return
	case r.URL.Query().Get("watch") == "":
		var items []string
		for _, text := range m.machines {
			items = append(items, strings.Replace(text, "VERSION", served, 1))
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":"cluster.x-k8s.io/%s","kind":"MachineList","metadata":{"resourceVersion":"%d"},"items":[%s]}`, served, m.version, strings.Join(items, ","))
		m.mu.Unlock()
		return
	}
	stream := make(chan string, 10)
	m.streams[stream] = true
	m.mu.Unlock()
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	for {
		select {
		case <-r.Context().Done(): // it may have come after disconnect
			return
		case event, ok := <-stream:
			if !ok {
				return
			}
			_, _ = fmt.Fprintln(w, strings.Replace(event, "VERSION", served, 1))
			flusher.Flush()
		}
	}
}

func watchClusterAPI(t *testing.T, m *management, namespace, cluster string) (*Watch, *ear) {
	t.Helper()
	machines, err := ClusterAPIMachines(&rest.Config{Host: m.URL}, namespace)
	if err != nil {
		t.Fatal(err)
	}
	e := &ear{}
	s, err := NewClusterAPI(WatchConfig{Objects: machines, ClusterName: cluster, OnChange: e.hear, Logger: e.logger()})
	if err != nil {
		t.Fatal(err)
	}
	running(t, s)
	return s, e
}

const (
	fleet     = `"clusterName":"fleet","providerID":"aws:///z/i-1"`
	addresses = `"addresses":[{"type":"Hostname","address":"Host-1"},{"type":"InternalDNS","address":"host-1.internal."},{"type":"ExternalDNS","address":"host-1.example"},
		{"type":"InternalIP","address":"10.0.0.1"},{"type":"ExternalIP","address":"192.0.2.1"},{"type":"Hostname","address":"10.0.0.7"},{"type":"InternalIP","address":"10.0.0.300"}]`
)

func TestClusterAPIMachines(t *testing.T) {
	for _, versions := range [][]string{{"v1alpha4", "v1beta1", "v1beta2"}, {"v1beta1"}} {
		best := versions[len(versions)-1]
		t.Run(best, func(t *testing.T) {
			m := newManagement(t, versions...)
			m.put("", "fleet/a", `,"labels":{"cluster.x-k8s.io/deployment-name":"md-0","x":"y"}`, fleet, addresses)
			m.put("", "fleet/b", `,"deletionTimestamp":"2026-01-01T00:00:00Z"`, fleet, `"nodeRef":{"apiVersion":"v1","kind":"Node","name":"node-b"},`+strings.ReplaceAll(addresses, "1", "2"))
			m.put("", "fleet/new", "", `"clusterName":"fleet"`, "")
			m.put("", "fleet/other", "", `"clusterName":"other"`, `"nodeRef":{"name":"other"}`)
			s, e := watchClusterAPI(t, m, "", "fleet")
			until(t, "it has been read", s.HasSynced)
			want := made("fleet/a", "host-1", "host-1 host-1.internal host-1.example", "10.0.0.1 192.0.2.1 10.0.0.7")
			want.Group = "md-0"
			if diff := cmp.Diff(want, s.MachineOfNode("host-1").Value, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if f := s.MachineOfNode("node-b"); f.State != policy.Known || f.Value.ID != "fleet/b" || !f.Value.Deleting || f.Source != "clusterAPI" {
				t.Errorf("b: %+v", f)
			}
			if f := s.MachineOfNode("host-2"); f.State != policy.Absent {
				t.Errorf("by a host's name, when it has registered by another: %+v", f)
			}
			if f := s.Machine("fleet/new"); f.State != policy.Known || f.Value.NodeName != "" {
				t.Errorf("new: %+v", f)
			}
			if f := s.MachineOfNode("other"); f.State != policy.Absent {
				t.Errorf("of another cluster: %+v", f)
			}
			if f := s.Owners("20.0.0.2"); !cmp.Equal(ids(f.Value), []string{"fleet/b"}) {
				t.Errorf("owners: %+v", f)
			}
			until(t, "that is told", func() bool { return len(e.heard()) > 0 })
			m.watched(t)
			m.put("MODIFIED", "fleet/a", "", fleet, addresses+`,"nodeRef":{"name":"node-a"}`)
			until(t, "a change is seen", func() bool { return knows(s, "node-a") })
			if knows(s, "host-1") {
				t.Error("it still has its old name")
			}
			m.put("DELETED", "fleet/a", "", fleet, "")
			until(t, "a deletion is seen", func() bool { return !knows(s, "node-a") })
			if paths := strings.Join(m.paths(), " "); !strings.Contains(paths, "/apis/cluster.x-k8s.io/"+best+"/machines") || strings.Contains(paths, "v1alpha") || best == "v1beta2" && strings.Contains(paths, "v1beta1") {
				t.Errorf("asked for %s", paths)
			}
			if n := e.logged("broken"); n > 0 {
				t.Errorf("a server that cannot stream a list was taken for broken")
			}
		})
	}
}

func TestClusterAPIOfOneNamespaceWhoseVersionGoes(t *testing.T) {
	m := newManagement(t, "v1beta1")
	m.put("", "fleet/a", "", fleet, `"nodeRef":{"name":"a"}`)
	s, _ := watchClusterAPI(t, m, "fleet", "")
	until(t, "it has been read", func() bool { return knows(s, "a") })
	m.upgrade("v1beta2")
	until(t, "it is asked for in the new version", func() bool {
		return strings.Contains(strings.Join(m.paths(), " "), "/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet/machines")
	})
	m.watched(t)
	m.put("ADDED", "fleet/b", "", fleet, `"nodeRef":{"name":"b"}`)
	until(t, "changes are seen", func() bool { return knows(s, "a") && knows(s, "b") })
}

func TestClusterAPIMayBeInstalledLater(t *testing.T) {
	m := newManagement(t)
	s, _ := watchClusterAPI(t, m, "", "")
	until(t, "that is told", func() bool { return strings.Contains(s.Status().Problem, "Cluster API is not installed") })
	if f := s.MachineOfNode("a"); f.State != policy.Unknown || !strings.Contains(f.Why, "Cluster API is not installed") || s.HasSynced() {
		t.Errorf("got %+v", f)
	}
	m.upgrade("v1alpha4")
	until(t, "another version is told", func() bool { return strings.Contains(s.Status().Problem, "none of the versions") })
	m.put("", "fleet/a", "", fleet, `"nodeRef":{"name":"a"}`)
	m.upgrade("v1beta2")
	until(t, "it has been read", func() bool { return knows(s, "a") && s.Status().Problem == "" })
}

func TestCopiesOfClusterAPIMachinesAreTheirOwn(t *testing.T) {
	var l capiMachineList
	if err := json.Unmarshal([]byte(`{"items":[{"metadata":{"name":"a","labels":{"x":"y"}},"status":{"nodeRef":{"name":"n"},"addresses":[{"type":"Hostname","address":"h"}]}}]}`), &l); err != nil {
		t.Fatal(err)
	}
	copied, ok := l.DeepCopyObject().(*capiMachineList)
	if !ok || !cmp.Equal(&l, copied) {
		t.Fatalf("got %+v", copied)
	}
	copied.Items[0].Labels["x"], copied.Items[0].Status.NodeRef.Name, copied.Items[0].Status.Addresses[0].Address = "z", "m", "i"
	if m := l.Items[0]; m.Labels["x"] != "y" || m.nodeName() != "n" || m.Status.Addresses[0].Address != "h" {
		t.Errorf("the original changed: %+v", m)
	}
}
