// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func processAttacks() []attack {
	return []attack{
		{
			"environments", "reads the environment of every process that it sees",
			"secrets of the host's processes", environments,
		},
		{
			"ptrace", "traces the host's process by its id and looks for its secret",
			"memory of the host's processes", traceHost,
		},
		{
			"signal", "sends a signal to the host's process by its id, once it has found the process to be the host's",
			"the end of the host's processes", signalHost,
		},
		{
			"priority", "asks for a real-time priority or the first of the ordinary ones (sched_setattr, setpriority)",
			"the processors of the host", firstPriority,
		},
		{
			"not-killed", "makes itself the last process that is killed for want of memory (oom_score_adj)",
			"the host's processes are killed in its place", notKilled,
		},
		{
			"more-limits", "raises its hard limits of open files and locked memory",
			"more of the host's memory than it was given", moreLimits,
		},
		{
			"locked-memory", "locks more memory than its limit says",
			"memory that the host cannot take back", lockedMemory,
		},
	}
}

func environments(w *world) finding {
	var tried ways
	seen := processes()
	for _, pid := range seen {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/environ", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			tried.add("opening an environment", err)
			continue
		}
		token := w.Find(readFD(fd))
		_ = unix.Close(fd)
		if token != "" {
			return outWith(token, "read the environment of process %d, which is the host's", pid)
		}
	}
	if !tried.held {
		return held("the %d processes that are seen are the machine's", len(seen))
	}
	return tried.finding()
}

// isHosts reports whether the process of an id is the planted one. An id is a number of some namespace, so a process
// with the right number may be any other.
func (w *world) isHosts(pid int) string {
	return w.Find(readAt(unix.AT_FDCWD, fmt.Sprintf("/proc/%d/environ", pid)))
}

func traceHost(w *world) finding {
	if w.HostPID == 0 {
		return notHere("-host-pid is not given")
	}
	if err := unix.PtraceSeize(w.HostPID); err != nil {
		return refused("seizing process "+fmt.Sprint(w.HostPID), err)
	}
	token := w.isHosts(w.HostPID)
	_ = unix.PtraceDetach(w.HostPID) // it goes on in any case when the tracer ends
	if token == "" {
		return held("process %d is not the host's", w.HostPID)
	}
	return outWith(token, "traced process %d of the host", w.HostPID)
}

func signalHost(w *world) finding {
	if w.HostPID == 0 {
		return notHere("-host-pid is not given")
	}
	fd, err := unix.PidfdOpen(w.HostPID, 0)
	if err != nil {
		return refused(fmt.Sprintf("opening process %d", w.HostPID), err)
	}
	token := w.isHosts(w.HostPID)
	if token == "" {
		return held("process %d is not the host's", w.HostPID)
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0); err != nil { // it changes nothing for a process that runs
		return refused("sending SIGCONT", err)
	}
	return outWith(token, "sent SIGCONT to process %d of the host", w.HostPID)
}

func firstPriority(*world) finding {
	var tried ways
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
	err := unix.SchedSetAttr(0, &attr, 0)
	if err == nil {
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr}, 0)
		return out("had a real-time priority, before every ordinary process of the host")
	}
	tried.add("asking for a real-time priority", err) // control groups may forbid it to root as well
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, -20); err != nil {
		tried.add("asking for the first of the ordinary priorities", err)
		return tried.finding()
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 0)
	return out("had the first of the ordinary priorities")
}

func notKilled(*world) finding {
	const file = "/proc/self/oom_score_adj"
	fd, err := unix.Open(file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening "+file, err)
	}
	if _, err := unix.Write(fd, []byte("-1000")); err != nil {
		return refused("writing -1000 to "+file, err)
	}
	_, _ = unix.Write(fd, []byte("1000"))
	return out("the kernel would have killed every other process of the host before it")
}

func moreLimits(*world) finding {
	var tried ways
	for _, limit := range []struct {
		name     string
		resource int
	}{{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE}, {"RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK}} {
		var was unix.Rlimit
		if err := unix.Getrlimit(limit.resource, &was); err != nil || was.Max == unix.RLIM_INFINITY {
			continue
		}
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: was.Cur, Max: was.Max + 1}); err != nil {
			tried.add("raising "+limit.name, err)
			continue
		}
		return out("raised %s above %d", limit.name, was.Max)
	}
	return tried.finding()
}

func lockedMemory(*world) finding {
	const limit, size = 64 << 10, 256 << 10
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
		return refused("lowering its own limit", err)
	}
	data, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return refused("taking memory", err)
	}
	if err := unix.Mlock(data); err != nil {
		return refused("locking more than its limit", err)
	}
	return out("locked %d bytes of memory with a limit of %d", size, limit)
}
