// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/statedir"
)

// The names of the service's own two processes.
const (
	ProcessServe = "serve"
	ProcessGuard = "guard"
)

// Whatever process dies is started again by the service; the guard is who starts the service again, and the service
// starts the guard again. Each is one supervised process of the other.

func serveSpec(dir statedir.Dir, binDir string) component.Spec {
	return component.Spec{
		Name: ProcessServe,
		Path: filepath.Join(binDir, "muster"),
		Args: []string{"serve", "--guarded", "--state-dir=" + string(dir)},
	}
}

func guardSpec(dir statedir.Dir, binDir string) component.Spec {
	return component.Spec{
		Name: ProcessGuard,
		Path: filepath.Join(binDir, "muster"),
		Args: []string{"guard", "--state-dir=" + string(dir)},
	}
}

// Guard keeps the service of a state directory running until the context ends.
func Guard(ctx context.Context, dir statedir.Dir, binDir string, log *slog.Logger) error {
	if err := os.MkdirAll(dir.Run(), 0o700); err != nil {
		return fmt.Errorf("making directory %s for the guard's lock: %w", dir.Run(), err)
	}
	release, err := lock(dir.GuardLock())
	if err != nil {
		return err
	}
	defer release()
	supervisor, err := supervise.New(supervise.Config{State: dir, Log: log})
	if err != nil {
		return err
	}
	return supervisor.Run(ctx, []component.Spec{serveSpec(dir, binDir)})
}

// StartInBackground starts the guard, which starts the service. It returns at once.
func StartInBackground(dir statedir.Dir, binDir string) error {
	return supervise.Start(dir, guardSpec(dir, binDir))
}
