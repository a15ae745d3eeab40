// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
)

// watcher looks at all instances of all providers in one place, and nudges the machines whose instances changed state.
// It gathers the steps of joins too, which come in bursts, so that a burst is one nudge.
type watcher struct {
	providers machine.Providers
	interval  time.Duration
	nudges    chan<- event.TypedGenericEvent[string]
	log       *slog.Logger

	seen map[v1alpha1.Provider]map[string]machine.State
	said map[v1alpha1.Provider]string // the last error logged

	mu    sync.Mutex
	moved map[string]struct{} // machines that took a step since the last look
}

func newWatcher(p parts, nudges chan<- event.TypedGenericEvent[string]) *watcher {
	return &watcher{
		providers: p.Providers, interval: p.Poll, nudges: nudges, log: p.Log,
		seen: map[v1alpha1.Provider]map[string]machine.State{}, said: map[v1alpha1.Provider]string{}, moved: map[string]struct{}{},
	}
}

// later has a machine nudged at the next look.
func (w *watcher) later(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved[id] = struct{}{}
}

// Start looks until the context ends.
func (w *watcher) Start(ctx context.Context) error {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		for _, id := range w.look(ctx) {
			select {
			case w.nudges <- event.TypedGenericEvent[string]{Object: id}:
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// look returns the machines to nudge, sorted.
func (w *watcher) look(ctx context.Context) []string {
	w.mu.Lock()
	changed := w.moved
	w.moved = map[string]struct{}{}
	w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.providers)) {
		instances, err := w.providers[name].List(ctx)
		if err != nil {
			if err.Error() != w.said[name] && ctx.Err() == nil {
				w.log.WarnContext(ctx, "cannot list the provider's instances; what dies is not noticed", "provider", string(name), "error", err)
			}
			w.said[name] = err.Error()
			continue
		}
		w.said[name] = ""
		now := make(map[string]machine.State, len(instances))
		for _, instance := range instances {
			now[instance.ID] = instance.State
			// A stopped instance has to be booted. It may have been booted and have died since the last look, which saw
			// it stopped, too.
			if was, ok := w.seen[name][instance.ID]; !ok || was != instance.State || instance.State == machine.Stopped {
				changed[instance.ID] = struct{}{}
			}
		}
		for id := range w.seen[name] {
			if _, ok := now[id]; !ok {
				changed[id] = struct{}{}
			}
		}
		w.seen[name] = now
	}
	return slices.Sorted(maps.Keys(changed))
}
