// SPDX-License-Identifier: Apache-2.0

package filestore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/internal/storage/filestore"
)

var snapshot = filestore.Place{FileSystemID: id, Path: "/fssnap-0", Snapshot: true}

// A snapshot has what was there, whatever becomes of its source, and so has what is made of it.
func TestSnapshotOfADirectory(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, root string, reflink func(to, from *os.File) error) {
		t.Helper()
		s := storeWith(t, root, reflink)
		dir := fillVolume(t, s, root, filepath.Join(t.TempDir(), "secret"))
		want := listed(t, dir)
		begin := time.Now().Add(-time.Minute)
		for range 2 { // once more, as after a crash
			if err := s.CloneDirectory(t.Context(), from, snapshot); err != nil {
				t.Fatal(err)
			}
		}
		if entries, err := os.ReadDir(filepath.Join(root, id, "snapshots")); err != nil || len(entries) != 1 || entries[0].Name() != "fssnap-0" {
			t.Errorf("the snapshots are %v, %v", entries, err)
		}
		since, there, err := s.Since(snapshot)
		if err != nil || !there || since.Before(begin) || since.After(time.Now().Add(time.Minute)) {
			t.Errorf("it was taken at %v, %t, %v", since, there, err)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "set-id"), []byte("changed"), 0o600), s.Discard(id, from.Path)); err != nil {
			t.Fatal(err)
		}
		if err := s.CloneDirectory(t.Context(), snapshot, to); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Sweep(), s.DiscardPlace(snapshot), s.DiscardPlace(snapshot)); err != nil {
			t.Fatal(err)
		}
		if got := listed(t, filepath.Join(root, id, "data", "base", "to")); !slices.Equal(got, want) {
			t.Errorf("restored:\n%q\nwant\n%q", got, want)
		}
		if _, there, err := s.Since(snapshot); err != nil || there {
			t.Errorf("it is still there: %t, %v", there, err)
		}
		if left, err := os.ReadDir(filepath.Join(root, "trash")); err != nil || len(left) > 0 {
			t.Errorf("the trash has %v, %v", left, err)
		}
	})
}

func TestSnapshotOfADisk(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, root string, reflink func(to, from *os.File) error) {
		t.Helper()
		s := storeWith(t, root, reflink)
		if err := s.MakeDisk(id, from.Path, 8192); err != nil {
			t.Fatal(err)
		}
		write := func(text string) {
			t.Helper()
			disk, err := s.OpenDisk(id, from.Path, false)
			if err == nil {
				_, err = disk.WriteAt([]byte(text), 4096)
				err = errors.Join(err, disk.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		write("before")
		if err := s.CloneDisk(t.Context(), from, snapshot, 0); err != nil {
			t.Fatal(err)
		}
		write("behind")
		if err := errors.Join(s.Discard(id, from.Path), s.CloneDisk(t.Context(), snapshot, to, 16384)); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(root, id, "data", "base", "to"))
		if err != nil || len(raw) != 16384 || string(raw[4096:4102]) != "before" {
			t.Errorf("%d bytes, %q, %v", len(raw), raw[4096:min(len(raw), 4102)], err)
		}
	})
}

// No path of a volume leads to a snapshot, and none of a snapshot to a volume.
func TestSnapshotIsOutOfReach(t *testing.T) {
	root := t.TempDir()
	s := storeWith(t, root, copying)
	fillVolume(t, s, root, filepath.Join(t.TempDir(), "secret"))
	if err := s.CloneDirectory(t.Context(), from, snapshot); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../snapshots", filepath.Join(root, id, "data", "up")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{snapshot.Path, "/snapshots" + snapshot.Path, "/../snapshots" + snapshot.Path, "/up" + snapshot.Path} {
		if dir, err := s.Open(id, path); err == nil {
			t.Errorf("%s is opened as a volume", path)
			_ = dir.Close()
		}
	}
	if err := s.CloneDirectory(t.Context(), filestore.Place{FileSystemID: id, Path: from.Path, Snapshot: true}, to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a volume is taken for a snapshot: %v", err)
	}
	if err := s.DiscardPlace(filestore.Place{FileSystemID: id, Path: "/", Snapshot: true}); err == nil {
		t.Error("all snapshots are removed at once")
	}
	if info, err := os.Stat(filepath.Join(root, id, "snapshots")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
