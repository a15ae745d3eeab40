// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// reaper starts processes and waits for all that end, its own and those that it inherits as process number one. Two
// parts of one process cannot both wait for children: the one that waits for any child takes those of the other. So no
// part of the agent may use os/exec.
type reaper struct {
	mutex   sync.Mutex
	waiting map[int]chan<- unix.WaitStatus
}

func newReaper() *reaper { return &reaper{waiting: map[int]chan<- unix.WaitStatus{}} }

// start starts a process in a session of its own, with its output in a file. The channel says how it ended.
func (r *reaper) start(path string, args, env []string, output *os.File) (pid int, ended <-chan unix.WaitStatus, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, fmt.Errorf("starting %s: %w", path, err)
	}
	defer func() { _ = null.Close() }()
	return r.startWith(path, args, env, null, output, output)
}

// startWith is start with a file for its input, and one for what it complains of.
func (r *reaper) startWith(path string, args, env []string, input, output, complaints *os.File) (pid int, ended <-chan unix.WaitStatus, err error) {
	done := make(chan unix.WaitStatus, 1)
	// A child may end before its number is noted: until then nobody may wait.
	r.mutex.Lock()
	defer r.mutex.Unlock()
	pid, err = syscall.ForkExec(path, append([]string{path}, args...), &syscall.ProcAttr{
		Dir:   "/",
		Env:   env,
		Files: []uintptr{input.Fd(), output.Fd(), complaints.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, nil, fmt.Errorf("starting %s: %w", path, err)
	}
	r.waiting[pid] = done
	return pid, done, nil
}

// run reaps until the context ends.
func (r *reaper) run(ctx context.Context) {
	children := make(chan os.Signal, 1) // a single signal is enough: each time all ended children are reaped
	signal.Notify(children, unix.SIGCHLD)
	defer signal.Stop(children)
	for {
		r.reap()
		select {
		case <-children:
		case <-ctx.Done():
			return
		}
	}
}

func (r *reaper) reap() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 { // no children, or none that has ended
			return
		}
		if done, ok := r.waiting[pid]; ok {
			delete(r.waiting, pid)
			done <- status
		}
	}
}

// describe says how a process ended.
func describe(status unix.WaitStatus) string {
	if status.Signaled() {
		return "signal " + unix.SignalName(status.Signal())
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
