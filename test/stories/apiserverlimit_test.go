// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/statedir"
)

const smallLimit = 512 << 20

// TestAPIServerAtItsLimit drives the API server of one cluster to its memory limit by ConfigMaps. The kernel ends it
// alone, it is started again, and an Event, a condition and the status say why; another cluster answers throughout. Its
// limit is changed, and it is taken over, while it runs.
//
//story:about platform/memorylimit platform/host plane/supervise plane/apiservermemory cluster/serve machine/nodegroup
func TestAPIServerAtItsLimit(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.up(`{apiVersion: muster.dev/v1alpha1, kind: Cluster, metadata: {name: muster}, spec: {apiServer: {memoryLimit: 512Mi}}}`)
	i.muster("create", "cluster", "blue", "--wait", "--timeout", "3m")
	muster, blue := side{i, "muster"}, side{i, "blue"}
	muster.inItsGroup()
	blue.inItsGroup()

	for _, step := range []struct {
		name string
		run  func(*testing.T, side, side)
	}{{"ended at its limit", endedAtTheLimit}, {"another limit", anotherLimit}, {"taken over", takenOverIntoItsGroup}} {
		t.Run(step.name, func(t *testing.T) { step.run(t, side{i.in(t), "muster"}, side{i.in(t), "blue"}) })
	}
	i.muster("delete", "cluster", "blue", "--timeout", "3m")
	if _, err := os.Stat(blue.memoryGroup()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the control group of a cluster that is deleted: %v", err)
	}
	muster.inItsGroup()
}

// endedAtTheLimit floods one API server until the kernel ends it.
func endedAtTheLimit(t *testing.T, muster, blue side) {
	before := map[string]int{}
	for _, s := range []side{muster, blue} {
		for _, p := range s.processesOf() {
			before[p.Name] = p.PID
		}
	}
	end := blue.keepAsking()
	stop := muster.flood()
	var memory runner.Memory
	muster.eventually("the kernel ends the API server", func() error {
		status := muster.apiServerStatus()
		if memory = status.Memory; memory.Ended == 0 {
			return fmt.Errorf("it is %s with %+v", status.State, memory)
		}
		return nil
	})
	stop()
	muster.ready() // with the same limit
	if asked, err := end(); err != nil || asked < 100 {
		t.Errorf("the other cluster: request %d: %v", asked, err)
	}
	// The kernel counts pages that it is about to refuse.
	if memory.Limit != smallLimit || memory.Last.Limit != smallLimit || memory.Last.Used > smallLimit+(1<<20) || memory.Last.Used < smallLimit-(8<<20) {
		t.Errorf("it is said of its memory: %+v", memory)
	}
	for _, s := range []side{muster, blue} {
		for _, p := range s.processesOf() {
			ended := p.Name == component.ProcessPrefix("muster")+component.APIServer
			if (p.PID != before[p.Name]) != ended {
				t.Errorf("%s was process %d, and is %d", p.Name, before[p.Name], p.PID)
			}
		}
	}
	says := func(what, text string) error {
		for _, part := range []string{"at its memory limit of 512 MiB", "it used 51", "raise spec.apiServer.memoryLimit"} {
			if !strings.Contains(text, part) {
				return fmt.Errorf("%s lacks %q: %s", what, part, text)
			}
		}
		return nil
	}
	muster.eventually("people are told", func() error {
		events, err := muster.kubectl("--context", "muster-management", "-n", "muster", "get", "events.events.k8s.io", "-o",
			`jsonpath={range .items[?(@.reason=="APIServerMemoryLimit")]}{.regarding.kind} {.regarding.name}: {.note}{"\n"}{end}`)
		if err != nil {
			return err
		}
		condition, err := muster.kubectl("--context", "muster-management", "-n", "muster", "get", "cluster", "muster", "-o",
			`jsonpath={.status.conditions[?(@.type=="APIServerMemoryLimited")].message}`)
		if err != nil {
			return err
		}
		status, _, _ := muster.try("status")
		if !strings.Contains(events, "Cluster muster: ") {
			return fmt.Errorf("no Event of the Cluster: %s", events)
		}
		return errors.Join(says("the Event", events), says("the condition", condition), says("the status", status))
	})
}

// anotherLimit takes effect without a restart.
func anotherLimit(t *testing.T, muster, _ side) {
	pid := muster.apiServerStatus().PID
	for _, limit := range []struct {
		text  string
		bytes int64
	}{{"2Gi", 2 << 30}, {"1536Mi", 1536 << 20}} {
		muster.mustKubectl("--context", "muster-management", "-n", "muster", "patch", "cluster", "muster", "--type", "merge", "-p", `{"spec":{"apiServer":{"memoryLimit":"`+limit.text+`"}}}`)
		muster.eventually("the limit of "+limit.text+" is in force", func() error {
			if status := muster.apiServerStatus(); status.Memory.Limit != limit.bytes || status.State != runner.Ready {
				return fmt.Errorf("it is %s with %+v", status.State, status.Memory)
			}
			return nil
		})
	}
	if now := muster.apiServerStatus().PID; now != pid {
		t.Errorf("it was restarted: process %d, before %d", now, pid)
	}
	if _, err := muster.kubectl("--context", "muster-management", "-n", "muster", "patch", "cluster", "muster", "--type", "merge", "-p", `{"spec":{"apiServer":{"memoryLimit":"1Mi"}}}`); err == nil || !strings.Contains(err.Error(), "must be from 512Mi to 1024Gi") {
		t.Errorf("a limit of 1Mi: %v", err)
	}
}

// takenOverIntoItsGroup has the next service find a process in no group of its own, as a Muster before this one has
// started it.
func takenOverIntoItsGroup(t *testing.T, muster, blue side) {
	pids := [2]int{muster.apiServerStatus().PID, blue.apiServerStatus().PID}
	groups, err := host.ReadCgroups()
	if err != nil {
		t.Fatal(err)
	}
	if groups, err = groups.With("memory"); err != nil {
		t.Fatal(err)
	}
	if err := groups.Enter("/", pids[0]); err != nil {
		t.Fatal(err)
	}
	killed := muster.kill("serve")
	muster.eventually("the next service has taken over", func() error {
		status, err := muster.status()
		if err == nil && status.PID == killed.PID {
			err = errors.New("it is the same one")
		}
		return err
	})
	muster.ready()
	if now := [2]int{muster.apiServerStatus().PID, blue.apiServerStatus().PID}; now != pids {
		t.Errorf("the API servers were processes %v, and are %v", pids, now)
	}
	muster.inItsGroup()
	blue.inItsGroup()
}

// apiServerStatus is what the service says of the API server.
func (s side) apiServerStatus() runner.Status {
	s.t.Helper()
	var found runner.Status
	s.eventually("the service answers", func() error {
		status, err := s.status()
		if err != nil {
			return err
		}
		cluster, _ := status.In(s.cluster)
		for _, c := range cluster.Components {
			if c.Name == component.APIServer {
				found = c
				return nil
			}
		}
		return errors.New("it says nothing of the API server")
	})
	return found
}

// memoryGroup is the directory of the API server's control group.
func (s side) memoryGroup() string {
	s.t.Helper()
	groups, err := host.ReadCgroups()
	if err != nil {
		s.t.Fatal(err)
	}
	if groups, err = groups.With("memory"); err != nil || len(groups.Hierarchies) == 0 {
		s.t.Fatalf("no control groups for memory: %v", err)
	}
	return filepath.Join(groups.Hierarchies[0].MountPoint, groupsOfPlanes, statedir.Hash(s.dir), component.ProcessPrefix(s.cluster), component.APIServer)
}

// inItsGroup fails unless the API server is in its control group, alone.
func (s side) inItsGroup() {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.memoryGroup(), "cgroup.procs"))
	if want := strconv.Itoa(s.apiServerStatus().PID); err != nil || strings.TrimSpace(string(raw)) != want {
		s.t.Errorf("the group of %s has the processes %q, want %s: %v", s.cluster, raw, want, err)
	}
}

// flood sends ConfigMaps of 1 MB, which are not stored, by many clients at a time, until the returned function is
// called.
func (s side) flood() (stop func()) {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.dir.Cluster(s.cluster).Kubeconfig())
	if err != nil {
		s.t.Fatal(err)
	}
	config.NextProtos = []string{"http/1.1"} // a connection for each client
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		s.t.Fatal(err)
	}
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"flood-"},"data":{"text":"` + strings.Repeat("x", 1_000_000) + `"}}`
	ctx, cancel := context.WithCancel(s.t.Context())
	var clients sync.WaitGroup
	for range 400 {
		clients.Go(func() {
			for ctx.Err() == nil {
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, config.Host+"/api/v1/namespaces/default/configmaps?dryRun=All", strings.NewReader(body))
				if err != nil {
					return
				}
				request.Header.Set("Content-Type", "application/json")
				if response, err := client.Do(request); err == nil { // else it has just been ended
					_ = response.Body.Close()
				}
			}
		})
	}
	return func() { cancel(); clients.Wait() }
}
