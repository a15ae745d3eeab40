// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/cluster/guard"
	"muster.dev/muster/internal/node/losetup"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/host/hosttest"
)

// serviceHeld has a service wait for a machine's path that never answers (FUSE), and kills it: the kernel keeps it with
// its lock and its ports, and the next one runs all the same.
func serviceHeld(t *testing.T, i *installation) {
	id := slices.Sorted(maps.Keys(i.machines()))[0]
	end := i.hang(t, id, path.Dir(losetup.Socket))
	defer end()
	i.kill(guard.ProcessServe)
	i.eventually("the next service waits for the machine", func() error {
		next, err := i.running()
		if err != nil {
			return err
		}
		return waitsForFUSE(next[guard.ProcessServe].PID)
	})
	held := i.kill(guard.ProcessServe)
	i.eventually("the guard starts the service again", func() error {
		status, err := i.status()
		if err == nil && status.PID == held.PID {
			err = errors.New("it is the old one")
		}
		return err
	})
	if log, err := os.ReadFile(i.dir.Log(guard.ProcessGuard)); err != nil || !strings.Contains(string(log), "machines="+id) {
		t.Errorf("the service ended by itself, or the log of the guard does not name machine %s: %v\n%s", id, err, log)
	}
	end()
	i.ready()
	i.eventually("the machine is heard again", func() error {
		out, talk, err := i.try("exec", id, "--", "losetup", "-a")
		if err != nil {
			err = fmt.Errorf("%w: %s%s", err, out, talk)
		}
		return err
	})
}

// hang mounts a file system for root of a machine that answers for nothing in it, until end is called.
func (i *installation) hang(t *testing.T, id, at string) (end func()) {
	pid, owner := i.machines()[id], i.idsOf(id).First
	connection, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	inside := func(call func() error) error {
		done := make(chan error, 1)
		go host.OnThread(func() { done <- inMountsOf(pid, call) })
		return <-done
	}
	if err := inside(func() error {
		return unix.Mount("test", at, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%[2]d", connection, owner))
	}); err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		hosttest.ServeFuse(connection, hosttest.FuseLookup, hosttest.FuseGetattr)
	}()
	return sync.OnceFunc(func() {
		if err := inside(func() error { return unix.Unmount(at, unix.MNT_FORCE|unix.MNT_DETACH) }); err != nil {
			t.Errorf("unmounting %s: %v", at, err)
			return
		}
		<-served
		_ = unix.Close(connection)
	})
}

// inMountsOf calls a function on this thread, which ends with it, where paths are those of a machine.
func inMountsOf(pid int, call func() error) error {
	root, err := unix.Open(filepath.Join("/proc", strconv.Itoa(pid), "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(root) }()
	namespace, err := unix.Open(filepath.Join("/proc", strconv.Itoa(pid), "ns/mnt"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(namespace) }()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	if err := unix.Setns(namespace, unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Fchdir(root); err != nil {
		return err
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	return call()
}

// waitsForFUSE is nil if a thread of a process waits for the program of a FUSE file system, and cannot be killed.
func waitsForFUSE(pid int) error {
	threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/wchan"))
	if err != nil {
		return err
	}
	var where []string
	for _, thread := range threads {
		at, _ := os.ReadFile(thread)
		where = append(where, string(at))
	}
	if !slices.Contains(where, "request_wait_answer") {
		return fmt.Errorf("the threads of process %d wait in %q", pid, where)
	}
	return nil
}
