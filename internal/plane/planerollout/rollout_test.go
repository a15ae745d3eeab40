// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/plane/runner/runnertest"
)

// A change of flags goes by a newcomer in the other slot, back and forth; a change that is none starts nothing.
func TestRollout(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	for turn, want := range []struct{ server, told string }{
		{"kube-apiserver new", "20001"}, {"kube-apiserver-1 new", "20002"}, {"kube-apiserver new", "20001"}, {"kube-apiserver new", "20001"},
	} {
		p.change(min(turn, 2))
		ctx, cancel := context.WithCancel(t.Context())
		refusal, running, err := p.service(ctx)
		if err != nil || refusal != nil {
			t.Fatal(refusal, err)
		}
		if got, scheduler := p.version(running, component.APIServer), p.version(running, component.Scheduler); got != want.server || scheduler != "kube-scheduler new" || p.told() != want.told {
			t.Errorf("turn %d: %s, %s; the front knows %s", turn, got, scheduler, p.told())
		}
		cancel()
	}
	ended := slices.DeleteFunc(p.place.Ends(), func(process string) bool { return !strings.Contains(process, "apiserver") })
	if want := []string{"cluster/blue/kube-apiserver", "cluster/blue/kube-apiserver-1"}; !slices.Equal(ended, want) {
		t.Errorf("ended: %v, want %v", ended, want)
	}
	if want := []string{"kube-apiserver-1 is started beside kube-apiserver, and serves once it is Ready", "kube-apiserver is started beside kube-apiserver-1, and serves once it is Ready"}; !slices.Equal(p.began, want) || p.took != 0 {
		t.Errorf("it told %q, and the last rollout, of no change, took %s", p.began, p.took)
	}
	info, err := os.Stat(p.config.Dir.PlaneRecord())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// Two API servers serve behind the front, are replaced one after the other, and become one again.
func TestReplicas(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	defer func() {
		if len(p.began) != 5 || p.began[3] != "kube-apiserver is started beside kube-apiserver-1, and serves once it is Ready" || p.began[2] != "kube-apiserver-2 ends, beside kube-apiserver-1" || p.took == 0 {
			t.Errorf("it told %q, and the last change took %s", p.began, p.took)
		}
	}()
	for turn, want := range []struct {
		replicas, change int32
		servers, told    string
	}{
		{2, 0, "kube-apiserver new, kube-apiserver-1 new", "20001, 20002"},
		{2, 0, "kube-apiserver new, kube-apiserver-1 new", "20001, 20002"},
		{2, 1, "kube-apiserver-1 new, kube-apiserver-2 new", "20003, 20002"},
		{1, 1, "kube-apiserver-1 new", "20002"},
		{2, 2, "kube-apiserver new, kube-apiserver-2 new", "20001, 20003"},
		{1, 3, "kube-apiserver-1 new", "20002"},
	} {
		p.replicas(want.replicas)
		p.change(int(want.change))
		ctx, cancel := context.WithCancel(t.Context())
		refusal, running, err := p.service(ctx)
		if err != nil || refusal != nil {
			t.Fatal(refusal, err)
		}
		if got, scheduler := p.version(running, component.APIServer), p.version(running, component.Scheduler); got != want.servers || scheduler != "kube-scheduler new" || p.told() != want.told {
			t.Errorf("turn %d: %s, %s; the front knows %s", turn, got, scheduler, p.told())
		}
		cancel()
	}
}

// Another program behind the same path goes by a newcomer, and the followers are started again after that; nothing that
// is as it was is started again.
func TestReplacedProgram(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	var pids []int
	for turn, want := range []string{"kube-apiserver new", "kube-apiserver-1 new", "kube-apiserver-1 new"} {
		if turn == 1 {
			for _, name := range []string{component.APIServer, component.ControllerManager, component.Scheduler} {
				p.place.Replace(name)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		refusal, running, err := p.service(ctx)
		if err != nil || refusal != nil {
			t.Fatal(refusal, err)
		}
		if err := running.WaitReady(ctx, component.ControllerManager); err != nil {
			t.Fatal(err)
		}
		if got := p.version(running, component.APIServer); got != want {
			t.Errorf("turn %d: %s, want %s", turn, got, want)
		}
		for _, s := range running.Status() {
			if s.Name == component.ControllerManager {
				pids = append(pids, s.PID)
			}
		}
		cancel()
	}
	if pids[0] == pids[1] || pids[1] != pids[2] {
		t.Errorf("the controller manager was the processes %v", pids)
	}
	ended := slices.DeleteFunc(p.place.Ends(), func(process string) bool { return strings.Contains(process, "scheduler") })
	if want := []string{"cluster/blue/kube-apiserver", "cluster/blue/kube-controller-manager"}; !slices.Equal(ended, want) {
		t.Errorf("ended: %v, want %v", ended, want)
	}
}

// A newcomer that does not serve leaves everything as it was, and the old server is started again as it was.
func TestRefused(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.change(0)
	first, end := context.WithCancel(t.Context())
	if _, _, err := p.service(first); err != nil {
		t.Fatal(err)
	}
	end()
	p.change(1)
	second, end := context.WithCancel(t.Context())
	defer end()
	p.place.Break(component.APIServerName(1), "unknown flag")
	go func() { // it ends each time that it is started
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for second.Err() == nil {
			p.place.Kill(component.APIServerName(1))
			<-tick.C
		}
	}()
	running := p.place.New(second)
	r := p.rollout(backoff{running})
	if err := r.Begin(second); err != nil {
		t.Fatal(err)
	}
	outcome, err := r.Run(second)
	refusal := outcome.Refusal
	if err != nil || refusal == nil || refusal.Server.Name != component.APIServerName(1) || !strings.Contains(refusal.Reason, "unknown flag") {
		t.Fatalf("%+v, %v", refusal, err)
	}
	p.place.Kill(component.APIServer)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		got := p.version(running, component.APIServer) + ", " + p.version(running, component.Scheduler)
		if got == "kube-apiserver old, kube-scheduler old" && p.told() == "20001" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s; the front knows %s", got, p.told())
		}
	}
}

// A change that the host has no memory for is refused, and made once it has.
func TestRefusedForMemory(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	for turn, want := range []string{"kube-apiserver new", "kube-apiserver old", "kube-apiserver-1 new"} {
		p.change(min(turn, 1))
		p.room = []int64{0, NewcomerMemory - 1, NewcomerMemory}[turn]
		ctx, cancel := context.WithCancel(t.Context())
		refusal, running, err := p.service(ctx)
		if err != nil || (refusal != nil) != (turn == 1) || refusal != nil && (refusal.Server.Name != component.APIServerName(1) || !strings.Contains(refusal.Reason, "400 MiB")) {
			t.Errorf("turn %d: %+v, %v", turn, refusal, err)
		}
		if got := p.version(running, component.APIServer); got != want {
			t.Errorf("turn %d: %s, want %s", turn, got, want)
		}
		cancel()
	}
}

// backoff says of a newcomer what a supervisor says of a process that ends again and again.
type backoff struct{ *runnertest.Runner }

func (b backoff) Status() []runner.Status {
	statuses := b.Runner.Status()
	for i := range statuses {
		if statuses[i].Restarts >= maxEnds {
			statuses[i].State = runner.Backoff
		}
	}
	return statuses
}

// The service dies at any moment of many changes: the API server that the front knows runs, and the last change is
// taken in the end.
func TestServiceDies(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	p := newPlane(t)
	for turn := range 40 {
		if random.IntN(2) == 0 {
			p.change(turn)
			p.replicas(1 + random.Int32N(v1alpha1.MaxReplicas))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(300))*time.Millisecond)
		refusal, running, err := p.service(ctx)
		cancel()
		if refusal != nil || err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(refusal, err)
		}
		processes, err := running.Running()
		if err != nil {
			t.Fatal(err)
		}
		serves := slices.ContainsFunc(processes, func(process runner.Running) bool {
			_, name := component.SplitProcess(process.Process)
			first, _, _ := strings.Cut(p.told(), ",")
			return name == component.APIServerName(slices.Index([]string{"20001", "20002", "20003"}, strings.TrimSuffix(first, " drains")))
		})
		if !serves && turn > 5 {
			t.Errorf("turn %d: the front knows %s, and %+v run", turn, p.told(), processes)
		}
	}
	_, running, err := p.service(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := p.version(running, component.APIServer) + ", " + p.version(running, component.Scheduler); !strings.Contains(got, "new, kube-scheduler new") {
		t.Error(got)
	}
}

// A record that no rollout has written is told, with what to do, and nothing is changed.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "{", "[]", "{}", `{"servers":[{"slot":0,"phase":"Draining","spec":{"name":"kube-apiserver"}}]}`, `{"servers":[{"slot":7,"phase":"Serving","spec":{"name":"kube-apiserver-7"}}]}`,
		`{"servers":[{"slot":1,"phase":"Serving","spec":{"name":"kube-apiserver"}}]}`, `{"servers":[{"slot":0,"phase":"Late","spec":{"name":"kube-apiserver"}}]}`,
		`{"servers":[{"slot":0,"phase":"Serving","spec":{"name":"kube-apiserver"}},{"slot":0,"phase":"Newcomer","spec":{"name":"kube-apiserver"}}]}`,
	} {
		path := filepath.Join(t.TempDir(), "plane.json")
		if err := os.WriteFile(path, []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		if record, err := read(path); err == nil || !strings.Contains(err.Error(), "remove the file") || len(record.Servers) > 0 {
			t.Errorf("%s: %+v, %v", raw, record, err)
		}
	}
}

// While a newcomer of one cluster is not Ready, another cluster starts none; then its turn comes.
func TestOneAfterTheOther(t *testing.T) {
	t.Parallel()
	blue, green := newPlane(t), newPlane(t)
	green.turns = blue.turns
	for _, p := range []*plane{blue, green} {
		ctx, end := context.WithCancel(t.Context())
		if _, _, err := p.service(ctx); err != nil {
			t.Fatal(err)
		}
		end()
		p.change(1)
	}
	blue.place.Break(component.APIServerName(1), "it starts")
	ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
	defer end()
	first, second := make(chan error, 1), make(chan error, 1)
	run := func(p *plane, done chan<- error) {
		refusal, _, err := p.service(ctx)
		if refusal != nil {
			err = errors.New(refusal.Reason)
		}
		done <- err
	}
	go run(blue, first)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for blue.turns.mu.TryLock() { // until it is blue's turn
		blue.turns.mu.Unlock()
		<-tick.C
	}
	go run(green, second)
	select {
	case err := <-second:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if record, err := read(green.config.Dir.PlaneRecord()); err != nil || len(record.Servers) != 1 {
		t.Errorf("%+v, %v", record.Servers, err)
	}
	blue.place.Mend(component.APIServerName(1))
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
}

// A server that drains by the word of a service before is told to end only once it is Ready again, as it may have been
// told already: a second word would break what it still answers.
func TestDrainsByAServiceBefore(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	first, end := context.WithCancel(t.Context())
	if _, _, err := p.service(first); err != nil {
		t.Fatal(err)
	}
	end()
	record, err := read(p.config.Dir.PlaneRecord())
	if err != nil {
		t.Fatal(err)
	}
	p.change(1)
	second, end := context.WithTimeout(t.Context(), 30*time.Second)
	defer end()
	r := p.rollout(p.place.New(second))
	record.Servers[0].Phase = Draining
	record.Servers = append(record.Servers, Server{Slot: 1, Phase: Serving, Spec: r.wanted.Servers[1]})
	r.record = record
	p.place.Break(component.APIServer, "it ends")
	if err := r.Begin(second); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := r.Run(second)
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("it went on beside a server that ends: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if ends := p.place.Ends(); slices.Contains(ends, "cluster/blue/kube-apiserver") || p.told() != "20001 drains, 20002" {
		t.Errorf("%v ended; the front knows %s", ends, p.told())
	}
	p.place.Mend(component.APIServer)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if ends := p.place.Ends(); !slices.Contains(ends, "cluster/blue/kube-apiserver") || p.told() != "20002" {
		t.Errorf("%v ended; the front knows %s", ends, p.told())
	}
}
