// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"muster.dev/muster/internal/node/bootreport"
)

// heldInterval is how often it is looked whether a program is held, or is no more.
const heldInterval = 200 * time.Millisecond

// errHeld is how a program ended that a drill keeps from running.
var errHeld = errors.New("is held by a drill")

// diskRoot is where a machine has its disk.
const diskRoot = "/"

// isHeld reports whether a drill keeps a program of the machine with a disk from running.
func isHeld(disk, name string) bool { return exists(filepath.Join(disk, bootreport.HeldPrefix+name)) }

// forgetDrills removes what a drill left on the disk of a machine that boots: the host gives a drill that goes on to the
// machine once more.
func forgetDrills(disk string) error {
	left, err := filepath.Glob(filepath.Join(disk, bootreport.HeldPrefix+"*"))
	for _, path := range append(left, filepath.Join(disk, bootreport.FillerPath)) {
		if removed := os.Remove(path); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("removing what a drill left: %w", removed))
		}
	}
	return err
}

// held waits until a program that runs is held, and closes the channel then.
func held(ctx context.Context, disk, name string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		if poll(ctx, heldInterval, func() bool { return isHeld(disk, name) }) {
			close(done)
		}
	}()
	return done
}

// mayRun waits while a drill keeps a program from running. It reports false when the context has ended.
func mayRun(ctx context.Context, log *slog.Logger, disk, name string) bool {
	if !isHeld(disk, name) {
		return ctx.Err() == nil
	}
	log.Warn("a drill keeps a program from running", "program", name)
	free := poll(ctx, heldInterval, func() bool { return !isHeld(disk, name) })
	if free {
		log.Info("the drill has ended, the program may run again", "program", name)
	}
	return free
}
