// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

// version is what is wanted when the plane is to be of a version.
func version(n int) Wanted {
	var w Wanted
	args := []string{fmt.Sprintf("--version=%d", n)}
	for slot := range component.APIServers {
		w.Servers = append(w.Servers, component.Spec{Name: component.APIServerName(slot), Path: "/bin/kube-apiserver", Args: args})
	}
	w.Followers = []component.Spec{{Name: component.ControllerManager, Path: "/bin/kube-controller-manager", Args: args}}
	return w
}

// state is where an exploration is: what is recorded and wanted, and how the API servers are, by slot.
type state struct {
	record  Record
	wanted  int
	refused bool
	servers [component.APIServers]runner.Status
}

func (s state) key() string {
	key := fmt.Sprintf("%d %v %v %v;", s.wanted, s.refused, s.servers, s.record.Followers)
	for _, server := range s.record.Servers {
		key += fmt.Sprint(server.Slot, server.Phase, server.Spec.Args, server.Outdated)
	}
	return key
}

// Every state that is reached by any order of changes of what is wanted, ends of servers, servers that become Ready or
// never do, and restarts of the service: an API server that serves goes on until another one is Ready, and each state
// comes to an end.
func TestEveryState(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	seen, todo := map[string]bool{}, []state{{wanted: 0}}
	reach := func(s state) {
		if key := s.key(); !seen[key] {
			seen[key] = true
			todo = append(todo, s)
		}
	}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		next := step(t, s, now)
		reach(next)
		for wanted := range 3 {
			changed := s
			changed.wanted, changed.refused = wanted, false
			reach(changed)
		}
		for slot := range s.servers { // whatever becomes of a server that runs
			for _, status := range []runner.Status{{State: runner.Ready}, {State: runner.Unready}, {State: runner.Backoff, Restarts: maxEnds}} {
				if !slices.ContainsFunc(s.record.Servers, func(server Server) bool { return server.Slot == slot && server.Phase != Draining }) {
					continue
				}
				other := s
				other.servers[slot] = status
				reach(other)
			}
		}
		replaced := s // the program is, and the service starts again
		replaced.record.Servers = slices.Clone(s.record.Servers)
		for i, server := range replaced.record.Servers {
			replaced.record.Servers[i].Outdated = server.Phase == Serving
		}
		reach(replaced)
		settles(t, s, now)
	}
	if len(seen) < 500 {
		t.Errorf("%d states were reached", len(seen))
	}
	t.Logf("%d states", len(seen))
}

// step takes one step and looks at it.
func step(t *testing.T, s state, now time.Time) state {
	t.Helper()
	var statuses []runner.Status
	for slot, status := range s.servers {
		status.Name = component.APIServerName(slot)
		statuses = append(statuses, status)
	}
	next, reason := Next(s.record, version(s.wanted), Facts{Statuses: statuses, Refused: s.refused, Room: newcomerMemory, Now: now})
	in := func(r Record, phase Phase) (servers []Server) {
		return slices.DeleteFunc(slices.Clone(r.Servers), func(s Server) bool { return s.Phase != phase })
	}
	before, after := in(s.record, Serving), in(next, Serving)
	switch {
	case len(before) > 0 && len(after) != 1, len(after) > 1, len(in(next, Newcomer)) > 1, len(in(next, Draining)) > 1:
		t.Fatalf("%s:\n%+v becomes\n%+v", s.key(), s.record, next)
	case len(after) == 1 && (len(before) == 0 || before[0].Slot != after[0].Slot) && s.servers[after[0].Slot].State != runner.Ready:
		t.Fatalf("%s: a server serves before it is Ready: %+v", s.key(), next)
	case (reason != "") != (len(in(s.record, Newcomer)) > len(in(next, Newcomer)) && reflect.DeepEqual(before, after) && !version(s.wanted).current(before[0])):
		t.Fatalf("%s: the reason %q, and %+v", s.key(), reason, next)
	case next.check() != nil:
		t.Fatalf("%s: %v", s.key(), next.check())
	}
	for _, server := range next.Servers {
		if !reflect.DeepEqual(next.Followers, s.record.Followers) && len(s.record.Followers) > 0 && !slices.Equal(server.Spec.Args, next.Followers[0].Args) {
			t.Fatalf("%s: followers are %v beside %+v", s.key(), next.Followers, server)
		}
	}
	s.record, s.refused = next, s.refused || reason != ""
	for slot := range s.servers { // a process that is new, or gone, is not Ready
		if !slices.ContainsFunc(next.Servers, func(server Server) bool {
			return server.Slot == slot && (server.Phase != Newcomer || server.Since != now)
		}) {
			s.servers[slot] = runner.Status{}
		}
	}
	return s
}

// settles takes steps in which every newcomer becomes Ready, unless it is of version 2, which ends again and again.
func settles(t *testing.T, s state, now time.Time) {
	t.Helper()
	for range 12 {
		now = now.Add(time.Second)
		for _, server := range s.record.Servers {
			s.servers[server.Slot] = runner.Status{State: runner.Ready}
			if slices.Equal(server.Spec.Args, version(2).Servers[0].Args) && server.Phase == Newcomer {
				s.servers[server.Slot] = runner.Status{State: runner.Backoff, Restarts: maxEnds}
			}
		}
		next := step(t, s, now)
		if reflect.DeepEqual(next.record, s.record) {
			if len(s.record.Servers) == 1 && (s.refused || version(s.wanted).current(s.record.Servers[0])) && slices.Equal(s.record.Servers[0].Spec.Args, s.record.Followers[0].Args) {
				return
			}
			if s.wanted == 2 && s.record.Servers[0].Phase == Newcomer { // there is nothing to go back to
				return
			}
			if s.refused && len(s.record.Servers) == 1 { // the change before is kept
				return
			}
			t.Fatalf("it stays %s", s.key())
		}
		s = next
	}
	t.Fatalf("it does not settle: %s", s.key())
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
		"room":         {serving, newcomerMemory, false, true, ""},
		"not known":    {serving, -1, false, true, ""},
		"no room":      {serving, newcomerMemory - 1, false, false, "it was not started: the host has 399 MiB of memory available, and one more kube-apiserver needs 400 MiB while it takes over: stop other programs, or use a host with more memory"},
		"nothing":      {serving, 0, false, false, "it was not started: the host has 0 MiB of memory available, and one more kube-apiserver needs 400 MiB while it takes over: stop other programs, or use a host with more memory"},
		"told already": {serving, 0, true, false, ""},
		"the first":    {nil, 0, false, true, ""},
	} {
		next, reason := Next(Record{Servers: test.servers}, version(1), Facts{Refused: test.refused, Room: test.room})
		if starts := len(next.Servers) > len(test.servers); starts != test.starts || reason != test.want {
			t.Errorf("%s: it starts: %v, %q", name, starts, reason)
		}
	}
}
