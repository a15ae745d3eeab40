// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/watchretry"
)

// WatchConfig says where objects are read that stand for machines.
type WatchConfig struct {
	// Name of the source; that of its kind if empty.
	Name string
	// Objects lists and watches them.
	Objects cache.ListerWatcher
	// ClusterName limits the source to the machines of one cluster. Empty means all.
	ClusterName string
	// StaleAfter is how long the watch may be broken, or Answers fail, before answers become Unknown; 5 s if 0.
	StaleAfter time.Duration
	// Answers asks the API server that holds them for something small, on the connection of Objects: a connection that
	// hangs is otherwise noticed after 45 s. nil if nobody need ask, as in tests.
	Answers func(context.Context) error
	// OnChange is called after each change. It must be quick.
	OnChange func(Change)
	Now      func() time.Time // time.Now if nil
	Logger   *slog.Logger
}

// Watch is a source that an API server tells about each change. Lookups cost no request.
type Watch struct {
	table
	config    WatchConfig
	elsewhere func(o any) (id, cluster string, ok bool)
	informer  cache.SharedIndexInformer
	handled   cache.ResourceEventHandlerRegistration
	health    *health
}

var _ Source = (*Watch)(nil)

// objects is what a Watch must know about a kind.
type objects struct {
	example runtime.Object
	read    func(o any) (policy.Machine, bool)
	// elsewhere is the ID of a machine of another cluster, and that cluster; nil for kinds that have none.
	elsewhere func(o any) (id, cluster string, ok bool)
	// trim drops what read does not look at, so that thousands of objects stay small.
	trim func(o any)
}

func newWatch(c WatchConfig, kind objects) (*Watch, error) {
	switch {
	case c.Objects == nil:
		return nil, fmt.Errorf("the source %s needs objects to read", c.Name)
	case c.Logger == nil:
		return nil, fmt.Errorf("the source %s needs a logger", c.Name)
	case c.OnChange == nil:
		return nil, fmt.Errorf("the source %s needs somebody to tell about changes", c.Name)
	}
	if c.StaleAfter <= 0 {
		c.StaleAfter = staleAfter
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = c.Logger.With("source", c.Name)
	if kind.elsewhere == nil {
		kind.elsewhere = func(any) (string, string, bool) { return "", "", false }
	}
	w := &Watch{config: c, elsewhere: kind.elsewhere}
	w.health = &health{now: c.Now, staleAfter: c.StaleAfter, logger: c.Logger, recovered: func() { c.OnChange(Change{All: true}) }}
	w.informer = cache.NewSharedIndexInformer(watchretry.New(watched{c.Objects, w.health}), kind.example, 0, kind.indexers())
	w.table = table{name: c.Name, lookup: indexed(w.informer.GetIndexer(), kind.read), current: w.current}
	// Requests that fail are logged where their health is watched, once for each outage.
	silent := func(_ context.Context, _ *cache.Reflector, err error) {
		c.Logger.Debug("inventory watch ended", "error", err)
	}
	var handlerError error
	w.handled, handlerError = w.informer.AddEventHandler(w.handler(kind.read))
	if err := errors.Join(
		handlerError,
		w.informer.SetTransform(func(o any) (any, error) { kind.trim(o); return o, nil }),
		w.informer.SetWatchErrorHandlerWithContext(silent),
	); err != nil {
		return nil, fmt.Errorf("preparing the source %s: %w", c.Name, err)
	}
	return w, nil
}

// Name of the source.
func (w *Watch) Name() string { return w.name }

// Run watches until ctx is done.
func (w *Watch) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Before that everything was Unknown, and of what is absent nobody tells.
		if cache.WaitFor(ctx, "", w.handled.HasSyncedChecker()) {
			w.config.OnChange(Change{All: true})
		}
	}()
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		if w.config.Answers != nil {
			w.health.listen(ctx, w.config.Answers)
		}
	}()
	w.informer.RunWithContext(ctx)
	<-done
	<-listening
}

// Elsewhere finds the other cluster that a machine was launched for.
func (w *Watch) Elsewhere(id string) policy.Fact[string] {
	at, why := w.current()
	if why != "" {
		return policy.DontKnow[string](w.name, why)
	}
	found, err := w.informer.GetIndexer().ByIndex(byElsewhere, id)
	if err != nil {
		return policy.DontKnow[string](w.name, err.Error())
	}
	for _, o := range found {
		if _, cluster, ok := w.elsewhere(o); ok {
			return policy.Know(cluster, w.name, at)
		}
	}
	return policy.None[string](w.name, at)
}

// LastSeen finds a machine in the list that was read last, also if the API server has not answered for long. It is
// Unknown before there is one.
func (w *Watch) LastSeen(id string) policy.Fact[policy.Machine] {
	if !w.informer.HasSynced() {
		_, why := w.current()
		return policy.DontKnow[policy.Machine](w.name, why)
	}
	at, _ := w.health.since()
	last := table{name: w.name, lookup: w.lookup, current: func() (time.Time, string) { return at, "" }}
	return last.Machine(id)
}

// HasSynced reports whether all objects have been read once.
func (w *Watch) HasSynced() bool { return w.informer.HasSynced() }

// Status reports whether the watch goes on.
func (w *Watch) Status() SourceStatus {
	s := SourceStatus{Name: w.name, Synced: w.HasSynced()}
	s.Age, s.Problem = w.health.status()
	return s
}

func (w *Watch) current() (at time.Time, why string) {
	if !w.informer.HasSynced() {
		why = "it has not been read yet"
		if _, problem := w.health.status(); problem != "" {
			why += ": " + problem
		}
		return time.Time{}, why
	}
	return w.health.old()
}

// handler turns events into changes. Most updates, such as a step of a machine's joining, change nothing here.
func (w *Watch) handler(read func(any) (policy.Machine, bool)) cache.ResourceEventHandler {
	tell := func(o any) {
		if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = d.Obj
		}
		if m, ok := read(o); ok {
			w.config.OnChange(ChangeOf(m))
		} else if id, _, ok := w.elsewhere(o); ok {
			w.config.OnChange(Change{Machines: []string{id}})
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		DeleteFunc: tell,
		UpdateFunc: func(before, after any) {
			a, wasOurs := read(before)
			b, isOurs := read(after)
			if wasOurs != isOurs || !reflect.DeepEqual(a, b) {
				w.config.OnChange(ChangeOf(a, b))
			}
		},
	}
}
