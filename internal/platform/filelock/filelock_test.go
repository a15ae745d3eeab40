// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestTheSecondIsKeptOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lock")
	release, err := Take(dir, "join")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(dir, "join"); !errors.Is(err, ErrTaken) {
		t.Errorf("the second got %v", err)
	}
	other, err := Take(dir, "rotate")
	if err != nil {
		t.Errorf("another lock: %v", err)
	}
	release()
	if release, err = Take(dir, "join"); err != nil {
		t.Fatalf("after the release: %v", err)
	}
	release()
	other()
	if _, err := os.Lstat(dir); err == nil {
		t.Error("the directory is left")
	}
}

// A process that can open a lock's file can hold the lock.
func TestNobodyElseCanOpenIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lock")
	release, err := Take(dir, "join")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "join"): 0o600} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestOpenDirectoriesAreRefused(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{open, link} {
		if _, err := Take(dir, "join"); err == nil || !strings.Contains(err.Error(), "that nobody else can enter") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// Though files are removed at every release, there is one owner at a time.
func TestThereIsOneOwnerAtATime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lock")
	var owners, most, taken atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 300 {
				release, err := Take(dir, "join")
				if errors.Is(err, ErrTaken) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				taken.Add(1)
				if n := owners.Add(1); n > most.Load() {
					most.Store(n)
				}
				owners.Add(-1)
				release()
			}
		})
	}
	all.Wait()
	if most.Load() != 1 || taken.Load() == 0 {
		t.Errorf("%d owners at a time, %d in all", most.Load(), taken.Load())
	}
}

// Whoever waits can be told who has it, and nobody is told of a holder before.
func TestHolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lock")
	if got := Holder(dir, "port"); got != "" {
		t.Errorf("without a lock: %q", got)
	}
	release, err := TakeAs(dir, "port", "one that has a long name")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeAs(dir, "port", "two"); !errors.Is(err, ErrTaken) {
		t.Errorf("a second one: %v", err)
	}
	if got := Holder(dir, "port"); got != "one that has a long name" {
		t.Errorf("held by %q", got)
	}
	release()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// A holder that was killed leaves its file.
	if err := os.WriteFile(filepath.Join(dir, "port"), []byte("one that has a long name\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	release, err = TakeAs(dir, "port", "two")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if got := Holder(dir, "port"); got != "two" {
		t.Errorf("held by %q", got)
	}
}
