// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
)

// TestKilledWhileClustersComeAndGo kills service and guard at random moments while clusters are made and deleted. Each
// of them ends as it was asked to: served, or gone with everything of it.
//
//story:about cluster/clustercontroller plane/supervise cluster/serve
func TestKilledWhileClustersComeAndGo(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "1")

	names := []string{"one", "Two_2", "three"}
	wanted := map[string]bool{}
	for range killedRounds {
		name := names[random.IntN(len(names))]
		wanted[name] = i.change(name, wanted[name], random.IntN(2) == 0)
		<-time.After(time.Duration(random.Int64N(int64(4 * time.Second))))
		victims := []string{"serve"}
		if random.IntN(2) == 0 {
			victims = []string{"guard", "serve"}
		}
		running := i.processes()
		for _, victim := range victims {
			if p, ok := running[victim]; ok { // the guard may be about to start it from the round before
				if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
					t.Fatal(err)
				}
			}
		}
		i.muster("up", "--cluster", "muster")
	}
	for _, name := range names {
		t.Logf("%s is wanted: %v", name, wanted[name])
		namespace := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		i.eventually("cluster "+name+" ends as asked", func() error { return i.asAsked(name, namespace, wanted[name]) })
	}
	i.eventually("the first cluster is served", func() error {
		_, err := i.kubectl("--context", "muster", "get", "--raw", "/readyz")
		return err
	})
}

// change makes a cluster, with a node or without, or deletes it if it is there. It reports whether there is to be one
// now.
func (i *installation) change(name string, there, node bool) bool {
	i.t.Helper()
	if there {
		i.muster("delete", "cluster", name, "--wait=false", "--cascade")
		return false
	}
	arguments := []string{"create", "cluster", name}
	if node {
		arguments = append(arguments, "--nodes", "1", "--provider", "simulated")
	}
	_, talk, err := i.try(arguments...)
	if err != nil && !strings.Contains(talk, "being deleted") { // the one before it
		i.t.Fatalf("muster %s: %v: %s", strings.Join(arguments, " "), err, talk)
	}
	return err == nil
}

// asAsked reports whether a cluster is served, or nothing is left of it. The namespace is that of its name, or begins
// so.
func (i *installation) asAsked(name, namespace string, wanted bool) error {
	all, err := i.kubectl("--context", "muster-management", "get", "clusters", "-A", "-o",
		`jsonpath={range .items[*]}{.spec.name}={.metadata.namespace}={.status.conditions[?(@.type=="Ready")].status}={.status.conditions[?(@.type=="Ready")].reason}{"\n"}{end}`)
	if err != nil {
		return err
	}
	if wanted {
		for line := range strings.Lines(all) {
			parts := strings.Split(strings.TrimSpace(line), "=")
			if parts[0] == name && parts[2] == "True" {
				_, err := i.kubectl("--kubeconfig", i.dir.Cluster(parts[1]).Kubeconfig(), "get", "--raw", "/readyz")
				return err
			}
		}
		return fmt.Errorf("it is not Ready:\n%s", all)
	}
	if strings.Contains(all, name+"=") {
		return fmt.Errorf("its object is there:\n%s", all)
	}
	begins := func(s string) bool { return s == namespace || strings.HasPrefix(s, namespace+"--") }
	var left []string
	found, err := supervise.Find(i.dir)
	if err != nil {
		return err
	}
	for _, p := range found {
		if of, _ := component.SplitProcess(p.Name); begins(of) {
			left = append(left, "process "+p.Name)
		}
	}
	entries, err := os.ReadDir(i.dir.Clusters())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if begins(entry.Name()) {
			left = append(left, "directory "+entry.Name())
		}
	}
	for _, kind := range []string{"namespaces", "clusterrolebindings"} {
		out, err := i.kubectl("--context", "muster-management", "get", kind, "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil {
			return err
		}
		for object := range strings.FieldsSeq(out) {
			if begins(strings.TrimPrefix(object, "muster:inventory:")) {
				left = append(left, kind+" "+object)
			}
		}
	}
	endpoints, err := filepath.Glob(filepath.Join(i.dir.VPCs(), "*", "endpoints.json"))
	if err != nil {
		return err
	}
	for _, path := range endpoints {
		if raw, err := os.ReadFile(path); err != nil || strings.Contains(string(raw), `"`+name+`"`) {
			left = append(left, fmt.Sprintf("endpoint in %s (%v)", filepath.Base(filepath.Dir(path)), err))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("it is gone, and left %s", strings.Join(slices.Sorted(slices.Values(left)), ", "))
	}
	return nil
}
