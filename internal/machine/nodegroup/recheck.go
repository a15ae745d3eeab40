// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"log/slog"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"muster.dev/muster/api/v1alpha1"
)

const (
	// gather is how long changes are gathered before machines are asked for: an edit of aws-auth comes with others, and
	// the authenticator hears of it when this program does.
	gather = 100 * time.Millisecond
	// recheckPause is the least time between two rounds of questions. A round that found the authenticator before it
	// had heard is made good by the next.
	recheckPause = time.Second
)

// rechecker has all machines that joined by role checked again when the set of admitted principals may have changed.
type rechecker struct {
	management client.Reader
	cluster    string // whose machines are asked for
	changed    <-chan struct{}
	memory     *memory
	nudges     chan<- event.TypedGenericEvent[string]
	log        *slog.Logger
}

// Start asks until the context ends. Each change makes two rounds, the first at once and the second when the
// authenticator has heard of it for certain; of changes that come faster than that some are of one round.
func (r *rechecker) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
		}
		for last := false; ; {
			if !idle(ctx, gather) {
				return nil
			}
			r.drain()
			r.round(ctx)
			if !idle(ctx, recheckPause-gather) {
				return nil
			}
			if more := r.drain(); last && !more {
				break
			} else {
				last = !more
			}
		}
	}
}

// drain takes a change that is waiting.
func (r *rechecker) drain() bool {
	select {
	case <-r.changed:
		return true
	default:
		return false
	}
}

func (r *rechecker) round(ctx context.Context) {
	var list v1alpha1.MachineList
	if err := r.management.List(ctx, &list); err != nil {
		if ctx.Err() == nil {
			r.log.WarnContext(ctx, "cannot list machines; that one is not let in any more is noticed later", "error", err)
		}
		return
	}
	r.memory.recheck()
	for i := range list.Items {
		if spec := &list.Items[i].Spec; spec.InstanceProfile == "" || spec.ClusterName != r.cluster {
			continue
		}
		select {
		case r.nudges <- event.TypedGenericEvent[string]{Object: list.Items[i].Name}:
		case <-ctx.Done():
			return
		}
	}
}

// idle waits, and reports whether the context goes on.
func idle(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
