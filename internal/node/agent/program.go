// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/node/render"
)

// program is one of the programs that make a machine a node. It is started again whenever it ends.
type program struct {
	name string
	// path of the program, if it is not one of muster's.
	path string
	// beside says that the machine is a node without it: its failures are in its own log alone.
	beside bool
	// args are asked for at each start.
	args func() []string
	// repeats leaves out of its log what it says again and again.
	repeats bool
	// heard is told of every line of its output, if it repeats. May be nil.
	heard func(line []byte)
	// restart ends the program, so that it starts anew.
	restart chan struct{}
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
	// goodRun is how long a program must have run for its end not to be counted as one of a row.
	goodRun = 10 * time.Second
	// copyPatience is how long the rest of an ended program's output is waited for.
	copyPatience = time.Second
	// fails is how many short runs in a row are reported.
	fails = 3
	// stopPatience is how long a program may take to end when it is asked to.
	stopPatience = 5 * time.Second
)

// keep runs the program until the context ends.
func (a *agent) keep(ctx context.Context, p *program) {
	pause, short := firstPause, 0
	for mayRun(ctx, a.log, diskRoot, p.name) {
		started := time.Now()
		well := time.AfterFunc(goodRun, func() {
			if !p.beside {
				a.over(bootreport.ProgramFails)
				a.signs.runs(p.name)
			}
		})
		err := a.once(ctx, p)
		well.Stop()
		if ctx.Err() != nil {
			return
		}
		if short++; time.Since(started) >= goodRun || errors.Is(err, errRestarted) || errors.Is(err, errHeld) {
			pause, short = firstPause, 0
		}
		if short >= fails && !p.beside {
			a.signs.fails(p.name, err)
			a.report(bootreport.ProgramFails, fmt.Sprintf("%s ends again and again: %v%s", p.name, err, lastLines(tail(p.log(a), 0, 1))))
		}
		a.log.Warn("program ended, it starts again", "program", p.name, "how", err, "after", time.Since(started), "pause", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// errRestarted is how a program ended that was to start anew.
var errRestarted = errors.New("was restarted")

// log is the file that the program's output goes to.
func (p *program) log(a *agent) string { return filepath.Join(a.config.LogDir, p.name+".log") }

// once runs the program until it ends, and says how that was.
func (a *agent) once(ctx context.Context, p *program) error {
	output, copied, err := a.output(p)
	if err != nil {
		return err
	}
	pid, ended, err := a.reaper.start(cmp.Or(p.path, programPath(a, p.name)), p.args(), append(environment(), render.Environment(a.current(), p.name)...), output)
	_ = output.Close()
	if err != nil {
		return err
	}
	a.log.Info("program started", "program", p.name, "pid", pid)
	running, ends := context.WithCancel(ctx)
	defer ends()
	select {
	case <-held(running, diskRoot, p.name):
		a.stop(pid, ended)
		return errHeld
	case status := <-ended:
		select {
		case <-copied:
		case <-time.After(copyPatience): // its children hold on to its output
		}
		return fmt.Errorf("%s", describe(status))
	case <-p.restart:
		a.stop(pid, ended)
		return errRestarted
	case <-ctx.Done():
		return ctx.Err()
	}
}

// output is where a program's output goes: its log, or a pipe to what writes that. The channel is closed when all of it
// is in the log.
func (a *agent) output(p *program) (*os.File, <-chan struct{}, error) {
	copied := make(chan struct{})
	log, err := openLog(p.log(a))
	if err == nil {
		if err = showLog(a, log); err != nil {
			_ = log.Close()
		}
	}
	if err != nil || !p.repeats {
		close(copied)
		return log, copied, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		_ = log.Close()
		return nil, nil, fmt.Errorf("making a pipe for the output of %s: %w", p.name, err)
	}
	go func() {
		defer close(copied)
		defer func() { _ = log.Close() }()
		defer func() { _ = read.Close() }()
		r := &repeats{out: log, now: time.Now, heard: p.heard, said: map[string]*repeat{}}
		for r.copyLines(read) != nil { // the disk may be full; a program that nobody reads would stand still
			if _, err := io.CopyN(io.Discard, read, longestLine); err != nil {
				return
			}
		}
	}()
	return write, copied, nil
}

// stop asks a program to end, and makes it if it takes too long.
func (a *agent) stop(pid int, ended <-chan unix.WaitStatus) {
	_ = unix.Kill(pid, unix.SIGTERM)
	select {
	case <-ended:
	case <-time.After(stopPatience):
		_ = unix.Kill(pid, unix.SIGKILL)
		<-ended
	}
}

// programPath is the path of a program. Programs of Kubernetes are of the release that the machine was launched with.
func programPath(a *agent, name string) string {
	return a.self().Release.Program(a.config.BinDir, name)
}

// environment is what programs see: not what the agent was started with, by which the machine is found from outside.
func environment() []string {
	return []string{"HOME=/root", "PATH=" + os.Getenv("PATH")}
}

func openLog(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log %s: %w", path, err)
	}
	return file, nil
}

// run runs a program to its end, for its effect.
func (a *agent) run(ctx context.Context, name string, args ...string) error {
	output, err := openLog(filepath.Join(a.config.LogDir, "node.log"))
	if err != nil {
		return err
	}
	pid, ended, err := a.reaper.start(programPath(a, name), args, environment(), output)
	_ = output.Close()
	if err != nil {
		return err
	}
	select {
	case status := <-ended:
		if status.Exited() && status.ExitStatus() == 0 {
			return nil
		}
		return fmt.Errorf("%s: %s", name, describe(status))
	case <-ctx.Done():
		_ = unix.Kill(pid, unix.SIGKILL)
		return ctx.Err()
	}
}

// newLogger logs as the rest of muster does.
func newLogger() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }
