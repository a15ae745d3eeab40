// SPDX-License-Identifier: Apache-2.0

package planeid_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeid"
	"muster.dev/muster/internal/platform/statedir"
)

var components = []string{
	component.Etcd, component.APIServer, component.ControllerManager, component.Scheduler, component.CertificateController, component.Authenticator, component.TokenSigner, component.PodWebhook,
}

func cluster(t *testing.T, dir statedir.Dir, name string) statedir.Cluster {
	t.Helper()
	c := dir.Cluster(name)
	if err := os.MkdirAll(string(c), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := planeid.Ensure(dir, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// Each component of each cluster has an id of its own, which stays, and which no other cluster gets while there is a
// file of the first.
func TestOf(t *testing.T) {
	etc, dir := t.TempDir(), statedir.Dir(t.TempDir())
	for range 2 {
		if err := planeid.Reserve(etc, dir); err != nil {
			t.Fatal(err)
		}
	}
	first, end := planeid.Range(dir)
	seen := map[uint32]string{}
	for range 2 {
		for n := range 5 {
			name := fmt.Sprintf("c%d", n)
			cluster(t, dir, name)
			for _, component := range components {
				process := "cluster/" + name + "/" + component
				id, found := planeid.Of(dir, process)
				if by, taken := seen[id]; !found || id < first || id >= end || taken && by != process {
					t.Fatalf("%s has %d (%v), which is %q's", process, id, found, by)
				}
				seen[id] = process
				if !planeid.Is(dir, id, component) || planeid.Is(dir, id+1, component) {
					t.Errorf("%d is not known as %s's", id, component)
				}
			}
		}
	}
	if len(seen) != 5*len(components) {
		t.Errorf("%d ids for %d components", len(seen), 5*len(components))
	}
	was, _ := planeid.Of(dir, "cluster/c1/etcd")
	if err := os.RemoveAll(string(dir.Cluster("c1"))); err != nil {
		t.Fatal(err)
	}
	cluster(t, dir, "later")
	if is, _ := planeid.Of(dir, "cluster/later/etcd"); is != was {
		t.Errorf("the ids of a cluster that is gone are not given again: %d, %d", is, was)
	}
	if err := planeid.Release(etc, dir); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(filepath.Join(etc, "subuid")); err != nil || strings.Contains(string(raw), "planes") {
		t.Errorf("left %q, %v", raw, err)
	}
}

func TestOfNobody(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	if first, end := planeid.Range(dir); first != 0 || end != 0 {
		t.Errorf("there are ids from %d to %d", first, end)
	}
	cluster(t, dir, "c")
	if id, found := planeid.Of(dir, "cluster/c/etcd"); found {
		t.Errorf("an id without a range: %d", id)
	}
	if err := planeid.Reserve(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	for _, process := range []string{"etcd", "management-etcd", "cluster/c/webhook-proxy", "cluster/d/etcd", "cluster/../etcd", "cluster/", ""} {
		if id, found := planeid.Of(dir, process); found {
			t.Errorf("%q has %d", process, id)
		}
	}
}

// While one record cannot be read, nobody knows which ids are free.
func TestDamaged(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	c := cluster(t, dir, "c")
	if err := os.WriteFile(c.IDs(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := dir.Cluster("d")
	if err := os.MkdirAll(string(other), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := planeid.Ensure(dir, other); err == nil || !strings.Contains(err.Error(), c.IDs()) {
		t.Errorf("choosing ids: %v", err)
	}
}
