// SPDX-License-Identifier: Apache-2.0

package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/storage/filestore"
)

const mib = 1 << 20

// sparse writes a file with a hole before, between and behind what is in it: 3 MiB of 64.
func sparse(t *testing.T, path string) []byte {
	t.Helper()
	content := make([]byte, 64*mib)
	for _, at := range []int{8 * mib, 9 * mib, 32 * mib} {
		copy(content[at:], bytes.Repeat([]byte("content."), mib/8))
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, at := range []int{8 * mib, 9 * mib, 32 * mib} {
		if _, err := file.WriteAt(content[at:at+mib], int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(file.Truncate(64*mib), file.Sync()); err != nil {
		t.Fatal(err)
	}
	return content
}

// onDisk is how much of a file is written, in bytes.
func onDisk(t *testing.T, path string) int64 {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		t.Fatal(err)
	}
	return stat.Blocks * 512
}

// A copy without reflink has the same content, links and holes, and its progress is told.
func TestCopy(t *testing.T) {
	root := t.TempDir()
	s := storeWith(t, root, func(*os.File, *os.File) error { return unix.EOPNOTSUPP })
	if err := errors.Join(s.Make(id, from.Path, filestore.Owner{Mode: 0o700}), s.MakeDisk(id, "/disk", 64*mib)); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(root, id, "data")
	want := sparse(t, filepath.Join(data, from.Path, "file"))
	sparse(t, filepath.Join(data, "disk"))
	if err := errors.Join(os.Link(filepath.Join(data, from.Path, "file"), filepath.Join(data, from.Path, "again")), os.WriteFile(filepath.Join(data, from.Path, "empty"), nil, 0o640)); err != nil {
		t.Fatal(err)
	}
	var told int64
	count := func(bytes int64) error { told += bytes; return nil }
	for name, copied := range map[string]struct {
		run  func() error
		file string
		size int
	}{
		"directory": {func() error { return s.CopyDirectory(t.Context(), from, to, count) }, to.Path + "/file", 64 * mib},
		"disk": {func() error {
			return s.CopyDisk(t.Context(), filestore.Place{FileSystemID: id, Path: "/disk"}, filestore.Place{FileSystemID: id, Path: "/copy"}, 80*mib, count)
		}, "/copy", 80 * mib},
	} {
		told = 0
		if err := copied.run(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := os.ReadFile(filepath.Join(data, copied.file))
		if err != nil || len(got) != copied.size || !bytes.Equal(got[:len(want)], want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if written := onDisk(t, filepath.Join(data, copied.file)); written > 4*mib || told < 3*mib || told > 4*mib {
			t.Errorf("%s: %d bytes are on the disk, and %d were told", name, written, told)
		}
	}
	one, err := os.Stat(filepath.Join(data, to.Path, "file"))
	if two, secondErr := os.Stat(filepath.Join(data, to.Path, "again")); err != nil || secondErr != nil || !os.SameFile(one, two) {
		t.Errorf("two names of a file are two files: %v, %v", err, secondErr)
	}
	nothingStaged(t, root)
}

// A copy that is ended, by whoever waits for it or by who is told, is not there.
func TestCopyIsEnded(t *testing.T) {
	root := t.TempDir()
	s := storeWith(t, root, func(*os.File, *os.File) error { return unix.EOPNOTSUPP })
	if err := s.Make(id, from.Path, filestore.Owner{Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	sparse(t, filepath.Join(root, id, "data", from.Path, "file"))
	ended, end := context.WithCancel(t.Context())
	full := errors.New("full")
	if err := s.CopyDirectory(t.Context(), from, to, func(int64) error { return full }); !errors.Is(err, full) {
		t.Errorf("the disk is full: %v", err)
	}
	if err := s.CopyDirectory(ended, from, to, func(int64) error { end(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: %v", err)
	}
	if there, err := s.Has(to); err != nil || there {
		t.Errorf("a part is there: %v", err)
	}
	nothingStaged(t, root)
}

// Nobody begins to write what is kept still, and nothing is kept still that is being written.
func TestStill(t *testing.T) {
	at := func(id, path string) filestore.Place { return filestore.Place{FileSystemID: id, Path: path} }
	for name, test := range map[string]struct {
		write  filestore.Place
		refuse bool
	}{
		"the place":            {at(id, "/a/b"), true},
		"above it":             {at(id, "/a"), true},
		"all":                  {at(id, "/"), true},
		"below it":             {at(id, "/a/b/c"), true},
		"beside it":            {at(id, "/a/bc"), false},
		"another file system":  {at("fs-00000000000000002", "/a/b"), false},
		"a snapshot's of that": {filestore.Place{FileSystemID: id, Path: "/a/b", Snapshot: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := filestore.New(t.TempDir())
			begun := 0
			begin := func() error { begun++; return nil }
			err := s.Still(at(id, "/a/b"), func() error { return nil }, func() error {
				// once more, as when it is copied twice at a time
				again := s.Still(at(id, "/a/b"), func() error { return nil }, func() error { return nil })
				return errors.Join(again, s.Write(test.write, begin))
			})
			if errors.Is(err, filestore.ErrBeingCopied) != test.refuse || (begun == 0) != test.refuse {
				t.Errorf("begun %d times: %v", begun, err)
			}
			if err := s.Write(test.write, begin); err != nil || begun == 0 {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
	s, used := filestore.New(t.TempDir()), errors.New("a pod writes")
	if err := s.Still(at(id, "/a"), func() error { return used }, func() error { t.Error("it is copied"); return nil }); !errors.Is(err, used) {
		t.Error(err)
	}
	if err := s.Write(at(id, "/a"), func() error { return nil }); err != nil {
		t.Error(err)
	}
}

// Who is slow to begin to write is waited for by those who want to keep that place still, and by nobody else.
func TestStillWaitsForTheSlow(t *testing.T) {
	s := filestore.New(t.TempDir())
	slow, other := filestore.Place{FileSystemID: id, Path: "/a"}, filestore.Place{FileSystemID: id, Path: "/b"}
	none := func() error { return nil }
	inside, proceed, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- s.Write(slow, func() error { close(inside); <-proceed; return nil })
	}()
	<-inside
	written, still := false, make(chan error, 1)
	go func() {
		still <- s.Still(slow, func() error { written = true; return nil }, none)
	}()
	for err := error(nil); !errors.Is(err, filestore.ErrBeingCopied); err = s.Write(slow, none) { // until it is to be kept still
		<-time.After(time.Millisecond)
	}
	if err := errors.Join(s.Write(other, none), s.Still(other, none, none)); err != nil {
		t.Errorf("elsewhere: %v", err)
	}
	select {
	case err := <-still:
		t.Errorf("kept still while somebody begins to write: %v", err)
	default:
	}
	close(proceed)
	if err := errors.Join(<-done, <-still, s.Write(slow, none)); err != nil || !written {
		t.Errorf("looked: %v, %v", written, err)
	}
}
