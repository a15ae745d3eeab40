// SPDX-License-Identifier: Apache-2.0

package joinlog

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func follow(t *testing.T, path string) (*Tracker, *Follower) {
	t.Helper()
	tracker := NewTracker()
	follower, err := NewFollower(FollowerConfig{Path: path, Tracker: tracker, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(follower.close)
	return tracker, follower
}

func put(t *testing.T, path string, flags int, data ...[]byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flags, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range data {
		if _, err := file.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func look(t *testing.T, follower *Follower) {
	t.Helper()
	if err := follower.look(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func steps(t *testing.T, tracker *Tracker, want int) {
	t.Helper()
	if got := tracker.Records(joined); len(got) != want {
		t.Fatalf("%d steps, want %d: %v", len(got), want, say(got))
	}
}

func TestFollowerGrowth(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	lines := sample(t)
	newline := []byte("\n")
	tracker, follower := follow(t, path)
	if err := follower.look(t.Context()); err == nil {
		t.Fatal("a log that is not there was read")
	}
	put(t, path, os.O_APPEND, lines[0], newline, lines[3][:100])
	look(t, follower)
	steps(t, tracker, 1)
	put(t, path, os.O_APPEND, lines[3][100:])
	look(t, follower)
	steps(t, tracker, 1) // the line is not at its end yet
	put(t, path, os.O_APPEND, newline, lines[4], newline)
	look(t, follower)
	steps(t, tracker, 3)
}

func TestFollowerRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	lines := sample(t)
	newline := []byte("\n")
	tracker, follower := follow(t, path)
	put(t, path, os.O_APPEND, lines[0], newline)
	look(t, follower)
	put(t, path, os.O_APPEND, lines[3], newline) // the last before the rotation
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	look(t, follower) // nothing has the name just now
	steps(t, tracker, 2)
	put(t, path+".1", os.O_APPEND, lines[4], newline)
	put(t, path, os.O_APPEND, lines[5], newline)
	look(t, follower)
	steps(t, tracker, 4)
}

func TestFollowerTruncation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	lines := sample(t)
	newline := []byte("\n")
	tracker, follower := follow(t, path)
	put(t, path, os.O_APPEND, lines[0], newline, lines[3], newline, lines[4][:50])
	look(t, follower)
	put(t, path, os.O_TRUNC, lines[4], newline)
	look(t, follower)
	steps(t, tracker, 3)
}

func TestFollowerLongLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	tracker, follower := follow(t, path)
	put(t, path, os.O_APPEND, bytes.Repeat([]byte("x"), 2*maxLine), sample(t)[0], []byte("\n"), sample(t)[3], []byte("\n"))
	look(t, follower)
	if got := say(tracker.Records(joined)); len(got) != 2 || cap(follower.partial) > 2*maxLine {
		t.Errorf("after a long line: %v", got)
	}
}

func TestFollowerRun(t *testing.T) {
	defer goleak.VerifyNone(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	changed := make(chan string, 100)
	tracker := NewTracker()
	follower, err := NewFollower(FollowerConfig{
		Path: path, Tracker: tracker, Interval: time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Changed: func(machine string) { changed <- machine },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- follower.Run(ctx) }()
	put(t, path, os.O_APPEND, bytes.Join(sample(t), []byte("\n")), []byte("\n"))
	for range 8 {
		select {
		case machine := <-changed:
			if machine != joined {
				t.Errorf("machine %q took a step", machine)
			}
		case <-time.After(time.Minute):
			t.Fatal("the follower did not read the log")
		}
	}
	steps(t, tracker, 8)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestNewFollower(t *testing.T) {
	if _, err := NewFollower(FollowerConfig{Path: "x", Tracker: NewTracker()}); err == nil {
		t.Error("a follower without a logger")
	}
}
