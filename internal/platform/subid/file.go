// SPDX-License-Identifier: Apache-2.0

package subid

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// maxSize is the largest subuid or subgid that is read or written, in bytes: 20000 lines of 50 bytes.
	maxSize = 1 << 20
	// maxUsersSize is the largest passwd or group that is read, in bytes.
	maxUsersSize = 16 << 20
)

// host is what the files of a directory say.
type host struct {
	uid, gid, passwd, group file
}

type file struct {
	path    string
	content string
	info    fs.FileInfo // nil if the file is missing
}

func read(etc string) (h host, err error) {
	for _, f := range []struct {
		to   *file
		name string
		max  int64
	}{{&h.uid, "subuid", maxSize}, {&h.gid, "subgid", maxSize}, {&h.passwd, "passwd", maxUsersSize}, {&h.group, "group", maxUsersSize}} {
		if *f.to, err = readFile(filepath.Join(etc, f.name), f.max); err != nil {
			return host{}, err
		}
	}
	return h, nil
}

// readFile reads a file, through symbolic links.
func readFile(path string, limit int64) (file, error) {
	opened, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) //nolint:gosec // G703: the directory is the caller's; a FIFO must not hold it up
	if errors.Is(err, fs.ErrNotExist) {
		// Or a link to nothing, which write refuses to replace.
		return file{path: path}, nil
	}
	if err != nil {
		return file{}, fmt.Errorf("reading subordinate ids: %w", err)
	}
	defer func() { _ = opened.Close() }() // it was only read
	info, err := opened.Stat()
	if err != nil {
		return file{}, fmt.Errorf("reading subordinate ids: %w", err)
	}
	if !info.Mode().IsRegular() {
		return file{}, fmt.Errorf("%s is not a regular file: its mode is %v", path, info.Mode())
	}
	content, err := io.ReadAll(io.LimitReader(opened, limit+1))
	if err != nil {
		return file{}, fmt.Errorf("reading subordinate ids: %w", err)
	}
	if int64(len(content)) > limit {
		return file{}, fmt.Errorf("%s is too large: must be at most %d bytes", path, limit)
	}
	return file{path: path, content: string(content), info: info}, nil
}

// has reports whether a file has a line of the owner. It returns an error if one is malformed.
func (h host) has(name string) (has bool, err error) {
	for _, f := range []file{h.uid, h.gid} {
		for line := range strings.Lines(f.content) {
			if owner(line) != name {
				continue
			}
			if _, err := parseOwn(line, name); err != nil {
				return false, fmt.Errorf("%s: %w", f.path, err)
			}
			has = true
		}
	}
	return has, nil
}

// write gives the owner a range in both files, or none. A crash between the two must leave the owner with one range, so
// the first file is the one whose line is replaced or removed.
func (h host) write(name string, r *Range) error {
	files := []file{h.uid, h.gid}
	if h.gid.with(name, nil) != h.gid.content {
		slices.Reverse(files)
	}
	files = slices.DeleteFunc(files, func(f file) bool { return f.with(name, r) == f.content })
	for _, f := range files {
		if target, err := os.Readlink(f.path); err == nil {
			return fmt.Errorf("%s is a symbolic link to %s: %w", f.path, target, errManaged)
		}
		if len(f.with(name, r)) > maxSize {
			return fmt.Errorf("%s is too large for one more line: must be at most %d bytes", f.path, maxSize)
		}
	}
	for _, f := range files {
		if err := f.replace(f.with(name, r)); err != nil {
			return fmt.Errorf("writing %s: %w", f.path, err)
		}
	}
	return nil
}

// replace writes the file in one step, keeps its mode, owner and label, and makes sure that it is on the disk. The
// caller has the locks, so the temporary file has one name, and what a crash left of it is replaced.
func (f file) replace(content string) error {
	dir, base := filepath.Split(f.path)
	temporary := filepath.Join(dir, ".new-"+base)
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	to, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary) }() // nothing is there after the rename
	err = f.fill(to, content)
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, f.path); err != nil {
		return err
	}
	parent, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }() // it was only synced
	return parent.Sync()
}

func (f file) fill(to *os.File, content string) error {
	if _, err := to.WriteString(content); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if f.info != nil {
		mode = f.info.Mode().Perm()
		if err := copyLabel(f.path, to); err != nil {
			return err
		}
		if stat, ok := f.info.Sys().(*syscall.Stat_t); ok {
			if err := to.Chown(int(stat.Uid), int(stat.Gid)); err != nil {
				return err
			}
		}
	}
	if err := to.Chmod(mode); err != nil {
		return err
	}
	return to.Sync()
}

// label is the extended attribute that SELinux decides by.
const label = "security.selinux"

// copyLabel gives a new file the label of the file that it replaces, if it differs from what the directory gives.
func copyLabel(from string, to *os.File) error {
	want, got := make([]byte, 4096), make([]byte, 4096)
	n, err := unix.Lgetxattr(from, label, want)
	if err != nil {
		return nil //nolint:nilerr // the host has no labels
	}
	if m, err := unix.Fgetxattr(int(to.Fd()), label, got); err == nil && bytes.Equal(want[:n], got[:m]) {
		return nil
	}
	if err := unix.Fsetxattr(int(to.Fd()), label, want[:n], 0); err != nil {
		return fmt.Errorf("setting the label %q: %w", want[:n], err)
	}
	return nil
}
