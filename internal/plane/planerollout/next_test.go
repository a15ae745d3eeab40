// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/release"
)

// minors are those of the versions that a plane of these tests is wanted to be of: an upgrade or a rollback is between the
// first two, and a change of flags between the last two.
var minors = []string{"1.36", "1.37", "1.37"}

// version is what is wanted when the plane is to be of a version.
func version(n int) Wanted { return replicas(n, 1) }

// replicas is the same with a number of API servers.
func replicas(n, servers int) Wanted {
	w := Wanted{Replicas: servers}
	args, folder := []string{fmt.Sprintf("--version=%d", n)}, "/bin/"+minors[n]
	for slot := range component.APIServers {
		w.Servers = append(w.Servers, component.Spec{Name: component.APIServerName(slot), Path: folder + "/kube-apiserver", Args: args})
	}
	w.Followers = []component.Spec{{Name: component.ControllerManager, Path: folder + "/kube-controller-manager", Args: args}}
	return w
}

// state is where an exploration is: what is recorded and wanted, and how the API servers are, by slot, and the follower.
type state struct {
	record          Record
	wanted, servers int
	refused         bool
	statuses        [component.APIServers]runner.Status
	follower        runner.Status
}

func (s state) key() string {
	var key strings.Builder
	fmt.Fprint(&key, s.wanted, s.servers, s.refused, s.follower.State)
	for _, spec := range slices.Concat(s.record.Followers, s.record.Before) {
		key.WriteString(spec.Args[0])
	}
	for _, status := range s.statuses {
		key.WriteString(" " + string(status.State))
	}
	for _, server := range s.record.Servers {
		fmt.Fprint(&key, " ", server.Slot, server.Phase, server.Spec.Args[0], server.Outdated)
	}
	return key.String()
}

func (s state) in(phase Phase) (servers []Server) {
	return slices.DeleteFunc(slices.Clone(s.record.Servers), func(server Server) bool { return server.Phase != phase })
}

// Every state that is reached by any order of changes of what is wanted, ends of servers, servers that become Ready or
// never do, and restarts of the service, with a program that was replaced or without: as many API servers serve as
// before until others are Ready, the follower is never newer than a server that serves, and each state comes to an end.
func TestEveryState(t *testing.T) {
	t.Parallel()
	for name, versions := range map[string][2]int{"upgrade and rollback": {0, 1}, "flags": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore(t, versions)
		})
	}
}

// explore looks at every state of a plane that is wanted to be of one of two versions.
func explore(t *testing.T, versions [2]int) {
	t.Helper()
	now := time.Unix(1000, 0)
	seen, todo := map[string]bool{}, []state{{servers: 1, wanted: versions[0]}, {servers: 2, wanted: versions[0]}}
	reach := func(s state) {
		if key := s.key(); !seen[key] {
			seen[key] = true
			todo = append(todo, s)
		}
	}
	settled := [3]map[string]bool{{}, {}, {}}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		reach(step(t, s, now))
		for _, wanted := range versions {
			for servers := range v1alpha1.MaxReplicas {
				changed := s
				changed.wanted, changed.servers, changed.refused = wanted, servers+1, false
				reach(changed)
			}
		}
		for _, status := range []runner.Status{{State: runner.Ready}, {State: runner.Backoff, Restarts: maxEnds}} {
			if s.record.Before != nil { // nothing else asks how the follower is
				other := s
				other.follower = status
				reach(other)
			}
			for _, server := range s.record.Servers { // whatever becomes of a server that runs
				if server.Phase != Draining {
					other := s
					other.statuses[server.Slot] = status
					reach(other)
				}
			}
		}
		replaced := s // the program is, and the service starts again
		replaced.record.Servers = slices.Clone(s.record.Servers)
		for i, server := range replaced.record.Servers {
			replaced.record.Servers[i].Outdated = server.Phase == Serving
		}
		reach(replaced)
		settles(t, s, now, -1, settled[0])
		for i, broken := range versions {
			settles(t, s, now, broken, settled[i+1])
		}
	}
	if len(seen) < 10000 {
		t.Errorf("%d states were reached", len(seen))
	}
	t.Logf("%d states", len(seen))
}

// step takes one step and looks at it.
func step(t *testing.T, s state, now time.Time) state {
	t.Helper()
	var statuses []runner.Status
	for slot, status := range s.statuses {
		status.Name = component.APIServerName(slot)
		statuses = append(statuses, status)
	}
	follower := s.follower
	follower.Name = component.ControllerManager
	statuses = append(statuses, follower)
	wanted := replicas(s.wanted, s.servers)
	record, reason := Next(s.record, wanted, Facts{Statuses: statuses, Refused: s.refused, Room: NewcomerMemory, Now: now})
	next := s
	next.record, next.refused = record, s.refused || reason != ""
	before, after := s.in(Serving), next.in(Serving)
	ready := func(server Server) bool { return s.statuses[server.Slot].State == runner.Ready }
	switch {
	case len(after) < min(len(before), s.servers) || len(after) > max(len(before), s.servers), len(next.in(Newcomer)) > 1, len(next.in(Draining)) > 1:
		t.Fatalf("%s:\n%+v becomes\n%+v", s.key(), s.record, record)
	case len(next.in(Draining)) > 0 && !slices.ContainsFunc(after, ready):
		t.Fatalf("%s: a server drains, and no other is Ready: %+v", s.key(), record)
	case (reason != "") != (len(s.in(Newcomer)) > len(next.in(Newcomer)) && reflect.DeepEqual(before, after) && !wanted.met(before)):
		t.Fatalf("%s: the reason %q, and %+v", s.key(), reason, record)
	case wanted.Done(s.record, s.refused) && (!reflect.DeepEqual(record.Servers, s.record.Servers) || len(before) > s.servers):
		t.Fatalf("%s: it is done, and %+v follows", s.key(), record)
	case record.check() != nil:
		t.Fatalf("%s: %v", s.key(), record.check())
	}
	for _, server := range after {
		if !slices.ContainsFunc(before, func(other Server) bool { return other.Slot == server.Slot }) && !ready(server) {
			t.Fatalf("%s: a server serves before it is Ready: %+v", s.key(), record)
		}
	}
	for _, server := range before {
		if !slices.ContainsFunc(record.Servers, func(other Server) bool { return other.Slot == server.Slot && other.Phase != Newcomer }) {
			t.Fatalf("%s: a server ends that has not drained: %+v", s.key(), record)
		}
	}
	follows(t, s, record)
	if record.Before == nil || !reflect.DeepEqual(record.Followers, s.record.Followers) {
		next.follower = runner.Status{}
	}
	for slot := range next.statuses { // a process that is new, or gone, is not Ready
		if !slices.ContainsFunc(record.Servers, func(server Server) bool {
			return server.Slot == slot && (server.Phase != Newcomer || server.Since != now)
		}) {
			next.statuses[slot] = runner.Status{}
		}
	}
	return next
}

// follows looks at what a step makes of the follower, and at how the plane says it came to its minor.
func follows(t *testing.T, s state, record Record) {
	t.Helper()
	minor := func(spec component.Spec) string { return releaseOf(spec, release.All()).Minor() }
	before, after := "", ""
	for _, server := range s.in(Serving) {
		before = max(before, minor(server.Spec))
	}
	for _, server := range s.in(Draining) {
		before = max(before, minor(server.Spec))
	}
	for _, server := range record.Servers {
		if server.Phase == Newcomer {
			continue
		}
		after = max(after, minor(server.Spec))
		if minor(record.Followers[0]) > minor(server.Spec) {
			t.Fatalf("%s: the follower is %v beside %+v", s.key(), record.Followers, server)
		}
		if server.Phase == Serving && len(s.record.Followers) > 0 && minor(s.record.Followers[0]) > minor(server.Spec) {
			t.Fatalf("%s: a server serves before the follower was taken back: %+v", s.key(), server)
		}
	}
	switch moved := !reflect.DeepEqual(record.Move, s.record.Move); {
	case moved != (before != "" && after != "" && before != after), moved && (record.Move.From != before || record.Move.To != after):
		t.Fatalf("%s: %s became %s, and the plane says %+v", s.key(), before, after, record.Move)
	case reflect.DeepEqual(record.Followers, s.record.Followers) || len(s.record.Followers) == 0:
		return
	}
	is, was := record.Followers[0], s.record.Followers[0]
	newcomers := slices.DeleteFunc(slices.Clone(record.Servers), func(server Server) bool { return server.Phase != Newcomer })
	switch {
	case reflect.DeepEqual(record.Followers, s.record.Before) && len(newcomers) == 0: // it is what it was before a rollback that failed
	case minor(is) < minor(was) && len(newcomers) == 1 && slices.Equal(newcomers[0].Spec.Args, is.Args) && s.statuses[newcomers[0].Slot].State == runner.Ready:
	case slices.ContainsFunc(record.Servers, func(server Server) bool { return !slices.Equal(server.Spec.Args, is.Args) }):
		t.Fatalf("%s: the follower becomes %v beside %+v", s.key(), is.Args, record.Servers)
	}
}

// settles takes steps in which every newcomer becomes Ready, unless it is of a version that is broken and ends again and
// again. settled are states that are known to come to an end.
func settles(t *testing.T, s state, now time.Time, broken int, settled map[string]bool) {
	t.Helper()
	walked := map[string]bool{}
	for {
		now = now.Add(time.Second)
		s.follower = runner.Status{State: runner.Ready}
		for _, server := range s.record.Servers {
			s.statuses[server.Slot] = runner.Status{State: runner.Ready}
			if server.Phase == Newcomer && server.Spec.Args[0] == fmt.Sprintf("--version=%d", broken) {
				s.statuses[server.Slot] = runner.Status{State: runner.Backoff, Restarts: maxEnds}
			}
		}
		key := s.key()
		if settled[key] {
			break
		}
		if walked[key] {
			t.Fatalf("it does not settle: %s", key)
		}
		walked[key] = true
		next := step(t, s, now)
		if !reflect.DeepEqual(next.record, s.record) || next.refused != s.refused {
			s = next
			continue
		}
		switch done := replicas(s.wanted, s.servers).Done(s.record, s.refused); {
		case done && s.refused: // the change before is kept
		case done && slices.Equal(s.record.Servers[0].Spec.Args, s.record.Followers[0].Args):
		case !done && s.wanted == broken && len(s.record.Servers) == 1 && s.record.Servers[0].Phase == Newcomer: // there is nothing to go back to
		default:
			t.Fatalf("it stays %s", key)
		}
		break
	}
	maps.Copy(settled, walked)
}

// A newcomer is given up by what it does, and by the time it takes.
func TestHopeless(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	wanted := version(1)
	is := Record{Followers: version(0).Followers, Servers: []Server{
		{Slot: 0, Phase: Serving, Spec: version(0).Servers[0]}, {Slot: 1, Phase: Newcomer, Spec: wanted.Servers[1], Since: began},
	}}
	for name, test := range map[string]struct {
		status runner.Status
		after  time.Duration
		want   string
	}{
		"it starts":               {runner.Status{State: runner.Starting}, patience, ""},
		"it ended twice":          {runner.Status{State: runner.Backoff, Restarts: 2}, time.Second, ""},
		"it ended three times":    {runner.Status{State: runner.Backoff, Restarts: 3, Message: "it ended; see its log x"}, time.Second, "it ended 3 times: it ended; see its log x"},
		"it takes long":           {runner.Status{State: runner.Starting, Message: "it answers 500"}, patience + 1, "it was not Ready within 3m0s: it answers 500"},
		"it is Ready, after long": {runner.Status{State: runner.Ready, Restarts: 7}, time.Hour, ""},
	} {
		test.status.Name = component.APIServerName(1)
		next, reason := Next(is, wanted, Facts{Statuses: []runner.Status{test.status}, Now: began.Add(test.after)}) // without room for another
		if reason != test.want {
			t.Errorf("%s: %q, want %q", name, reason, test.want)
		}
		if gone := len(next.Servers) == 1; gone != (test.want != "") || strings.Contains(name, "Ready") != (next.Servers[0].Phase == Draining) {
			t.Errorf("%s: %+v", name, next.Servers)
		}
	}
}

// No newcomer is started beside a server that serves where there is no memory for both; the first server of a cluster is.
func TestRoom(t *testing.T) {
	t.Parallel()
	serving := []Server{{Slot: 0, Phase: Serving, Spec: version(0).Servers[0]}}
	for name, test := range map[string]struct {
		servers []Server
		room    int64
		refused bool
		starts  bool
		want    string
	}{
		"room":         {serving, NewcomerMemory, false, true, ""},
		"not known":    {serving, -1, false, true, ""},
		"no room":      {serving, NewcomerMemory - 1, false, false, "it was not started: the host has 399 MiB of memory available, and one more API server needs 400 MiB while it takes over: stop other programs, or use a host with more memory"},
		"nothing":      {serving, 0, false, false, "it was not started: the host has 0 MiB of memory available, and one more API server needs 400 MiB while it takes over: stop other programs, or use a host with more memory"},
		"told already": {serving, 0, true, false, ""},
		"the first":    {nil, 0, false, true, ""},
	} {
		next, reason := Next(Record{Servers: test.servers}, version(1), Facts{Refused: test.refused, Room: test.room})
		if starts := len(next.Servers) > len(test.servers); starts != test.starts || reason != test.want {
			t.Errorf("%s: it starts: %v, %q", name, starts, reason)
		}
	}
}
