// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// contains fails unless the directory holds exactly one file, with that content and mode.
func contains(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil || string(raw) != content {
		t.Errorf("content is %q, %v; want %q", raw, err, content)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != mode {
		t.Errorf("mode is %v, %v; want %v", info.Mode(), err, mode)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("directory holds %v, %v; want only the file", entries, err)
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, step := range []struct {
		content string
		mode    fs.FileMode
	}{
		{"one", 0o600}, // new
		{"two", 0o600}, // replaced
		{"two", 0o640}, // only the mode differs; wider than any umask leaves it
		{"two", 0o600},
		{"", 0o600},
		{"longer than before", 0o600},
	} {
		if err := Write(path, []byte(step.content), step.mode); err != nil {
			t.Fatal(err)
		}
		contains(t, path, step.content, step.mode)
	}
}

func TestUnchangedIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var before, after os.FileInfo
	for _, info := range []*os.FileInfo{&before, &after} {
		if err := Write(path, []byte("same"), 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		if *info, err = os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
	if !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Error("a file with the same content was written again")
	}
}

func TestLinkIsReplaced(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, path, "secret", 0o600)
	if raw, err := os.ReadFile(other); err != nil || string(raw) != "secret" {
		t.Errorf("the link's target is %q, %v", raw, err)
	}
}

// An error that lasts has the same words each time: whoever says it once compares them.
func TestErrorsThatLast(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.Mkdir(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{filepath.Join(dir, "missing", "file"): syscall.ENOENT, taken: syscall.EEXIST} {
		first, again := Write(path, nil, 0o600), Write(path, nil, 0o600)
		if !errors.Is(first, want) || again == nil || first.Error() != again.Error() || first.Error() != "writing "+path+": "+want.Error() {
			t.Errorf("%v, then %v; want %v", first, again, want)
		}
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "missing", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "file"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "file"), []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// A write that fails halfway leaves the old file, and nothing else. A limit on the size of files stands for a full
// disk.
func TestNoRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Dir, cmd.Env = filepath.Dir(path), append(os.Environ(), envFull+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	contains(t, path, "old", 0o600)
}

func TestReadersNeverSeeAPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	contents := [][]byte{bytes.Repeat([]byte("a"), 200_000), bytes.Repeat([]byte("b"), 100_000)}
	if err := Write(path, contents[0], 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				raw, err := os.ReadFile(path)
				if err != nil || (!bytes.Equal(raw, contents[0]) && !bytes.Equal(raw, contents[1])) {
					t.Errorf("read %d bytes, %v", len(raw), err)
					return
				}
			}
		})
	}
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := range 50 {
				if err := Write(path, contents[(i+w)%2], 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

// A file that root gave away is given away still when it is replaced.
func TestWriteOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"one", "two", "two"} {
		if err := Write(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if content == "one" {
			if err := errors.Join(os.Chown(path, 1234, 5678), os.Chmod(path, 0o640)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		contains(t, path, content, 0o640)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if stat := info.Sys().(*syscall.Stat_t); stat.Uid != 1234 || stat.Gid != 5678 {
			t.Errorf("it belongs to %d:%d", stat.Uid, stat.Gid)
		}
	}
}
