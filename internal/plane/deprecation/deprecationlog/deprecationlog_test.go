// SPDX-License-Identifier: Apache-2.0

package deprecationlog

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/plane/auditlog"
	"muster.dev/muster/internal/plane/deprecation"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// world is a cluster with two API servers, and a service that is started again for each look.
type world struct {
	*testing.T
	dir string
	now time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t, t.TempDir(), noon}
}

func (w *world) log(slot int) string { return filepath.Join(w.dir, fmt.Sprintf("audit-%d.log", slot)) }

func (w *world) counter() *Counter {
	c := New(Config{Logs: map[string]string{"a": w.log(0), "b": w.log(1)}, Path: filepath.Join(w.dir, "counts.json"), Log: slog.New(slog.DiscardHandler)})
	c.now = func() time.Time { return w.now }
	return c
}

// ask adds a line to the log of an API server.
func (w *world) ask(slot int, agent, resource string) {
	w.Helper()
	line := fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":%q,"stage":"ResponseComplete","userAgent":%q,"objectRef":{"apiGroup":"g","apiVersion":"v1beta1","resource":%q},`+
		`"annotations":{"k8s.io/deprecated":"true","k8s.io/removed-release":"1.40"},"stageTimestamp":%q}`+"\n", w.now.String()+strings.Repeat("x", 200), agent, resource, w.now.Format("2006-01-02T15:04:05.000000Z07:00"))
	file, err := os.OpenFile(w.log(slot), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.Fatal(err)
	}
	_, err = file.WriteString(line)
	if err := errors.Join(err, file.Close()); err != nil {
		w.Fatal(err)
	}
}

func (w *world) seen(c *Counter) Seen {
	w.Helper()
	seen, err := c.Seen(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return seen
}

func told(s Seen) string {
	var all []string
	for _, a := range s.Asked {
		for _, c := range a.Clients {
			all = append(all, fmt.Sprintf("%s %s %d/%d", a.API.Resource, c.UserAgent, c.Requests, a.API.Requests))
		}
	}
	return strings.Join(all, ", ")
}

// Requests of all API servers are counted once, by the client, whenever the service is started again, and for 30 days.
func TestCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if seen := w.seen(w.counter()); len(seen.Asked) > 0 || !seen.Since.Equal(noon) {
		t.Errorf("%+v", seen)
	}
	w.ask(0, "kubectl", "r")
	w.ask(0, "old", "r")
	w.ask(1, "old", "r") // the API server that took its place
	w.ask(1, "old", "s")
	want := Seen{Since: noon, Asked: []Asked{
		{deprecation.API{Group: "g", Version: "v1beta1", Resource: "r", Removed: "1.40", Requests: 3}, []Client{{"old", 2, noon}, {"kubectl", 1, noon}}},
		{deprecation.API{Group: "g", Version: "v1beta1", Resource: "s", Removed: "1.40", Requests: 1}, []Client{{"old", 1, noon}}},
	}}
	running := w.counter()
	for range 2 {
		if diff := cmp.Diff(want, w.seen(running)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want, w.seen(w.counter())); diff != "" {
			t.Errorf("after a restart: %s", diff)
		}
	}
	w.now = noon.Add(29 * 24 * time.Hour)
	w.ask(0, "old", "r")
	if got := told(w.seen(running)); got != "r old 3/4, r kubectl 1/4, s old 1/1" {
		t.Error(got)
	}
	w.now = noon.Add(30 * 24 * time.Hour)
	if seen := w.seen(running); told(seen) != "r old 1/1" || !seen.Since.Equal(noon.Add(12*time.Hour)) { // the day of the others is forgotten
		t.Errorf("%s, since %s", told(seen), seen.Since)
	}
	w.now = noon.Add(70 * 24 * time.Hour)
	if seen := w.seen(w.counter()); told(seen) != "" || !seen.Since.Equal(w.now.Add(12*time.Hour-Window)) {
		t.Errorf("%s, since %s", told(seen), seen.Since)
	}
}

// A service that is killed before it has written counts, or after, counts each request once.
func TestKilledCounter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(0, "old", "r")
	c := w.counter()
	w.seen(c)
	w.ask(0, "old", "r")
	if err := c.read(t.Context()); err != nil || c.saved { // and is killed
		t.Fatal(err, c.saved)
	}
	if got := told(w.seen(w.counter())); got != "r old 2/2" {
		t.Error(got)
	}
	// A disk that takes no file: nothing is told, and nothing is counted twice.
	c = w.counter()
	w.ask(0, "old", "r")
	c.config.Path = filepath.Join(w.dir, "none", "counts.json")
	if _, err := c.Seen(t.Context()); err == nil {
		t.Error("it was written to a folder that is not there")
	}
	c.config.Path = filepath.Join(w.dir, "counts.json")
	if got := told(w.seen(c)); got != "r old 3/3" {
		t.Error(got)
	}
}

// Since comes after requests that were forgotten while the clock was ahead; a clock that is behind for a while has nothing
// forgotten, and claims no more than was known.
func TestClockThatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(0, "old", "r")
	w.seen(w.counter())
	w.now = noon.Add(-100 * 24 * time.Hour)
	if seen := w.seen(w.counter()); told(seen) != "r old 1/1" || !seen.Since.Equal(w.now) {
		t.Errorf("behind: %s, since %s", told(seen), seen.Since)
	}
	w.now = noon.Add(time.Hour)
	if seen := w.seen(w.counter()); told(seen) != "r old 1/1" || !seen.Since.Equal(noon) {
		t.Errorf("right again: %s, since %s", told(seen), seen.Since)
	}
	w.now = noon.Add(100 * 24 * time.Hour)
	w.seen(w.counter())
	w.now = noon.Add(2 * time.Hour)
	if seen := w.seen(w.counter()); told(seen) != "" || !seen.Since.Equal(w.now) {
		t.Errorf("it was ahead: %s, since %s", told(seen), seen.Since)
	}
	w.ask(0, "new", "r")
	w.now = noon.Add(3 * time.Hour)
	if seen := w.seen(w.counter()); told(seen) != "r new 1/1" || !seen.Since.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("later: %s, since %s", told(seen), seen.Since)
	}
}

// Files that are damaged are begun anew from what the logs have.
func TestDamagedCounts(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "{", `{"counts":[null]}`, `{"counts":7}`, `[]`} {
		w := newWorld(t)
		w.ask(0, "old", "r")
		if err := os.WriteFile(filepath.Join(w.dir, "counts.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := told(w.seen(w.counter())); got != "r old 1/1" {
			t.Errorf("%q: %q", content, got)
		}
	}
}

// Lines that were rotated away unread are told by the moment from which on the counts are whole.
func TestLostLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(0, "old", "r")
	w.seen(w.counter())
	if err := os.Remove(w.log(0)); err != nil {
		t.Fatal(err)
	}
	w.now = noon.Add(time.Hour)
	w.ask(0, "new", "r")
	if seen := w.seen(w.counter()); told(seen) != "r new 1/2, r old 1/2" || !seen.Since.Equal(w.now) {
		t.Errorf("%s, since %s", told(seen), seen.Since)
	}
}

// Clients with many names do not make the counts grow without end, and all of their requests are counted.
func TestBounds(t *testing.T) {
	t.Parallel()
	c := &counts{Since: noon}
	for n := range mostCounts {
		name := fmt.Sprintf("%d-%s\xff", n, strings.Repeat("x", 2*longestName))
		for _, resource := range []string{"a", "b"} {
			if !c.add(auditlog.DeprecatedRequest{Resource: resource, UserAgent: name, At: noon}, noon) {
				t.Fatal("it was not counted")
			}
		}
	}
	seen := c.seen(noon)
	if len(c.Counts) != 2*(mostClients+1) || len(seen.Asked) != 2 || seen.Asked[0].API.Requests != mostCounts || seen.Asked[0].Clients[0].UserAgent != Others {
		t.Errorf("%d counts, %d APIs", len(c.Counts), len(seen.Asked))
	}
	for n := range 3 * mostCounts {
		c.add(auditlog.DeprecatedRequest{Resource: fmt.Sprint(n), At: noon}, noon)
	}
	if len(c.Counts) > 2*mostCounts {
		t.Errorf("%d counts", len(c.Counts))
	}
	for _, is := range c.Counts {
		if len(is.UserAgent) > longestName {
			t.Fatalf("%d bytes", len(is.UserAgent))
		}
	}
	if c.add(auditlog.DeprecatedRequest{Resource: "a", At: noon.Add(-Window)}, noon) {
		t.Error("a request from 30 days ago was counted")
	}
	if late := noon.Add(1000 * time.Hour); !c.add(auditlog.DeprecatedRequest{Resource: "a", UserAgent: "ahead", At: late}, noon) || c.forget(noon) || !c.forget(noon.Add(Window)) {
		t.Error("a clock that was ahead keeps a count for longer than 30 days")
	}
}
