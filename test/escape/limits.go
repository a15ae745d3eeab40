// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func limitAttacks() []attack {
	return []attack{
		{
			"processes", "starts more processes than the machine may have",
			"all process ids of the host", manyProcesses,
		},
		{
			"memory", "takes more memory than the machine may have",
			"all memory of the host", muchMemory,
		},
		{
			"inotify", "takes more inotify instances than a user of the host has left, as a user of the same number",
			"inotify instances for the host's programs", inotifyInstances,
		},
	}
}

// forkIdle makes a process that does nothing until it is killed. After a fork there is one thread, which must not use
// Go's runtime.
//
//go:norace
//go:nosplit
func forkIdle() (int, unix.Errno) {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		return int(pid), errno
	}
	_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	for {
		_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// mostForks bounds what may be asked for by a mistake.
const mostForks = 5_000

func manyProcesses(w *world) finding {
	if w.MostProcesses == 0 {
		return notHere("-most-processes is not given")
	}
	var all []int
	defer func() {
		for _, pid := range all {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for range all {
			_, _ = unix.Wait4(-1, nil, 0, nil)
		}
	}()
	for range min(w.MostProcesses, mostForks) {
		pid, errno := forkIdle()
		if errno != 0 {
			return refused(fmt.Sprintf("starting process %d", len(all)+1), errno)
		}
		all = append(all, pid)
	}
	return out("had %d processes", len(all))
}

// muchMemory takes memory in a child, which is ended for it if all is well.
func muchMemory(w *world) finding {
	if w.MostMemory == 0 {
		return notHere("-most-memory is not given")
	}
	taker := exec.Command(self, childWord, "memory", "plain", stageTake, fmt.Sprint(w.MostMemory)) //nolint:noctx,gosec // the attack's time is bounded; G702: the program itself
	taker.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := taker.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out("had %d bytes of memory", w.MostMemory)
	case errors.As(err, &exit):
		return held("taking %d bytes: %v", w.MostMemory, exit)
	}
	return refused("starting a process to take memory", err)
}

// takeMemory is that child.
func takeMemory(size int) error {
	data, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	const page = 4096
	for at := 0; at < size; at += page {
		data[at] = 1
	}
	return nil
}

func inotifyInstances(w *world) finding {
	if w.HostInotify == 0 {
		return notHere("-host-inotify-left is not given")
	}
	if err := become(w.HostUID); err != nil {
		return refused(fmt.Sprintf("becoming user %d", w.HostUID), err)
	}
	const more = 4
	for i := range w.HostInotify + more {
		if _, err := unix.InotifyInit1(unix.IN_CLOEXEC); errors.Is(err, unix.EMFILE) {
			return out("user %d shares a limit of inotify instances with that user of the host: %d were left", w.HostUID, i)
		} else if err != nil {
			return refused("making an inotify instance", err)
		}
	}
	return held("user %d got %d inotify instances, more than that user of the host has left (%d)", w.HostUID, w.HostInotify+more, w.HostInotify)
}
