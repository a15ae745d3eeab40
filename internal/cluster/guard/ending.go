// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/process"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/steps"
	"muster.dev/muster/internal/platform/userns"
)

// Root on a machine can have a path there that never answers: a FUSE file system whose program hangs. A thread of the
// service that waits there cannot be killed, so a service that is killed or exits meanwhile does not end: it keeps its
// lock and its ports, and no other service can begin. Whoever waits for the end of a service therefore ends the FUSE
// file systems of the machine that the thread is in.

const (
	// endPatience is how long a service that was killed or has exited may take to end by itself.
	endPatience = 3 * time.Second
	// endLimit is how long a service that was killed or has exited is waited for.
	endLimit = 10 * time.Second
	// endAgain is the pause between two attempts to end what a service waits for.
	endAgain = time.Second
	// endLook is the pause between two looks at the process of the service.
	endLook = 250 * time.Millisecond
)

// self is what the holder of a lock says of itself: its number, and when it started, since numbers are used again.
func self() (string, error) {
	stat, err := process.ReadStat("/proc/self")
	if err != nil {
		return "", fmt.Errorf("reading when this process started: %w", err)
	}
	return fmt.Sprintf("%d %d", os.Getpid(), stat.Ticks), nil
}

// usersEnding returns the users of the threads that a service has left, if the service was killed or has exited. The
// list is empty if the service runs, has ended, or cannot be found.
func usersEnding(dir statedir.Dir) []uint32 {
	var pid int
	var ticks int64
	if _, err := fmt.Sscan(filelock.Holder(filepath.Dir(dir.Lock()), filepath.Base(dir.Lock())), &pid, &ticks); err != nil {
		return nil // a service of an earlier Muster holds it, or none ever did
	}
	root := filepath.Join("/proc", strconv.Itoa(pid))
	if stat, err := process.ReadStat(root); err != nil || stat.Ticks != ticks {
		return nil
	}
	ending, users, err := process.Threads(root)
	if err != nil || !ending {
		return nil
	}
	return users
}

// AwaitEnd returns when a service of a state directory that was killed or has exited has ended, or after a while: the
// lock then says whether the service has. It returns at once if the service runs, or if there is none. After some
// seconds it ends the FUSE file systems of machines that the service may wait for, and logs and returns which machines.
func AwaitEnd(ctx context.Context, dir statedir.Dir, log *slog.Logger) (freed []string) {
	begun := time.Now()
	tries, next := 0, begun.Add(endPatience)
	for time.Since(begun) < endLimit {
		users := usersEnding(dir)
		if len(users) == 0 {
			return freed
		}
		if time.Now().After(next) {
			ended, err := endFUSE(dir, users, tries > 0)
			tries, next = tries+1, time.Now().Add(endAgain)
			if err != nil {
				log.Error("ending what a service waits for that was killed", "error", err)
			}
			if ended = slices.DeleteFunc(ended, func(id string) bool { return slices.Contains(freed, id) }); len(ended) > 0 {
				freed = append(freed, ended...)
				log.Warn("ended the FUSE file systems of machines, since a service that was killed waits for them and cannot end", "machines", strings.Join(ended, " "))
			}
		}
		if steps.Pause(ctx, endLook) != nil {
			return freed
		}
	}
	return freed
}

// Watch has AwaitEnd look after the service of a state directory until the context ends or stop is called. Stop waits
// for a service that is ending, and returns the machines whose FUSE file systems were ended.
func Watch(ctx context.Context, dir statedir.Dir, log *slog.Logger) (stop func() (freed []string)) {
	stopping, done := make(chan struct{}), make(chan []string, 1)
	go func() {
		freed := map[string]bool{}
		for last := false; ; {
			for _, id := range AwaitEnd(ctx, dir, log) {
				freed[id] = true
			}
			if last || ctx.Err() != nil {
				break
			}
			select {
			case <-stopping:
				last = true
			case <-ctx.Done():
			case <-time.After(endAgain):
			}
		}
		done <- slices.Sorted(maps.Keys(freed))
	}()
	return sync.OnceValue(func() []string {
		close(stopping)
		return <-done
	})
}

// endFUSE ends the FUSE file systems of the machines that some of the users are of, which a thread becomes that visits a
// machine; of all machines if there is no such machine, or if all is true.
func endFUSE(dir statedir.Dir, users []uint32, all bool) (ended []string, err error) {
	running, err := local.Running(dir)
	if err != nil {
		return nil, err
	}
	var errs []error
	machines, visited := map[string]userns.IDs{}, map[string]userns.IDs{}
	for id, pid := range running {
		ids, err := userns.Of(pid)
		if err != nil {
			errs = append(errs, fmt.Errorf("machine %s: %w", id, err))
			continue
		}
		if !ids.Own() { // its root is the host's
			continue
		}
		machines[id] = ids
		if slices.ContainsFunc(users, ids.Has) {
			visited[id] = ids
		}
	}
	if len(visited) == 0 || all {
		visited = machines
	}
	for id, ids := range visited {
		n, err := ids.EndFUSE()
		if err != nil {
			errs = append(errs, fmt.Errorf("machine %s: %w", id, err))
		}
		if n > 0 {
			ended = append(ended, id)
		}
	}
	slices.Sort(ended)
	return ended, errors.Join(errs...)
}
