// SPDX-License-Identifier: Apache-2.0

// Package nsenter runs a program inside a machine: in the namespaces, the root directory and the control groups of its
// first process, on a terminal of the machine's own if there is to be one. nsenter(1) takes the way in, since only a
// program of one thread may enter a user namespace (setns(2)), and becomes the program, so that no signal and no exit
// code is lost. Nothing of the machine's is run before that.
package nsenter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/userns"
)

// ErrNoCommand says that the machine has no such program.
var ErrNoCommand = errors.New("no such program on the machine")

// ErrBooting says that the machine has no files of its own yet.
var ErrBooting = errors.New("the machine is still booting: try again in a moment")

// grace is how long a program that was told to end may take.
const grace = 5 * time.Second

// Config says what to run and where.
type Config struct {
	// PID of the machine's first process.
	PID int
	// IDs are the machine's if it has a user namespace of its own.
	IDs userns.IDs
	// Still tells, once the process is held, whether it is the one that was meant: its number may have been taken by
	// another.
	Still func() bool
	// Args are the program and its arguments; if they are empty, a login shell runs.
	Args []string
	// Env is the environment; its PATH is where the program is looked for.
	Env []string
	// Dir is the directory to start in, or "/" if the machine has no such directory.
	Dir string
	// TTY gives the program a terminal of the machine's, connected to In and Out.
	TTY          bool
	In, Out, Err *os.File
}

// Run returns the exit code of the program: 128 and its number for a signal. An error means that it did not run.
func Run(ctx context.Context, cfg Config) (int, error) {
	held, err := unix.PidfdOpen(cfg.PID, 0)
	if err != nil {
		return 0, fmt.Errorf("taking hold of the machine's process %d: %w", cfg.PID, err)
	}
	defer func() { _ = unix.Close(held) }()
	if cfg.Still != nil && !cfg.Still() {
		return 0, errors.New("the machine has just stopped")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		*session
		error
	}
	found := make(chan error, 1)
	var to way
	go host.OnThread(func() { found <- to.find(cfg, held) })
	if err := <-found; err != nil {
		return 0, err
	}
	started := make(chan result, 1)
	go host.OnThread(func() {
		s, err := to.start(ctx, cfg, held)
		started <- result{s, err}
	})
	r := <-started
	if r.error != nil {
		to.terminal.close()
		return 0, r.error
	}
	return r.wait()
}

// way is what was found on the machine before the program is run there.
type way struct {
	path     string
	args     []string
	dir      string
	terminal *terminal
}

// find puts the calling thread into the machine's mount namespace, as root there, and looks for the program.
func (w *way) find(cfg Config, held int) error {
	root, err := unix.Open(filepath.Join("/proc", strconv.Itoa(cfg.PID), "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the machine's root directory: %w", err)
	}
	defer func() { _ = unix.Close(root) }()
	if hosts, err := host.IsOwnRoot(root); err != nil || hosts {
		return errors.Join(err, ErrBooting)
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // a mount namespace is for threads that share no directory with others
		return fmt.Errorf("leaving the host's directories: %w", err)
	}
	if err := unix.Setns(held, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("entering the machine's mount namespace: %w", err)
	}
	if err := unix.Fchdir(root); err != nil {
		return fmt.Errorf("entering the machine's root directory: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("entering the machine's root directory: %w", err)
	}
	if cfg.IDs.Own() {
		if err := cfg.IDs.Enter(); err != nil {
			return err
		}
	}
	// From here on, paths are the machine's.
	if w.path, w.args, err = program(cfg.Args, cfg.Env); err != nil {
		return err
	}
	w.dir = "/"
	if info, err := os.Stat(cfg.Dir); err == nil && info.IsDir() {
		w.dir = cfg.Dir
	}
	if cfg.TTY {
		w.terminal, err = openTerminal(cfg.In, cfg.Out)
	}
	return err
}

// start starts the program from the calling thread.
func (w *way) start(ctx context.Context, cfg Config, held int) (*session, error) {
	leave := joinCgroups(cfg.PID)
	defer leave()
	// A process that this thread starts is in the process namespace from its beginning: nsenter(1) would have to stay
	// between.
	if err := unix.Setns(held, unix.CLONE_NEWPID); err != nil {
		return nil, fmt.Errorf("entering the machine's process namespace: %w", err)
	}
	if cfg.IDs.Own() {
		if err := userns.Confine(); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, "nsenter", "--target", strconv.Itoa(cfg.PID), "--mount", "--uts", "--ipc", "--net", "--cgroup", "--root")
	if cfg.IDs.Own() {
		cmd.Args = append(cmd.Args, "--user")
	}
	cmd.Args = append(cmd.Args, "--", "/usr/bin/env", "--chdir="+w.dir, w.path)
	cmd.Args = append(cmd.Args, w.args...)
	cmd.Env, cmd.Dir = cfg.Env, "/"
	cmd.WaitDelay = grace
	s := &session{cmd: cmd, terminal: w.terminal, path: w.path}
	ending := syscall.SIGTERM
	if cfg.TTY {
		ending = syscall.SIGHUP
		s.terminal.give(cmd)
	} else {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = cfg.In, cfg.Out, cfg.Err
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(ending) }
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", w.path, err)
	}
	return s, nil
}

// session is a program that runs on a machine.
type session struct {
	cmd      *exec.Cmd
	terminal *terminal // nil without one
	path     string    // of the program
}

// wait returns the program's exit code.
func (s *session) wait() (int, error) {
	s.terminal.connect()
	err := s.cmd.Wait()
	s.terminal.close()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && s.cmd.ProcessState == nil {
		return 0, fmt.Errorf("waiting for %s: %w", s.path, err)
	}
	if status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return s.cmd.ProcessState.ExitCode(), nil
}

// program finds the executable, and what it is given; without arguments, a shell that reads its profile.
func program(args, env []string) (path string, rest []string, err error) {
	if len(args) == 0 {
		for _, shell := range []string{"/bin/bash", "/bin/sh"} {
			if executable(shell) == nil {
				return shell, []string{"-l"}, nil
			}
		}
		return "", nil, fmt.Errorf("finding a shell: %w: neither /bin/bash nor /bin/sh", ErrNoCommand)
	}
	if strings.Contains(args[0], "/") {
		if err := executable(args[0]); err != nil {
			return "", nil, err
		}
		return args[0], args[1:], nil
	}
	for _, variable := range env {
		dirs, ok := strings.CutPrefix(variable, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(dirs) {
			if path := filepath.Join(dir, args[0]); executable(path) == nil {
				return path, args[1:], nil
			}
		}
	}
	return "", nil, fmt.Errorf("%s: %w", args[0], ErrNoCommand)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", path, ErrNoCommand)
	case err != nil:
		return err
	case info.IsDir() || info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s cannot be executed: %w", path, fs.ErrPermission)
	}
	return nil
}
