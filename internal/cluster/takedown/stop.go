// SPDX-License-Identifier: Apache-2.0

package takedown

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/cluster/guard"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/memorylimit"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/storage/filestore"
	"muster.dev/muster/internal/storage/volumemount"
)

// machinesGrace is how long machines may take to shut down.
const machinesGrace = 10 * time.Second

// The order in which a cluster stops: first the processes that would start others again, then machines (Stop) while
// their API server still answers, and etcd last. Stopping needs no running service, so it works after any crash.
var stopOrder = []struct {
	what   string
	grace  time.Duration
	choose func(name string) bool
}{
	{"service", guard.Grace, guard.IsProcess},
	{"controllers", 5 * time.Second, isAnyComponent(component.CertificateController, component.ControllerManager, component.Scheduler, component.Simulator, component.Karpenter)},
	{"API servers", 10 * time.Second, isAPIServer},
	{"everything else", 10 * time.Second, func(string) bool { return true }},
}

// isAnyComponent chooses components by name, those of every cluster.
func isAnyComponent(names ...string) func(string) bool {
	return func(process string) bool {
		_, name := component.SplitProcess(process)
		return slices.Contains(names, name)
	}
}

func isAPIServer(process string) bool {
	_, name := component.SplitProcess(process)
	_, found := component.ServerSlot(name)
	return found
}

// Stop has a runner end every process of a state directory, reports how many it ended, removes their control groups, and
// unmounts machines' disks. It removes nothing of the directory.
func Stop(ctx context.Context, dir statedir.Dir, running runner.Runner, progress func(what string, count int)) error {
	freed := guard.Watch(ctx, dir, slog.New(slog.DiscardHandler))
	defer freed()
	for i, step := range stopOrder {
		// Until none is found: a guard that is stopped a moment after its service has started another one meanwhile.
		for {
			stopped, err := running.Stop(ctx, step.grace, step.choose)
			if err != nil {
				return fmt.Errorf("stopping %s: %w", step.what, err)
			}
			if len(stopped) == 0 {
				break
			}
			progress(step.what, len(stopped))
		}
		if i > 0 {
			continue
		}
		if machines := freed(); len(machines) > 0 {
			progress("FUSE file systems on "+strings.Join(machines, ", ")+", for which the service waited", len(machines))
		}
		ended, err := local.End(ctx, dir, machinesGrace)
		if err != nil {
			return err
		}
		if ended > 0 {
			progress("machines", ended)
		}
	}
	return errors.Join(memorylimit.RemoveProcesses(dir, ""), releaseDisks(dir))
}

// releaseDisks unmounts the disks of machines, and detaches the loop devices of files on them, and those of volumes.
func releaseDisks(dir statedir.Dir) error {
	if !local.Possible() {
		return nil
	}
	if err := local.ReleaseDisks(dir); err != nil {
		return err
	}
	return volumemount.DetachAll(filestore.New(dir.FileSystems())) // which no machine is lent any more
}
