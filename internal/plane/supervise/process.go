// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeid"
	"muster.dev/muster/internal/platform/process"
	"muster.dev/muster/internal/platform/statedir"
)

// The marks: environment variables that say to which state directory and spec a process belongs.
const (
	EnvState   = "MUSTER_STATE"
	EnvProcess = "MUSTER_PROCESS"
	EnvSpec    = "MUSTER_SPEC"
)

// envRestarts says how often a process was started again; processes of an earlier Muster have none.
const envRestarts = "MUSTER_RESTARTS"

// Process is a running process that carries the marks of a state directory.
type Process struct {
	Name string
	// Spec is the hash of the spec that it was started from.
	Spec string
	PID  int
	// User of the host that it runs as.
	User uint32
	// Executable is the program's path; it ends in " (deleted)" when the file has been replaced since.
	Executable string
	Started    time.Time

	restarts int
	ticks    int64 // Started as the kernel counts it, the same each time it is read
	session  bool  // it leads a session, as every process does that a supervisor started
	inside   bool  // it is in another process namespace than the caller: part of a machine
}

// Marks are the environment variables that make a process findable.
func Marks(dir statedir.Dir, name, spec string) []string {
	return []string{EnvState + "=" + string(dir), EnvProcess + "=" + name, EnvSpec + "=" + spec}
}

// Find lists the running processes of a state directory that belong to the calling user, or to the users that its
// components have, oldest first. A process that inherited the marks from one of them, as a container shim does from
// containerd, is listed too; see [Leader].
func Find(dir statedir.Dir) ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []Process
	users, patient := usersOf(dir), time.Now().Add(patience)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, ok := inspect(pid, dir, users, patient); ok {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b Process) int { return cmp.Or(cmp.Compare(a.ticks, b.ticks), cmp.Compare(a.PID, b.PID)) })
	return found, nil
}

// Leader is the oldest process of that name which runs the given program: the one that was started, not one it started.
// A process in a machine does not count, whatever marks and program a container gave it.
func Leader(processes []Process, name, executable string) (Process, bool) {
	for _, p := range processes {
		if p.Name == name && !p.inside && strings.TrimSuffix(p.Executable, " (deleted)") == executable {
			return p, true
		}
	}
	return Process{}, false
}

// predecessor is the oldest process of that name that was started from another program: muster has moved since.
func predecessor(processes []Process, name string) (Process, bool) {
	for _, p := range processes {
		if p.Name == name && !p.inside && p.session && p.Spec != "" {
			return p, true
		}
	}
	return Process{}, false
}

// successor is the youngest process of a spec that hands over, if it has this spec and program: older ones have handed
// their work over, or will to it. An older one of this spec and program has nothing to hand over any more.
func successor(processes []Process, spec component.Spec, executable string) (Process, bool) {
	for _, p := range slices.Backward(processes) {
		if p.Name == spec.Process() && !p.inside && p.session {
			return p, p.Spec == spec.Hash() && p.Executable == executable
		}
	}
	return Process{}, false
}

// Replaced reports whether a component of a cluster runs from a file that has been replaced since. A process that has a
// younger one of its name has handed its work over, and does not count.
func Replaced(processes []Process) bool {
	youngest := map[string]Process{}
	for _, p := range processes {
		if cluster, _ := component.SplitProcess(p.Name); cluster != "" && !p.inside && p.session {
			youngest[p.Name] = p
		}
	}
	for _, p := range youngest {
		if strings.HasSuffix(p.Executable, " (deleted)") {
			return true
		}
	}
	return false
}

// inspect reads one process. A process that cannot be read belongs to another user, or has just ended.
func inspect(pid int, dir statedir.Dir, users func(uint32) bool, patient time.Time) (Process, bool) {
	root := filepath.Join("/proc", strconv.Itoa(pid))
	var owner syscall.Stat_t
	if err := syscall.Stat(root, &owner); err != nil || !users(owner.Uid) {
		return Process{}, false
	}
	running, err := process.Read(root, patient)
	if err != nil || !bytes.Contains(running.Environment, []byte(EnvState+"="+string(dir)+"\x00")) {
		return Process{}, false
	}
	p := Process{PID: pid, User: owner.Uid, Executable: running.Executable, Started: running.Started(), ticks: running.Ticks, session: running.Session == pid}
	marked := false
	for variable := range bytes.SplitSeq(running.Environment, []byte{0}) {
		switch name, value, _ := strings.Cut(string(variable), "="); name {
		case EnvState:
			if value != string(dir) {
				return Process{}, false
			}
			marked = true
		case EnvProcess:
			p.Name = value
		case EnvSpec:
			p.Spec = value
		case envRestarts:
			p.restarts, _ = strconv.Atoi(value)
		}
	}
	if !marked || p.Name == "" || !believed(dir, p) {
		return Process{}, false
	}
	ours, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Process{}, false
	}
	namespace, err := os.Readlink(filepath.Join(root, "ns", "pid"))
	if err != nil {
		return Process{}, false
	}
	p.inside = namespace != ours
	return p, true
}

// usersOf tells the users that processes of a state directory may run as: this one, and, for root, those of components.
func usersOf(dir statedir.Dir) func(uint32) bool {
	own := os.Geteuid()
	if own != 0 {
		return func(user uint32) bool { return int64(user) == int64(own) }
	}
	first, end := planeid.Range(dir)
	return func(user uint32) bool { return user == 0 || first <= user && user < end }
}

// believed reports whether a process may have the name that its marks say: one of this user, or of the user that a
// component of that name has. Any user may write such marks, and another component's user no less.
func believed(dir statedir.Dir, p Process) bool {
	if int64(p.User) == int64(os.Geteuid()) {
		return true
	}
	own, found := planeid.Of(dir, p.Name)
	return found && own == p.User
}

// patience is how long one look at all processes may wait in all for those in execve(2): a container may have any
// number of processes that look so.
const patience = time.Second

// open takes hold of a process and checks that it still is the one that was found.
func open(p Process, dir statedir.Dir) (*process.Handle, error) {
	h, err := process.Hold(p.PID)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	again, ok := inspect(p.PID, dir, usersOf(dir), time.Now().Add(patience))
	if !ok || again.Name != p.Name || again.Spec != p.Spec {
		h.Close()
		return nil, fmt.Errorf("%s (process %d) has ended", p.Name, p.PID)
	}
	return h, nil
}

// Stop ends every process that the filter chooses, all at once, and returns when they are gone, and those that they
// started meanwhile.
func Stop(ctx context.Context, dir statedir.Dir, grace time.Duration, choose func(Process) bool) (stopped []Process, err error) {
	return stop(ctx, dir, func(Process) time.Duration { return grace }, choose)
}

// stop is Stop with a grace for each process.
func stop(ctx context.Context, dir statedir.Dir, grace func(Process) time.Duration, choose func(Process) bool) (stopped []Process, err error) {
	for {
		round, err := stopFound(ctx, dir, grace, choose)
		stopped = append(stopped, round...)
		if err != nil || len(round) == 0 {
			return stopped, err
		}
	}
}

func stopFound(ctx context.Context, dir statedir.Dir, grace func(Process) time.Duration, choose func(Process) bool) (stopped []Process, err error) {
	processes, err := Find(dir)
	if err != nil {
		return nil, err
	}
	errs := make(chan error)
	for _, p := range processes {
		if p.PID == os.Getpid() || !choose(p) {
			continue
		}
		stopped = append(stopped, p)
		go func() {
			h, err := open(p, dir)
			if err != nil { // it has ended by itself
				errs <- nil
				return
			}
			defer h.Close()
			errs <- h.Stop(ctx, grace(p))
		}()
	}
	for range stopped {
		err = errors.Join(err, <-errs)
	}
	return stopped, err
}
