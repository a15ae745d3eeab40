// SPDX-License-Identifier: Apache-2.0

package logrouter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/node/fluentbit"
)

const container = "web-0_shop_app-0123456789012345678901234567890123456789012345678901234567890123.log"

// sink keeps events by stream, or fails.
type sink struct {
	fails error
	puts  map[string][]string
	calls int
}

func (s *sink) Put(_ context.Context, _ fluentbit.Output, stream string, events []Event) error {
	s.calls++
	if s.fails != nil {
		return s.fails
	}
	for _, e := range events {
		s.puts[stream] = append(s.puts[stream], e.Message)
	}
	return nil
}

// testWorld is a machine with the log of one container.
type testWorld struct {
	t      *testing.T
	config Config
	sink   *sink
	file   string
	said   strings.Builder
	now    time.Time
	*Router
}

func newWorld(t *testing.T, outputs string) *testWorld {
	t.Helper()
	dir := t.TempDir()
	w := &testWorld{t: t, sink: &sink{puts: map[string][]string{}}, file: filepath.Join(dir, "pods", "0.log"), now: time.Unix(1_800_000_000, 0)}
	for _, made := range []string{"containers", "pods"} {
		if err := os.Mkdir(filepath.Join(dir, made), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(w.file, filepath.Join(dir, "containers", container)); err != nil {
		t.Fatal(err)
	}
	rules, err := fluentbit.Read(fluentbit.Text{Output: outputs}, "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	w.config = Config{
		Rules: rules, Dir: filepath.Join(dir, "containers"), Record: filepath.Join(dir, "record.json"), Sink: w.sink,
		Log: slog.New(slog.NewTextHandler(&w.said, nil)), now: func() time.Time { return w.now },
	}
	w.restart()
	return w
}

func outputs(names ...string) string {
	text := ""
	for _, name := range names {
		text += "[OUTPUT]\n  Name cloudwatch\n  Match *\n  region us-east-1\n  log_group_name g\n  log_stream_name " + name + "\n  log_key log\n"
	}
	return text
}

// restart is what a kill of the agent leaves: the files.
func (w *testWorld) restart() {
	w.t.Helper()
	router, err := New(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Router = router
}

func (w *testWorld) write(text string) {
	w.t.Helper()
	f, err := os.OpenFile(w.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *testWorld) expect(stream string, want ...string) {
	w.t.Helper()
	w.round(w.t.Context())
	if got := w.sink.puts[stream]; !slices.Equal(got, want) {
		w.t.Errorf("%s has %q, want %q", stream, got, want)
	}
}

// Each line is there once, whatever is killed and rotated between two rounds.
func TestEachLineOnce(t *testing.T) {
	w := newWorld(t, outputs("s"))
	w.expect("s")
	w.write("a\nb\nhalf")
	w.expect("s", "a", "b")
	w.restart()
	w.write(" a line\n\n")
	w.expect("s", "a", "b", "half a line")
	w.write("before\n")
	if err := os.Rename(w.file, w.file+".20261130-120000"); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.expect("s", "a", "b", "half a line") // there is no newer file yet
	w.write("after\n")
	w.expect("s", "a", "b", "half a line", "before", "after")
	w.restart()
	w.expect("s", "a", "b", "half a line", "before", "after")
	// A file that was compressed meanwhile cannot be read: the newer one is.
	for _, path := range []string{w.file, w.file + ".20261130-120000"} {
		if err := os.Rename(path, path+".gone"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".gone", filepath.Join(t.TempDir(), "x")); err != nil {
			t.Fatal(err)
		}
	}
	w.write("later\n")
	w.expect("s", "a", "b", "half a line", "before", "after", "later")
	if err := os.Remove(filepath.Join(w.Dir, container)); err != nil {
		t.Fatal(err)
	}
	if w.expect("s", "a", "b", "half a line", "before", "after", "later"); len(w.positions) != 0 {
		t.Errorf("the record has %v of a container that is gone", w.positions)
	}
}

// The kubelet removes the log of a container with the pod: lines that were not read yet are in the file that is open.
func TestLastLinesOfAContainer(t *testing.T) {
	w := newWorld(t, outputs("s"))
	w.write("a\n")
	w.expect("s", "a")
	w.write("b\nlast")
	for _, path := range []string{filepath.Join(w.Dir, container), w.file} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	w.sink.fails = errors.New("away")
	w.expect("s", "a")
	w.sink.fails = nil
	w.now = w.now.Add(retryInterval)
	w.expect("s", "a", "b", "last")
	if w.expect("s", "a", "b", "last"); len(w.positions)+len(w.held)+len(w.waiting) != 0 {
		t.Errorf("%v, %v and %v are left", w.positions, w.held, w.waiting)
	}
}

// Lines wait while they are not taken, also when the agent is killed meanwhile. Of two outputs the one that has taken them is not
// asked again.
func TestNotTaken(t *testing.T) {
	w := newWorld(t, outputs("s", "other"))
	w.write("a\n")
	w.sink.fails = errors.New("AccessDeniedException: no")
	for range 3 {
		w.expect("s")
	}
	if n := strings.Count(w.said.String(), "AccessDenied"); n != 1 || w.sink.calls != 1 {
		t.Errorf("%d calls, and it is said %d times:\n%s", w.sink.calls, n, w.said.String())
	}
	w.restart()
	w.expect("s")
	w.now = w.now.Add(retryInterval)
	w.sink.fails = nil
	w.expect("s", "a")
	w.expect("other", "a")

	w.write("b\n")
	second := &failsAt{sink: w.sink, at: "other"}
	w.Sink = second
	w.expect("s", "a", "b")
	second.at = ""
	w.now = w.now.Add(retryInterval)
	w.expect("s", "a", "b")
	w.expect("other", "a", "b")
}

// failsAt takes nothing of one stream.
type failsAt struct {
	*sink
	at string
}

func (f *failsAt) Put(ctx context.Context, to fluentbit.Output, stream string, events []Event) error {
	if stream == f.at {
		return errors.New("away")
	}
	return f.sink.Put(ctx, to, stream, events)
}

// Events that are refused for good are dropped and told, and later events are sent.
func TestRefusedForGood(t *testing.T) {
	w := newWorld(t, outputs("s"))
	w.write("a\n")
	w.sink.fails = &Refused{Why: "too old"}
	w.expect("s")
	w.sink.fails = nil
	w.write("b\n")
	if w.expect("s", "b"); !strings.Contains(w.said.String(), "too old") {
		t.Error(w.said.String())
	}
}

// A line that is too long is passed over, bytes that are no text are made text, and a lot of lines take several reads.
func TestLongLines(t *testing.T) {
	w := newWorld(t, outputs("s"))
	w.write("a\n" + strings.Repeat("x", longestLine+1) + "\nb\xff\n" + strings.Repeat("y", 10*longestLine))
	w.expect("s", "a", "b\uFFFD")
	w.write("\nc\n")
	w.expect("s", "a", "b\uFFFD", "c")
	var want []string
	var text strings.Builder
	for i := range 50_000 {
		line := fmt.Sprintf("line %d of many", i)
		want = append(want, line)
		text.WriteString(line + "\n")
	}
	w.sink.puts = map[string][]string{}
	w.write(text.String())
	w.expect("s", want...)
}

// The context's end is no end of what is there already.
func TestLastRound(t *testing.T) {
	w := newWorld(t, outputs("s"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.write("a\n")
	w.Run(ctx)
	if got := w.sink.puts["s"]; !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q", got)
	}
}

// A damaged record is begun anew, and a file that is no file keeps no other from being read.
func TestDamage(t *testing.T) {
	w := newWorld(t, outputs("s"))
	if err := os.WriteFile(w.Record, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(w.Dir, "a.log")); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.write("a\n")
	if w.expect("s", "a"); !strings.Contains(w.said.String(), "is no file") {
		t.Error(w.said.String())
	}
}

// Batches keep to the limits of PutLogEvents.
func TestBatches(t *testing.T) {
	at := time.Unix(0, 0)
	many := make([]Event, mostEvents+1)
	for i := range many {
		many[i] = Event{at, "x"}
	}
	long := strings.Repeat("x", mostText+5)
	for name, c := range map[string]struct {
		events []Event
		want   []int
	}{
		"none": {nil, nil}, "many": {many, []int{mostEvents, 1}}, "long": {[]Event{{at, long}, {at, long}, {at, long}, {at, long}, {at, long}}, []int{3, 2}},
		"a day": {[]Event{{at, "x"}, {at.Add(batchSpan - 1), "x"}, {at.Add(batchSpan), "x"}}, []int{2, 1}},
	} {
		var got []int
		for _, batch := range batches(c.events) {
			got = append(got, len(batch))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
