// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/state"
)

// The marks: environment variables that say whose a process is.
const (
	EnvState   = "MUSTER_STATE"
	EnvProcess = "MUSTER_PROCESS"
	EnvSpec    = "MUSTER_SPEC"
)

// Process is a running process that carries the marks of a state directory.
type Process struct {
	Name string
	// Spec is the hash of the spec that it was started from.
	Spec string
	PID  int
	// Executable is the program's path; it ends in " (deleted)" when the file has been replaced since.
	Executable string
	Started    time.Time

	ticks   int64 // Started as the kernel counts it, the same each time it is read
	session bool  // it leads a session, as every process does that a supervisor started
	inside  bool  // it is in another process namespace than the caller: part of a machine
}

// Marks are the environment variables that make a process findable.
func Marks(dir state.Dir, name, spec string) []string {
	return []string{EnvState + "=" + string(dir), EnvProcess + "=" + name, EnvSpec + "=" + spec}
}

// Find lists the running processes of a state directory that belong to the calling user, oldest first. A process that
// inherited the marks from one of them, as a container shim does from containerd, is listed too; see [Leader].
func Find(dir state.Dir) ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []Process
	patient := time.Now().Add(patience)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, ok := inspect(pid, dir, patient); ok {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b Process) int { return cmp.Or(cmp.Compare(a.ticks, b.ticks), cmp.Compare(a.PID, b.PID)) })
	return found, nil
}

// Leader is the oldest process of that name which runs the given program: the one that was started, not one it started.
// A process in a machine is none, whatever marks and program a container gave it.
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

// inspect reads one process. Whatever cannot be read belongs to somebody else, or has just ended.
func inspect(pid int, dir state.Dir, patient time.Time) (Process, bool) {
	root := filepath.Join("/proc", strconv.Itoa(pid))
	var stat syscall.Stat_t
	if err := syscall.Stat(root, &stat); err != nil || int(stat.Uid) != os.Geteuid() {
		return Process{}, false
	}
	environment, err := readEnvironment(root, patient)
	if err != nil || !bytes.Contains(environment, []byte(EnvState+"="+string(dir)+"\x00")) {
		return Process{}, false
	}
	p := Process{PID: pid}
	marked := false
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
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
		}
	}
	if !marked || p.Name == "" {
		return Process{}, false
	}
	if p.Executable, err = os.Readlink(filepath.Join(root, "exe")); err != nil { // a zombie has none
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
	return p, p.readStat(root) == nil
}

// patience is how long one look at all processes may wait in all for those in execve(2): a container may have any number of processes
// that look so.
const patience = time.Second

// readEnvironment reads what a process was started with. In the middle of execve(2) a process shows none, and would be overlooked by
// who looks once: its memory is the new program's, still empty, or was the old one's and is gone when it is read. The kernel writes
// where the code begins (proc(5), field 26 of stat) after where the environment begins and ends (fields 50 and 51): while that is 0,
// the environment is still being laid out (load_elf_binary in fs/binfmt_elf.c). After the moment patient it is taken as it is.
func readEnvironment(root string, patient time.Time) ([]byte, error) {
	for ; ; time.Sleep(time.Millisecond) {
		environment, err := readAtOnce(filepath.Join(root, "environ"))
		if err != nil || len(environment) > 0 || time.Now().After(patient) {
			return environment, err
		}
		if _, err := os.Readlink(filepath.Join(root, "exe")); err != nil { // a thread of the kernel, or a zombie
			return nil, err
		}
		stat, err := os.ReadFile(filepath.Join(root, "stat"))
		if err != nil {
			return nil, err
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from field 3
		if len(fields) < 49 || fields[23] != "0" && fields[47] == fields[48] {
			return nil, nil
		}
	}
}

// readAtOnce reads a file of a process in one call: between two, execve(2) could take away the memory that it is read from, which looks
// like its end.
func readAtOnce(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for size := 16 << 10; ; size *= 2 { // an environment has 6 MiB at most: execve(2), limits on size
		content := make([]byte, size)
		n, err := file.ReadAt(content, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n < size {
			return content[:n], nil
		}
	}
}

// readStat reads the session, field 6 of a process's stat, and when it started, field 22: clock ticks of 1/100 s since boot
// (proc(5)).
func (p *Process) readStat(root string) error {
	raw, err := os.ReadFile(filepath.Join(root, "stat"))
	if err != nil {
		return err
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:])) // from field 3
	if len(fields) < 20 {
		return errors.New("short stat")
	}
	p.session = fields[3] == strconv.Itoa(p.PID)
	if p.ticks, err = strconv.ParseInt(fields[19], 10, 64); err != nil {
		return err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return err
	}
	p.Started = time.Now().Add(time.Duration(p.ticks*10)*time.Millisecond - time.Duration(now.Nano()))
	return nil
}

// handle refers to one process for good: unlike a pid, it never comes to mean another.
type handle struct {
	pid int
	fd  int
}

// hold takes hold of the process that has the number now.
func hold(name string, pid int) (handle, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return handle{}, fmt.Errorf("taking hold of %s (process %d): %w", name, pid, err)
	}
	return handle{pid: pid, fd: fd}, nil
}

// open takes hold of a process and checks that it still is the one that was found.
func open(p Process, dir state.Dir) (handle, error) {
	h, err := hold(p.Name, p.PID)
	if err != nil {
		return handle{}, err
	}
	again, ok := inspect(p.PID, dir, time.Now().Add(patience))
	if !ok || again.Name != p.Name || again.Spec != p.Spec {
		h.close()
		return handle{}, fmt.Errorf("%s (process %d) has ended", p.Name, p.PID)
	}
	return h, nil
}

func (h handle) close() { _ = unix.Close(h.fd) }

func (h handle) signal(sig syscall.Signal) error {
	err := unix.PidfdSendSignal(h.fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// wait returns when the process has ended, or with the context's error.
func (h handle) wait(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Poll wakes up now and then to look at the context; the end of the process wakes it at once.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, 200) //nolint:gosec // G115: a file descriptor fits
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for process %d: %w", h.pid, err)
		}
		if n > 0 {
			return nil
		}
	}
}

// stop asks a process to end, and ends it if it has not after the grace period.
func (h handle) stop(ctx context.Context, grace time.Duration) error {
	if err := h.signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping process %d: %w", h.pid, err)
	}
	waiting, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := h.wait(waiting); err == nil || ctx.Err() != nil {
		return err
	}
	if err := h.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing process %d: %w", h.pid, err)
	}
	return h.wait(ctx)
}

// Stop ends every process that the filter chooses, all at once, and returns when they are gone, and those that they started meanwhile.
func Stop(ctx context.Context, dir state.Dir, grace time.Duration, choose func(Process) bool) (stopped []Process, err error) {
	for {
		round, err := stopFound(ctx, dir, grace, choose)
		stopped = append(stopped, round...)
		if err != nil || len(round) == 0 {
			return stopped, err
		}
	}
}

func stopFound(ctx context.Context, dir state.Dir, grace time.Duration, choose func(Process) bool) (stopped []Process, err error) {
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
			defer h.close()
			errs <- h.stop(ctx, grace)
		}()
	}
	for range stopped {
		err = errors.Join(err, <-errs)
	}
	return stopped, err
}
