// SPDX-License-Identifier: Apache-2.0

package subid

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// lockInterval is how often a lock that another process has is tried.
const lockInterval = 20 * time.Millisecond

// lock takes the locks of the files of a directory, in the order of shadow-utils.
func lock(etc string, wait time.Duration) (release func(), err error) {
	deadline := time.Now().Add(wait)
	var taken []func()
	release = func() {
		for _, one := range slices.Backward(taken) {
			one()
		}
	}
	for _, take := range []func() (func(), error){
		func() (func(), error) { return lockPasswords(filepath.Join(etc, ".pwd.lock"), deadline) },
		func() (func(), error) { return lockByLink(filepath.Join(etc, "subuid"), deadline) },
		func() (func(), error) { return lockByLink(filepath.Join(etc, "subgid"), deadline) },
	} {
		one, err := take()
		if err != nil {
			release()
			return nil, fmt.Errorf("locking subordinate ids: %w", err)
		}
		taken = append(taken, one)
	}
	return release, nil
}

// lockPasswords takes the lock of lckpwdf(3). It is an open file description lock, which conflicts with the record
// locks that others take and keeps out another goroutine of this process, too (fcntl_locking(2)).
func lockPasswords(path string, deadline time.Time) (release func(), err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600) //nolint:gosec // G703: the directory is the caller's
	if err != nil {
		return nil, err
	}
	for {
		err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			_ = file.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if time.Now().After(deadline) {
			holder := holderOf(file)
			_ = file.Close()
			return nil, fmt.Errorf("%s is locked by %s: useradd and vipw lock it; end that program, then try again", path, holder)
		}
		time.Sleep(lockInterval)
	}
}

// holderOf says which process has the lock on a file, as far as the kernel tells.
func holderOf(file *os.File) string {
	held := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &held); err != nil || held.Type == unix.F_UNLCK || held.Pid <= 0 {
		return "another process"
	}
	return "process " + strconv.Itoa(int(held.Pid))
}

// lockByLink takes the lock of one file as shadow-utils do: PATH.lock is a hard link to a file with the number of the
// process that has it. The caller has the lock of lockPasswords, so a lock with this process's own number is one that
// an earlier process of that number left.
func lockByLink(path string, deadline time.Time) (release func(), err error) {
	own, lock := fmt.Sprintf("%s.%d", path, os.Getpid()), path+".lock"
	if err := os.WriteFile(own, append(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0), 0o600); err != nil { //nolint:gosec // G703: the directory is the caller's
		return nil, err
	}
	defer func() { _ = os.Remove(own) }() //nolint:gosec // G703: the directory is the caller's
	for {
		err := os.Link(own, lock)
		if err == nil {
			return func() { _ = os.Remove(lock) }, nil //nolint:gosec // G703: the directory is the caller's
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		holder, alive := holderByLink(lock)
		if !alive {
			if err := os.Remove(lock); err != nil && !errors.Is(err, fs.ErrNotExist) { //nolint:gosec // G703: the directory is the caller's
				return nil, err
			}
			continue
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s is held by %s: end that program, or remove the file if the process is another program's, then try again", lock, holder)
		}
		time.Sleep(lockInterval)
	}
}

// holderByLink says which process has a lock, and reports whether it may be running.
func holderByLink(lock string) (holder string, alive bool) {
	content, err := os.ReadFile(lock) //nolint:gosec // G703: the directory is the caller's
	if errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	text, _, _ := bytes.Cut(content, []byte{0})
	pid, convErr := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil || convErr != nil || pid <= 0 {
		return "an unknown process", true // shadow-utils refuse such a file, too
	}
	if pid == os.Getpid() {
		return "", false
	}
	return "process " + strconv.Itoa(pid), !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}
