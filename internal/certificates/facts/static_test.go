// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/certificates/policy"
)

// ear hears changes, and what is logged.
type ear struct {
	mu      sync.Mutex
	changes []Change
	log     bytes.Buffer
}

func (e *ear) hear(c Change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changes = append(e.changes, c)
}

// heard returns the changes since it was asked last.
func (e *ear) heard() []Change {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := e.changes
	e.changes = nil
	return got
}

func (e *ear) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.log.Write(p)
}

func (e *ear) logged(text string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Count(e.log.String(), text)
}

func (e *ear) logger() *slog.Logger { return slog.New(slog.NewTextHandler(e, nil)) }

// running runs a source until the test ends.
func running(t *testing.T, s Source) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// until polls what becomes true outside of bubbles.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func replace(t *testing.T, name, text string) {
	t.Helper()
	write(t, name+".new", text)
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

const (
	listA  = "machines: [{id: a, nodeName: a, addresses: [10.0.0.1]}]"
	listB  = "machines: [{id: b, nodeName: b, addresses: [10.0.0.2]}]"
	listAB = "machines: [{id: a, nodeName: a, addresses: [10.0.0.1]}, {id: b, nodeName: b}]"
)

func knows(s Source, node string) bool { return s.MachineOfNode(node).State == policy.Known }

func staticFile(t *testing.T, file string) (*StaticFile, *ear) {
	t.Helper()
	e := &ear{}
	s, err := NewStaticFile(StaticFileConfig{File: file, Poll: time.Hour, OnChange: e.hear, Logger: e.logger()})
	if err != nil {
		t.Fatal(err)
	}
	return s, e
}

func TestStaticFileIsReadAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machines.yaml")
	write(t, file, goodList)
	s, e := staticFile(t, file)
	m := s.Machine("rack-1/7")
	if m.State != policy.Known || m.Source != "static" || m.Value.NodeName != "worker-1.corp.example" || time.Since(m.At) > time.Minute {
		t.Errorf("got %+v", m)
	}
	if f := s.Owners("10.0.0.2"); !cmp.Equal(ids(f.Value), []string{"rack-1/7"}) {
		t.Errorf("owners %+v", f)
	}
	if f := s.Owners("10.0.0.3"); f.State != policy.Known || len(f.Value) > 0 {
		t.Errorf("owners %+v", f)
	}
	if f := s.MachineOfNode("c"); f.State != policy.Absent {
		t.Errorf("got %+v", f)
	}
	if got, want := s.Status(), (SourceStatus{Name: "static", Synced: true}); got != want {
		t.Errorf("status %+v", got)
	}
	if c := e.heard(); len(c) > 0 {
		t.Errorf("told before it runs: %+v", c)
	}
}

func TestStaticFileIsFollowed(t *testing.T) {
	for name, change := range map[string]func(*testing.T, string){
		"replaced": func(t *testing.T, file string) {
			t.Helper()
			replace(t, file, listB)
		},
		"written to": func(t *testing.T, file string) {
			t.Helper()
			write(t, file, listB)
		},
		"removed and made again": func(t *testing.T, file string) {
			t.Helper()
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			write(t, file, listB)
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "machines.yaml")
			write(t, file, listA)
			s, e := staticFile(t, file)
			running(t, s)
			replace(t, file, listA+"\n") // which may be seen as it begins to watch; the next one is seen by watching only
			until(t, "it watches", func() bool { return e.logged("taken over") == 1 })
			change(t, file)
			until(t, "the new list counts", func() bool { return knows(s, "b") })
			if knows(s, "a") {
				t.Error("the old list counts, too")
			}
			want := Change{Machines: []string{"a", "b"}, Nodes: []string{"a", "b"}, Names: []string{"10.0.0.1", "10.0.0.2", "a", "b"}}
			until(t, "it is told", func() bool {
				return slices.ContainsFunc(e.heard(), func(c Change) bool { return cmp.Equal(c, want) })
			})
		})
	}
}

// A kubelet updates the files of a ConfigMap's volume by pointing one symlink to another directory.
func TestStaticFileInAVolumeIsFollowed(t *testing.T) {
	volume := t.TempDir()
	version := func(name, text string) {
		if err := os.Mkdir(filepath.Join(volume, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(volume, name, "machines.yaml"), text)
		if err := os.Symlink(name, filepath.Join(volume, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(volume, "..data_tmp"), filepath.Join(volume, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..1", listA)
	file := filepath.Join(volume, "machines.yaml")
	if err := os.Symlink("..data/machines.yaml", file); err != nil {
		t.Fatal(err)
	}
	s, _ := staticFile(t, file)
	running(t, s)
	version("..2", listAB) // which may be seen as it begins to watch; the next one is seen by watching only
	until(t, "it watches", func() bool { return knows(s, "b") })
	version("..3", listB)
	until(t, "the new list counts", func() bool { return !knows(s, "a") })
}

func TestStaticFileIsLookedAtEvenIfNothingTells(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machines.yaml")
	write(t, file, listA)
	e := &ear{}
	s, err := NewStaticFile(StaticFileConfig{File: file, Poll: 10 * time.Millisecond, OnChange: e.hear, Logger: e.logger()})
	if err != nil {
		t.Fatal(err)
	}
	s.file.Watch = func(string) (*fsnotify.Watcher, error) { return nil, errors.New("no inotify") }
	running(t, s)
	until(t, "it is told", func() bool { return e.logged("no inotify") > 0 })
	replace(t, file, listB)
	until(t, "the new list counts", func() bool { return knows(s, "b") })
}

// Where all inotify instances are taken a change is seen by the next look, and a list that nobody looked at is too old
// to approve by.
func TestAListThatWasNotLookedAtIsTooOld(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machines.yaml")
	write(t, file, listA)
	e := &ear{}
	now := time.Now()
	s, err := NewStaticFile(StaticFileConfig{File: file, OnChange: e.hear, Logger: e.logger(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(5 * time.Second)
	if !knows(s, "a") {
		t.Error("it is too old already")
	}
	now = now.Add(time.Second)
	if f := s.MachineOfNode("a"); f.State != policy.Unknown || !strings.Contains(f.Why, "what it says is 6s old") || !strings.Contains(f.Why, "and may be 5s") {
		t.Errorf("not looked at for long: %+v", f)
	}
	s.look()
	if !knows(s, "a") || !cmp.Equal(e.heard(), []Change{{All: true}}) {
		t.Error("it was looked at, and does not count or was not told")
	}
	s.look() // at a version that it knows
	replace(t, file, listB)
	s.look()
	if knows(s, "a") || !knows(s, "b") {
		t.Error("another version of the same size does not count")
	}
}

func TestABadVersionOfAFileChangesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machines.yaml")
	write(t, file, listA)
	s, e := staticFile(t, file)
	running(t, s)
	replace(t, file, listB+"\nmachines: []")
	until(t, "it is told", func() bool { return s.Status().Problem != "" })
	s.look() // at the same again
	if p := s.Status().Problem; !strings.Contains(p, file) || !strings.Contains(p, "already set") || !s.HasSynced() {
		t.Errorf("problem %q", p)
	}
	if !knows(s, "a") || knows(s, "b") {
		t.Error("the last good version does not go on")
	}
	replace(t, file, listAB)
	until(t, "a good version counts", func() bool { return knows(s, "b") })
	if p := s.Status().Problem; p != "" {
		t.Errorf("problem %q", p)
	}
	if n := e.logged("not taken over"); n != 1 {
		t.Errorf("told %d times", n)
	}
	want := []Change{{Machines: []string{"b"}, Nodes: []string{"b"}, Names: []string{"b"}}}
	until(t, "what is new is told", func() bool { return cmp.Equal(e.heard(), want) })
}

func TestAFileThatIsGoneMakesAnswersUnknown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machines.yaml")
	write(t, file, listA)
	e := &ear{}
	now := time.Now()
	s, err := NewStaticFile(StaticFileConfig{File: file, OnChange: e.hear, Logger: e.logger(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	gone := now
	s.look()
	now = now.Add(5 * time.Second)
	if f := s.MachineOfNode("a"); f.State != policy.Known || !f.At.Equal(gone) {
		t.Errorf("gone for a moment: %+v", f)
	}
	now = now.Add(time.Second)
	if f := s.MachineOfNode("a"); f.State != policy.Unknown || !strings.Contains(f.Why, "what it says is 6s old") || !strings.Contains(f.Why, "no such file") {
		t.Errorf("gone for long: %+v", f)
	}
	if p := s.Status(); p.Age != 6*time.Second || !strings.Contains(p.Problem, "no such file") {
		t.Errorf("status: %+v", p)
	}
	write(t, file, listA)
	s.look()
	if !knows(s, "a") || !cmp.Equal(e.heard(), []Change{{All: true}}) {
		t.Error("it is back, and does not count or was not told")
	}
}

func TestNewStaticFileRefuses(t *testing.T) {
	directory, bad := t.TempDir(), filepath.Join(t.TempDir(), "bad")
	write(t, bad, "machines: [{}]")
	for name, c := range map[string]StaticFileConfig{
		"no file": {File: filepath.Join(directory, "none")}, "no name": {}, "a directory": {File: directory}, "a bad list": {File: bad},
	} {
		c.Logger, c.OnChange = slog.New(slog.DiscardHandler), func(Change) {}
		if _, err := NewStaticFile(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	good := filepath.Join(directory, "good")
	write(t, good, listA)
	if _, err := NewStaticFile(StaticFileConfig{File: good, OnChange: func(Change) {}}); err == nil {
		t.Error("without a logger: accepted")
	}
	if _, err := NewStaticFile(StaticFileConfig{File: good, Logger: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("without somebody to tell: accepted")
	}
}
