// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// secretRead is a line that is kept, podRead one that is not; n makes each another one, n seconds after noon.
func secretRead(n int) string {
	return line(n, `"resource":"secrets","namespace":"default","name":"s"`, 200)
}

func podRead(n int) string { return line(n, `"resource":"pods","namespace":"default"`, 200) }

func line(n int, ref string, code int) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"%08d","stage":"ResponseComplete","requestURI":"/api","verb":"get","user":{"username":"ann"},`+
		`"objectRef":{%s,"apiVersion":"v1"},"responseStatus":{"metadata":{},"code":%d},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`+"\n",
		n, ref, code, noon.Add(time.Duration(n)*time.Second).Format(micro), noon.Add(time.Duration(n)*time.Second).Format(micro))
}

const micro = "2006-01-02T15:04:05.000000Z07:00"

// world is an API server's log and what is kept of it.
type world struct {
	*testing.T
	log, kept string
	splitter  *Splitter
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	return &world{T: t, log: filepath.Join(dir, "audit.log"), kept: filepath.Join(dir, "security.log")}
}

func (w *world) write(lines ...string) {
	w.Helper()
	file, err := os.OpenFile(w.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := file.WriteString(strings.Join(lines, "")); err != nil {
		w.Fatal(err)
	}
	if err := file.Close(); err != nil {
		w.Fatal(err)
	}
}

// rotate does what the API server does.
func (w *world) rotate(n int) {
	w.Helper()
	if err := os.Rename(w.log, w.backup(n)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) backup(n int) string {
	return strings.TrimSuffix(w.log, ".log") + fmt.Sprintf("-2026-11-24T12-00-%02d.000.log", n)
}

// restart makes a splitter that knows nothing but the files.
func (w *world) restart(part int64, parts int) {
	w.Helper()
	if w.splitter != nil {
		w.splitter.reset()
	}
	s, err := New(Config{Path: w.log, Kept: w.kept, Part: part, Parts: parts, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(s.reset)
	w.splitter = s
}

func (w *world) look() {
	w.Helper()
	if w.splitter == nil {
		w.restart(0, 0)
	}
	if err := w.splitter.look(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// content is that of the kept file and its older parts.
func (w *world) content() string {
	w.Helper()
	found, err := parts(w.kept)
	if err != nil {
		w.Fatal(err)
	}
	var all bytes.Buffer
	for _, p := range found {
		raw, err := os.ReadFile(p.path)
		if err != nil {
			w.Fatal(err)
		}
		if mode := p.info.Mode(); mode != 0o600 {
			w.Errorf("%s has mode %s", p.path, mode)
		}
		all.Write(raw)
	}
	return all.String()
}

func (w *world) expect(want ...string) {
	w.Helper()
	if got := w.content(); got != strings.Join(want, "") {
		w.Fatalf("got:\n%s\nwant:\n%s", got, strings.Join(want, ""))
	}
}

func TestSplitterCopiesWhatGrows(t *testing.T) {
	w := newWorld(t)
	w.look() // nothing is there yet
	w.write(podRead(0), secretRead(1), podRead(2), secretRead(3)[:40])
	w.look()
	w.expect(secretRead(1))
	w.write(secretRead(3)[40:], podRead(4), secretRead(5))
	w.look()
	w.look()
	w.expect(secretRead(1), secretRead(3), secretRead(5))
	if got := w.splitter.State(); got.Lost || !got.Whole.Equal(noon.Add(time.Second)) {
		t.Errorf("state: %+v", got)
	}
}

// A crash may leave any beginning of what was written. Nothing is missing after it, and nothing is there twice.
func TestSplitterGoesOnAfterACrash(t *testing.T) {
	w := newWorld(t)
	w.write(podRead(0), secretRead(1), secretRead(2))
	w.rotate(1)
	w.write(podRead(3), secretRead(4))
	w.look()
	whole := w.content()
	for cut := range len(whole) {
		w.splitter.reset()
		if err := os.WriteFile(w.kept, []byte(whole[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		w.restart(0, 0)
		w.look()
		if got := w.content(); got != whole {
			t.Fatalf("cut at %d:\n%s", cut, got)
		}
	}
}

func TestSplitterReadsPartsThatWereRotatedMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.write(secretRead(0))
	w.look()
	var want []string
	want = append(want, secretRead(0))
	for i := 1; i <= 4; i++ {
		w.write(secretRead(i), podRead(100+i))
		w.rotate(i)
		want = append(want, secretRead(i))
	}
	w.look() // while there is no file of the log's name
	w.expect(want...)
	w.write(secretRead(9))
	w.look()
	w.expect(append(want, secretRead(9))...)
	if w.splitter.State().Lost {
		t.Error("lines count as lost")
	}
}

// Lines that were rotated away unread are missing, and the log says so.
func TestSplitterSaysWhatIsMissing(t *testing.T) {
	for _, away := range []bool{true, false} { // the service was away, or only slow
		w := newWorld(t)
		w.write(secretRead(0))
		w.look()
		w.write(secretRead(1))
		w.rotate(1)
		w.write(secretRead(2))
		w.rotate(2)
		w.write(secretRead(3))
		if away {
			w.restart(0, 0)
		}
		for n := range 2 {
			if err := os.Remove(w.backup(n + 1)); err != nil {
				t.Fatal(err)
			}
		}
		w.look()
		lines := strings.SplitAfter(w.content(), "\n")
		if !away { // it still had the file open that was removed
			lines = append(lines[:1], lines[2:]...)
		}
		var g gap
		if len(lines) != 4 || lines[2] != secretRead(3) || json.Unmarshal([]byte(lines[1]), &g) != nil || g.Kind != "Gap" {
			t.Fatalf("away %t: %q", away, lines)
		}
		whole := w.splitter.State()
		if !whole.Lost || whole.Whole.Before(noon.Add(3*time.Second)) || away && !whole.Whole.Equal(noon.Add(3*time.Second)) {
			t.Errorf("away %t: %+v", away, whole)
		}
		w.restart(0, 0)
		w.look()
		if got := w.splitter.State(); got != whole {
			t.Errorf("away %t: after a restart: %+v, before: %+v", away, got, whole)
		}
	}
}

// The file never has more than its size, whatever is written, and says since when it is whole.
func TestSplitterKeepsItsSize(t *testing.T) {
	w := newWorld(t)
	const part, count = 4096, 3
	w.restart(part, count)
	n := 0
	for ; n < 60; n++ {
		w.write(secretRead(n))
		w.look()
	}
	found, err := parts(w.kept)
	if err != nil || len(found) != count {
		t.Fatalf("%d parts, %v", len(found), err)
	}
	for _, p := range found {
		if p.info.Size() > part {
			t.Errorf("%s has %d bytes", p.path, p.info.Size())
		}
	}
	lines := strings.SplitAfter(w.content(), "\n")
	first, ok := decode([]byte(strings.TrimSpace(lines[0])))
	if !ok || lines[len(lines)-2] != secretRead(n-1) {
		t.Fatalf("first %q, last %q", lines[0], lines[len(lines)-2])
	}
	state := w.splitter.State()
	if !state.Lost || !state.Whole.Equal(first.Reached) || first.Reached.Equal(noon) {
		t.Errorf("state %+v, the first line is of %s", state, first.Reached)
	}
	if !state.Short(noon.Add(24*time.Hour)) || state.Short(noon.Add(25*time.Hour)) {
		t.Error("whether it reaches back a day is wrong")
	}
	w.restart(part, count)
	w.look()
	if got := w.splitter.State(); got != state {
		t.Errorf("after a restart: %+v, before: %+v", got, state)
	}
}

// A write that fails loses no line.
func TestSplitterAfterAFailedWrite(t *testing.T) {
	w := newWorld(t)
	w.write(secretRead(0))
	w.look()
	w.write(secretRead(1))
	_ = w.splitter.store.file.Close()
	if err := w.splitter.look(t.Context()); err == nil {
		t.Fatal("a write that failed is not told")
	}
	w.splitter.reset()
	w.write(secretRead(2))
	w.look()
	w.expect(secretRead(0), secretRead(1), secretRead(2))
}

// A full disk may cut off a line of the API server's, which then has the next one behind it.
func TestSplitterReadsTheLineAfterHalfALine(t *testing.T) {
	w := newWorld(t)
	w.write(secretRead(0)[:90], secretRead(1), secretRead(2))
	w.look()
	w.restart(0, 0)
	w.look()
	w.expect(secretRead(1), secretRead(2))
}

func TestSplitterAfterSomebodyEmptiedTheLog(t *testing.T) {
	w := newWorld(t)
	w.write(secretRead(0), podRead(1), podRead(2))
	w.look()
	if err := os.Truncate(w.log, 0); err != nil {
		t.Fatal(err)
	}
	w.write(secretRead(3))
	w.look()
	w.expect(secretRead(0), secretRead(3))
}
