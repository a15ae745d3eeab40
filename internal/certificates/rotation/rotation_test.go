// SPDX-License-Identifier: Apache-2.0

package rotation_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/certificates/rotation"
)

// berlin is not UTC, and the clock has a monotonic reading, as a service's has.
var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("berlin", 3600))

func certificate(authority string, ends time.Duration) *rotation.Certificate {
	return &rotation.Certificate{Authority: authority, Ends: start.Add(ends)}
}

func nodes(client, serving string) []rotation.Node {
	return []rotation.Node{
		{Name: "a", Client: certificate("new", time.Hour), Serving: certificate("new", time.Hour)},
		{Name: "b", Client: certificate(client, time.Hour), Serving: certificate(serving, 2*time.Hour)},
		{Name: "joining"},
	}
}

// kept is the rotation as the next process finds it after a kill.
func kept(t *testing.T, r rotation.Rotation) rotation.Rotation {
	t.Helper()
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again rotation.Rotation
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	if again != r {
		t.Fatalf("kept as %+v, it was %+v", again, r)
	}
	return again
}

// TestWholeRotation kills the process that moves it on after every single look.
func TestWholeRotation(t *testing.T) {
	old := rotation.Observation{Nodes: nodes("old", "old")}
	fresh := rotation.Observation{Nodes: nodes("new", "new")}
	with := func(o rotation.Observation, pending ...string) rotation.Observation {
		o.Pending = pending
		return o
	}
	r := rotation.Start("old", "new", start)
	for i, look := range []struct {
		at     time.Duration
		seen   rotation.Observation
		phase  rotation.Phase
		signs  string
		trusts string
		says   string
	}{
		{0, with(old, "x has not read"), rotation.Trust, "old", "old new", "x has not read"},
		{24 * time.Hour, with(old, "x", "y"), rotation.Trust, "old", "old new", "x; y"}, // time alone does not suffice
		{25 * time.Hour, old, rotation.Replace, "new", "old new", ""},
		{25 * time.Hour, old, rotation.Replace, "new", "old new", "every node"}, // they have ended by then
	} {
		var waits string
		r, waits = kept(t, r).Next(look.seen, start.Add(look.at))
		if r.Phase != look.phase || r.Signs() != look.signs || strings.Join(r.Trusts(), " ") != look.trusts || !strings.HasPrefix(waits, look.says) {
			t.Fatalf("look %d: %s, %s signs, %v are trusted, waits for %q", i, r.Phase, r.Signs(), r.Trusts(), waits)
		}
	}

	r = rotation.Start("old", "new", start)
	step := func(at time.Duration, seen rotation.Observation, phase rotation.Phase, says string) {
		t.Helper()
		var waits string
		r, waits = kept(t, r).Next(seen, start.Add(at))
		if r.Phase != phase || !strings.Contains(waits, says) || (says == "") != (waits == "") {
			t.Fatalf("after %s it is in %s and waits for %q", at, r.Phase, waits)
		}
	}
	step(time.Second, old, rotation.Replace, "")
	if r.Signs() != "new" || !slices.Equal(r.Trusts(), []string{"old", "new"}) {
		t.Errorf("while nodes renew, %s signs and %v are trusted", r.Signs(), r.Trusts())
	}
	step(2*time.Second, old, rotation.Replace, "1 have a client and 1 a serving")
	step(3*time.Second, rotation.Observation{Nodes: nodes("new", "old")}, rotation.Replace, "0 have a client and 1 a serving")
	step(4*time.Second, fresh, rotation.Replace, "until 2026-11-20T11:06:04Z")
	step(5*time.Minute, fresh, rotation.Replace, "may last")
	step(6*time.Minute, old, rotation.Replace, "1 have a client") // an old disk has come back: the grace begins anew
	step(7*time.Minute, fresh, rotation.Replace, "until 2026-11-20T11:13:00Z")
	step(8*time.Minute, rotation.Observation{Unseen: errors.New("no disk")}, rotation.Replace, "no disk")
	step(9*time.Minute, fresh, rotation.Replace, "until 2026-11-20T11:15:00Z")
	step(14*time.Minute+59*time.Second, fresh, rotation.Replace, "may last")
	step(15*time.Minute, with(fresh, "x has not read"), rotation.Replace, "x has not read")
	step(15*time.Minute, fresh, rotation.Withdraw, "")
	if r.Signs() != "new" || !slices.Equal(r.Trusts(), []string{"new"}) {
		t.Errorf("in the end %s signs and %v are trusted", r.Signs(), r.Trusts())
	}
	step(16*time.Minute, with(fresh, "x still trusts old"), rotation.Withdraw, "x still trusts")
	step(17*time.Minute, fresh, rotation.Done, "")
	if !r.Started.Equal(start) || !r.Since.Equal(start.Add(17*time.Minute)) {
		t.Errorf("started %s, done %s", r.Started, r.Since)
	}
}

// A rotation that is held goes on when it is told to, and not before. A distributed authority stays distributed.
func TestHolds(t *testing.T) {
	const hour = 7 * time.Minute // certificates of nodes end after a real one
	all, pending := rotation.Observation{Nodes: nodes("new", "new")}, rotation.Observation{Nodes: nodes("new", "new"), Pending: []string{"x has not read"}}
	r := rotation.Start("old", "new", start)
	r.Hold = rotation.HoldActivation
	step := func(at time.Duration, seen rotation.Observation, phase rotation.Phase, says string) {
		t.Helper()
		var waits string
		if r, waits = kept(t, r).Next(seen, start.Add(at)); r.Phase != phase || !strings.Contains(waits, says) {
			t.Fatalf("after %s it is in %s and waits for %q", at, r.Phase, waits)
		}
	}
	step(time.Second, pending, rotation.Trust, "x has not read")
	if r.Resting() {
		t.Error("it rests before it is distributed")
	}
	step(hour, all, rotation.Trust, "which signs once it is activated")
	step(2*hour, pending, rotation.Trust, "which signs once it is activated")
	if !r.Resting() || r.Signs() != "old" || !r.Distributed.Equal(start.Add(hour)) {
		t.Errorf("%+v", r)
	}
	abandoned := r.Abandon(start.Add(3 * hour))
	if abandoned.Phase != rotation.Withdraw || abandoned.Signs() != "old" || !slices.Equal(abandoned.Trusts(), []string{"old"}) || abandoned.Old != "new" {
		t.Errorf("given up it is %+v", abandoned)
	}
	r.Hold = rotation.HoldRemoval
	step(3*hour, pending, rotation.Replace, "")
	step(4*hour, rotation.Observation{Nodes: nodes("old", "new")}, rotation.Replace, "1 have a client")
	if r.Removable(start.Add(5 * hour)) {
		t.Error("it is removable while a node uses it")
	}
	step(5*hour, all, rotation.Replace, "may last")
	if r.Removable(start.Add(5*hour+rotation.Grace-time.Second)) || !r.Removable(start.Add(5*hour+rotation.Grace)) {
		t.Error("it is removable before the grace is over, or not after")
	}
	step(6*hour, all, rotation.Replace, "is trusted until it is deleted")
	r.Hold = ""
	step(7*hour, pending, rotation.Replace, "x has not read")
	step(8*hour, all, rotation.Withdraw, "")
}

// A clock that is set back must not make the grace end early, nor never.
func TestClockSetBack(t *testing.T) {
	r, _ := rotation.Start("old", "new", start).Next(rotation.Observation{}, start)
	r, _ = r.Next(rotation.Observation{}, start.Add(time.Hour))
	r, _ = r.Next(rotation.Observation{}, start)
	if r, _ := r.Next(rotation.Observation{}, start.Add(rotation.Grace-time.Second)); r.Phase != rotation.Replace {
		t.Errorf("it is in %s before the grace is over", r.Phase)
	}
	if r, _ := r.Next(rotation.Observation{}, start.Add(rotation.Grace)); r.Phase != rotation.Withdraw {
		t.Errorf("it is in %s after the grace", r.Phase)
	}
}

func TestProgress(t *testing.T) {
	r := rotation.Start("old", "new", start)
	all := append(nodes("old", "old"), rotation.Node{Name: "c", Client: certificate("old", -time.Second), Serving: certificate("", time.Hour)})
	for at, want := range map[time.Duration]rotation.Progress{
		0:                         {Nodes: 4, Client: 1, Serving: 1, Until: start.Add(2 * time.Hour)},
		time.Hour:                 {Nodes: 4, Serving: 1, Until: start.Add(2 * time.Hour)},
		2*time.Hour - time.Second: {Nodes: 4, Serving: 1, Until: start.Add(2 * time.Hour)},
		2 * time.Hour:             {Nodes: 4},
		-time.Minute:              {Nodes: 4, Client: 2, Serving: 1, Until: start.Add(2 * time.Hour)},
	} {
		if diff := cmp.Diff(want, r.Progress(all, start.Add(at))); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", at, diff)
		}
	}
}
