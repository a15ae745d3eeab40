// SPDX-License-Identifier: Apache-2.0

package logshipper

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/logevent"
	"muster.dev/muster/internal/plane/logstore/logstoretest"
	"muster.dev/muster/internal/platform/statedir"
)

// long makes a line long enough for its file to be known.
var long = strings.Repeat("-", leastBeginning)

// Rows in the log store's memory are not taken for kept, not even by a new shipper that finds them there.
func TestRowsInMemoryAreNotKept(t *testing.T) {
	w := newWorld(t, false)
	w.write(long)
	w.server.Fail(func(path string) logstoretest.Fault {
		if path == "/metrics" {
			return logstoretest.Refuses
		}
		return logstoretest.None
	})
	if err := w.turn(); err == nil {
		t.Fatal("a round whose rows are in memory has succeeded")
	}
	w.restart()
	if err := w.turn(); err == nil {
		t.Fatal("rows that are there and in memory were taken for kept")
	}
	w.server.Kill()
	w.expect()
}

// Lines that are written while a log is off are not kept; lines from before and after are.
func TestSwitchedOffAndOn(t *testing.T) {
	w := newWorld(t, false)
	w.write(long)
	w.settled()
	w.source.On = false
	w.settled()
	kept := slices.Clone(w.written)
	w.write("off")
	w.settled()
	w.restart()
	w.rotate()
	w.write("off " + long)
	w.settled()
	w.source.On = true
	w.settled()
	w.written = kept
	w.write("on again")
	w.expect()
}

// Nobody who has never asked for a log gets a record of it, and nobody is asked.
func TestNobodyAsks(t *testing.T) {
	w := newWorld(t, false)
	w.source.On = false
	w.shipper.config.Ready = func() error { return errors.New("the log store was to run") }
	w.write(long)
	for range 3 {
		if err := w.turn(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(w.shipper.config.Record); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a record: %v", err)
	}
}

func TestLostLinesAreSaid(t *testing.T) {
	w := newWorld(t, true)
	w.write(long)
	w.settled()
	w.rotate()
	w.write("lost " + long)
	w.rotate()
	w.write("second " + long)
	w.rotate()
	w.written = slices.DeleteFunc(w.written, func(line string) bool { return strings.Contains(line, "lost") })
	w.write("third " + long)
	w.expect()
	if n := strings.Count(w.logged.String(), "lines of a log are gone"); n != 1 {
		t.Errorf("it was said %d times: %s", n, w.logged.String())
	}
}

// The positions of a cluster that is gone go, and others stay.
func TestPositionsOfARemovedCluster(t *testing.T) {
	w := newWorld(t, false)
	w.write(long)
	w.settled()
	if len(w.shipper.positions) != 1 {
		t.Fatalf("%v", w.shipper.positions)
	}
	if err := os.RemoveAll(filepath.Dir(w.source.Path)); err != nil {
		t.Fatal(err)
	}
	w.settled()
	if positions, err := readRecord(w.shipper.config.Record); err != nil || len(positions) != 0 {
		t.Errorf("%v %v", positions, err)
	}
}

func TestNote(t *testing.T) {
	w := newWorld(t, false)
	w.shipper.config.Ready = func() error { return errors.New("run `make logs`") }
	w.write(long)
	begin := time.Unix(1800000000, 0)
	for _, c := range []struct {
		after time.Duration
		note  string
	}{
		{0, ""}, {quiet - 1, ""}, {quiet, "logs of control planes are not kept now, and are later: run `make logs`"}, {quiet + time.Hour, "logs of control planes are not kept now, and are later: run `make logs`"},
	} {
		w.shipper.tell(t.Context(), w.turn(), begin.Add(c.after))
		if got := w.shipper.Note(); got != c.note {
			t.Errorf("after %v: %q", c.after, got)
		}
	}
	if n := strings.Count(w.logged.String(), "make logs"); n != 1 {
		t.Errorf("it was said %d times", n)
	}
	w.shipper.tell(t.Context(), nil, begin)
	if got := w.shipper.Note(); got != "" {
		t.Errorf("still %q", got)
	}
}

func TestADamagedRecordIsNotWrittenOver(t *testing.T) {
	w := newWorld(t, false)
	w.write(long)
	if err := os.WriteFile(w.shipper.config.Record, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.turn(); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("%v", err)
	}
	if raw, _ := os.ReadFile(w.shipper.config.Record); string(raw) != "{" {
		t.Errorf("it is %s", raw)
	}
}

func TestRunEnds(t *testing.T) {
	w := newWorld(t, false)
	w.write(long)
	w.shipper.config.Interval = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.shipper.Run(ctx); close(done) }()
	for n := 0; len(w.server.Disk()) == 0; n++ {
		if n == 5000 {
			t.Fatal("nothing is kept")
		}
		<-time.After(time.Millisecond)
	}
	cancel()
	<-done
	w.expect()
}

func TestStamps(t *testing.T) {
	ref := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	before := ref.Add(-time.Minute)
	for _, c := range []struct {
		line string
		want time.Time
	}{
		{"I1130 11:00:00.000000 1 x.go:1] a", ref.Add(-time.Hour)},
		{"goroutine 1 [running]:", before},
		{`{"stageTimestamp":"2026-11-30T12:30:00Z"}`, ref.Add(30 * time.Minute)},
		{`{"stageTimestamp":"2036-11-30T12:30:00Z"}`, ref},
	} {
		if got := stamp([]byte(c.line), ref, before); !got.Equal(c.want) {
			t.Errorf("%s: %v", c.line, got)
		}
	}
	if got := stamp([]byte("x"), ref, time.Time{}); !got.Equal(ref) {
		t.Errorf("%v", got)
	}
}

func TestLines(t *testing.T) {
	type got struct {
		offset int64
		line   string
		cut    bool
	}
	huge := strings.Repeat("h", logevent.MaxText+1)
	full := huge[1:]
	for _, c := range []struct {
		name, text   string
		from, budget int64
		growing      bool
		want         []got
		to           int64
	}{
		{"whole lines", "a\n\nbc\n", 0, 100, true, []got{{0, "a", false}, {2, "", false}, {3, "bc", false}}, 6},
		{"from an offset", "a\nb\n", 2, 100, true, []got{{2, "b", false}}, 4},
		{"half a line waits", "a\nb", 0, 100, true, []got{{0, "a", false}}, 2},
		{"half a line that stays so", "a\nb", 0, 100, false, []got{{0, "a", false}, {2, "b", false}}, 3},
		{"budget", "a\nb\nc\n", 0, 3, true, []got{{0, "a", false}, {2, "b", false}}, 4},
		{"the longest line", full + "\nb\n", 0, 1 << 30, true, []got{{0, full, false}, {int64(len(full)) + 1, "b", false}}, int64(len(full)) + 3},
		{"a longer line", huge + "\nb\n", 0, 1 << 30, true, []got{{0, full, true}, {int64(len(huge)) + 1, "b", false}}, int64(len(huge)) + 3},
		{"nothing", "", 0, 100, false, nil, 0},
	} {
		var all []got
		to, err := lines(strings.NewReader(c.text), c.from, c.budget, c.growing, func(offset int64, line []byte, cut bool) error {
			all = append(all, got{offset, string(line), cut})
			return nil
		})
		if err != nil || to != c.to || !slices.Equal(all, c.want) {
			t.Errorf("%s: %d %v, %d lines", c.name, to, err, len(all))
		}
	}
}

func TestSourcesOfACluster(t *testing.T) {
	c := component.Config{Dir: statedir.Dir("/state").Cluster("blue")}
	c.Cluster.Spec.Name = "Blue"
	c.Cluster.Spec.EKS.LoggingTypes = []v1alpha1.LoggingType{"audit", "scheduler"}
	on, streams := map[string]bool{}, map[string]bool{}
	for _, s := range OfCluster(c) {
		if s.Log != "000000000000:/aws/eks/Blue/cluster" || streams[s.Stream] || s.Copied == strings.Contains(s.Path, "audit.log") {
			t.Errorf("%+v", s)
		}
		streams[s.Stream] = true
		name, id, _ := cutLast(s.Stream)
		if len(id) != 32 {
			t.Errorf("%s", s.Stream)
		}
		if s.On {
			on[name] = true
		}
	}
	if len(streams) != 2*component.APIServers+3 || len(on) != 2 || !on["kube-apiserver-audit"] || !on["kube-scheduler"] {
		t.Errorf("%v %v", streams, on)
	}
}

func cutLast(stream string) (name, id string, found bool) {
	at := strings.LastIndex(stream, "-")
	return stream[:max(at, 0)], stream[at+1:], at >= 0
}
