// SPDX-License-Identifier: Apache-2.0

// Package filelock keeps a second process out by a lock (flock(2)) on a file that only its owner can open. A lock on
// anything that others can open, be it for reading, is one that they can hold: a directory or file of mode 0755 or 0644
// keeps nobody out but muster.
package filelock

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dir is where locks of a host are: gone with every boot, and with the last lock that was released.
const Dir = "/run/muster-lock"

// ErrTaken is a lock that another process has.
var ErrTaken = errors.New("another process has the lock")

// attempts is how often a lock may turn out to be on a file that its owner has just removed. Each needs another process
// that releases it in that very moment.
const attempts = 100

// Take takes the lock of a name in a directory, or returns an error that is ErrTaken. Both are made if need be, and
// closed to others; both are gone after release, if nothing else is in the directory.
func Take(dir, name string) (release func(), err error) { return TakeAs(dir, name, "") }

// maxHolder is as much of what the holder of a lock says of itself as is read.
const maxHolder = 4 << 10

// Holder is what the holder of a lock says of itself; "" if it says nothing, or there is none.
func Holder(dir, name string) string {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // it was only read
	said, err := io.ReadAll(io.LimitReader(file, maxHolder))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(said))
}

// TakeAs is Take, and writes the holder's name into the lock file, for others to read.
func TakeAs(dir, name, holder string) (release func(), err error) {
	path := filepath.Join(dir, name)
	for range attempts {
		if err := closedDir(dir); err != nil {
			return nil, err
		}
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if errors.Is(err, fs.ErrNotExist) { // the directory was removed at the release of the last lock
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("opening the lock: %w", err)
		}
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && current(file, path) {
			if err := say(file, holder); err != nil {
				_ = file.Close()
				return nil, err
			}
			return func() {
				_ = os.Remove(path) // before it is released: nobody else has it locked
				_ = file.Close()
				_ = os.Remove(dir) // which fails if there are others
			}, nil
		}
		_ = file.Close()
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			return nil, fmt.Errorf("%s: %w", path, ErrTaken)
		case err != nil:
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
	}
	return nil, fmt.Errorf("%s: %w", path, ErrTaken)
}

// say writes who holds a lock into its file, in place of what an earlier holder wrote that did not release it.
func say(file *os.File, holder string) error {
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("emptying the lock: %w", err)
	}
	if holder == "" {
		return nil
	}
	if _, err := file.WriteString(holder + "\n"); err != nil {
		return fmt.Errorf("writing who has the lock: %w", err)
	}
	return nil
}

// closedDir makes a directory that only its owner can enter, or sees to it that it is one.
func closedDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the directory of locks: %w", err)
	}
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed again: the caller finds out
	}
	if err != nil {
		return fmt.Errorf("looking at the directory of locks: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm()&0o077 != 0 || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("the directory of locks %s must be a directory of this user's that nobody else can enter (0700); remove it", dir)
	}
	return nil
}

// current reports whether a file still has its name. The previous holder of the lock may have removed it.
func current(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, named)
}
