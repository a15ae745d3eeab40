// SPDX-License-Identifier: Apache-2.0

// Package guard keeps the service of a state directory running: the two processes that start each other again, the lock
// that lets one of each run, and what else runs on the directory. The two are processes of this host, whatever runs
// components: the package uses package supervise itself, and no runner.
//
// The file of the service's lock says which process has it. That process is believed to be the service only while it
// started when the file says, since the number of a process is used again.
//
// What happens if
//
//	the service is killed              the guard starts it again, with a growing pause
//	the guard is killed                the service starts it again
//	a machine keeps a killed service   the thread that waits for the machine's FUSE cannot be killed: the FUSE file systems of that
//	from ending                        machine are ended after some seconds, then those of all machines of the state directory
//	something else does                the guard waits for its end; a service that is started by hand says that the lock is taken
package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/statedir"
)

// The names of the service's own two processes.
const (
	ProcessServe = "serve"
	ProcessGuard = "guard"
)

// Grace is how long the service and its guard may take to end.
const Grace = 10 * time.Second

// ErrRunning means that a service runs on this state directory already.
var ErrRunning = errors.New("a service already runs on this state directory")

// Lock makes sure that one process of a kind runs on a state directory, or returns an error that is ErrRunning.
func Lock(path string) (release func(), err error) {
	holder, err := self()
	if err != nil {
		return nil, err
	}
	release, err = filelock.Hold(path, holder)
	if errors.Is(err, filelock.ErrTaken) {
		return nil, fmt.Errorf("%w (%s is locked); `muster status` shows it", ErrRunning, path)
	}
	return release, err
}

// Whatever process dies is started again by the service; the guard is who starts the service again, and the service
// starts the guard again. Each is one supervised process of the other.

func serveSpec(dir statedir.Dir, binDir string) component.Spec {
	return component.Spec{
		Name: ProcessServe,
		Path: filepath.Join(binDir, "muster"),
		Args: []string{"serve", "--guarded", "--state-dir=" + string(dir)},
	}
}

// Spec is the process of the guard, as the service keeps it running.
func Spec(dir statedir.Dir, binDir string) component.Spec {
	return component.Spec{
		Name: ProcessGuard,
		Path: filepath.Join(binDir, "muster"),
		Args: []string{"guard", "--state-dir=" + string(dir)},
	}
}

// Run keeps the service of a state directory running until the context ends.
func Run(ctx context.Context, dir statedir.Dir, binDir string, log *slog.Logger) error {
	if err := os.MkdirAll(dir.Run(), 0o700); err != nil {
		return fmt.Errorf("making directory %s for the guard's lock: %w", dir.Run(), err)
	}
	release, err := Lock(dir.GuardLock())
	if err != nil {
		return err
	}
	defer release()
	supervisor, err := supervise.New(supervise.Config{State: dir, Log: log})
	if err != nil {
		return err
	}
	if err := supervisor.Apply(ctx, []component.Spec{serveSpec(dir, binDir)}); err != nil {
		return err
	}
	defer Watch(ctx, dir, log)()
	supervisor.Run(ctx)
	return nil
}

// Start starts the guard in the background, which starts the service. It returns at once.
func Start(dir statedir.Dir, binDir string) error {
	return supervise.Start(dir, Spec(dir, binDir))
}

// IsProcess reports whether a process is the service or its guard.
func IsProcess(name string) bool { return name == ProcessServe || name == ProcessGuard }

// StopService ends the service and its guard only; components and machines go on. It returns the machines whose FUSE
// file systems were ended, for which the service waited.
func StopService(ctx context.Context, dir statedir.Dir) (freed []string, err error) {
	stop := Watch(ctx, dir, slog.New(slog.DiscardHandler))
	defer func() { freed = stop() }()
	for {
		stopped, err := supervise.Stop(ctx, dir, Grace, func(p supervise.Process) bool { return IsProcess(p.Name) })
		if err != nil {
			return nil, fmt.Errorf("stopping the service: %w", err)
		}
		if len(stopped) == 0 {
			return nil, nil
		}
	}
}

// Outdated reports whether the service that runs is of another program than this: it has been replaced since the
// service started, or another release of Muster lies in another directory. A service also is outdated if the program of a
// component of a cluster was replaced, as a service notices that when it starts.
func Outdated(dir statedir.Dir) bool {
	own, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return false
	}
	running, err := supervise.Find(dir)
	if err != nil {
		return false
	}
	return supervise.Replaced(running) || slices.ContainsFunc(running, func(p supervise.Process) bool { return p.Name == ProcessServe && p.Executable != own })
}

// Running lists the processes of a state directory, of each machine the first one.
func Running(dir statedir.Dir) ([]supervise.Process, error) {
	found, err := supervise.Find(dir)
	if err != nil {
		return nil, err
	}
	machines, err := local.Running(dir) // whose users are their own
	for id, pid := range machines {
		if !slices.ContainsFunc(found, func(p supervise.Process) bool { return p.PID == pid }) {
			found = append(found, supervise.Process{Name: local.ProcessName(id), PID: pid})
		}
	}
	return found, err
}
