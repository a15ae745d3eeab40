// SPDX-License-Identifier: Apache-2.0

package planeclient

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/watchretry"
)

// Shared is one watch of all Machines for the caches of all managers of a process. Each cluster has a manager, and each
// would otherwise hear of every change of every machine of the account, and keep a copy.
//
// Managers come and go; the watch stays. A manager has a view, whose handlers are taken off with the manager's end. A manager
// that begins while the watch runs waits until the watch has all that was written before, as its own list would have: its
// controllers know nothing of what those of the manager before it wrote a moment ago.
type Shared struct {
	api      client.Reader
	informer toolscache.SharedIndexInformer
}

// NewShared makes a watch by a client of the management plane. It knows nothing until Run has listed.
func NewShared(api client.WithWatch) (*Shared, error) {
	informer := toolscache.NewSharedIndexInformer(watchretry.New(toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			into := &v1alpha1.MachineList{}
			err := api.List(ctx, into, &client.ListOptions{Raw: &o})
			return into, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return api.Watch(ctx, &v1alpha1.MachineList{}, &client.ListOptions{Raw: &o})
		},
	}, api)), &v1alpha1.Machine{}, 0, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	return &Shared{api, informer}, informer.SetTransform(cache.TransformStripManagedFields())
}

// Run watches until the context ends.
func (s *Shared) Run(ctx context.Context) { s.informer.RunWithContext(ctx) }

// newInformer is what a manager's cache makes its informers with: for Machines a view of the one that there is.
func (s *Shared) newInformer(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	if reflect.TypeOf(example) != reflect.TypeFor[*v1alpha1.Machine]() {
		return toolscache.NewSharedIndexInformer(from, example, resync, indexers)
	}
	v := &view{SharedIndexInformer: s.informer, api: s.api}
	v.caughtUp.Store(!s.informer.HasSynced()) // its first list is still to come
	return v
}

// view is a shared informer as the cache of one manager has it. It has run once the manager's cache has, and then hears
// nothing more.
type view struct {
	toolscache.SharedIndexInformer
	api      client.Reader
	ended    atomic.Bool
	caughtUp atomic.Bool // the copy has what was written before the view was made

	mu       sync.Mutex
	handlers []toolscache.ResourceEventHandlerRegistration
}

// Run is [view.RunWithContext].
func (v *view) Run(stop <-chan struct{}) { v.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext waits until the manager's cache ends, and takes its handlers off.
func (v *view) RunWithContext(ctx context.Context) {
	v.catchUp(ctx)
	<-ctx.Done()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended.Store(true)
	for _, one := range v.handlers {
		_ = v.SharedIndexInformer.RemoveEventHandler(one)
	}
	v.handlers = nil
}

const (
	catchUpAgain = 20 * time.Millisecond
	// catchUpFor is how long a manager waits for the watch. A watch that lags for longer is not waited for, as while a manager runs.
	catchUpFor = 30 * time.Second
)

// catchUp returns when the copy is as new as a list that begins now.
func (v *view) catchUp(ctx context.Context) {
	if v.caughtUp.Load() {
		return
	}
	var listed *v1alpha1.MachineList
	_ = wait.PollUntilContextTimeout(ctx, catchUpAgain, catchUpFor, true, func(ctx context.Context) (bool, error) {
		if listed == nil {
			now := &v1alpha1.MachineList{}
			if err := v.api.List(ctx, now); err != nil {
				return false, nil //nolint:nilerr // the API server is away, and is asked again
			}
			listed = now
		}
		return !older(v.LastSyncResourceVersion(), listed.ResourceVersion) || has(v.GetStore(), listed), nil
	})
	v.caughtUp.Store(true)
}

// older reports whether a version is from before another one. A version that cannot be compared counts as older.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order < 0
}

// has reports whether a copy is as new as a list: it has the objects of the list, and others only if they are newer.
func has(copied toolscache.Store, listed *v1alpha1.MachineList) bool {
	names := map[string]bool{}
	for i := range listed.Items {
		m := &listed.Items[i]
		names[m.Name] = true
		o, there, err := copied.GetByKey(m.Name)
		is, ok := o.(*v1alpha1.Machine)
		if err != nil || !there || !ok || older(is.ResourceVersion, m.ResourceVersion) {
			return false
		}
	}
	return !slices.ContainsFunc(copied.List(), func(o any) bool {
		is, ok := o.(*v1alpha1.Machine)
		return ok && !names[is.Name] && older(is.ResourceVersion, listed.ResourceVersion)
	})
}

// HasSynced reports whether the copy has what was written before the view was made.
func (v *view) HasSynced() bool { return v.caughtUp.Load() && v.SharedIndexInformer.HasSynced() }

// IsStopped reports whether the manager's cache has ended, or the watch has.
func (v *view) IsStopped() bool { return v.ended.Load() || v.SharedIndexInformer.IsStopped() }

// SetTransform leaves objects as the watch has them: without managed fields.
func (v *view) SetTransform(toolscache.TransformFunc) error { return nil }

// AddEventHandler adds a handler until the manager's cache ends.
func (v *view) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return v.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler until the manager's cache ends.
func (v *view) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return v.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions adds a handler until the manager's cache ends.
func (v *view) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	added, err := v.SharedIndexInformer.AddEventHandlerWithOptions(handler, options)
	switch {
	case err != nil:
		return nil, err
	case v.ended.Load(): // nobody listens
		return added, v.SharedIndexInformer.RemoveEventHandler(added)
	}
	v.handlers = append(v.handlers, added)
	return added, nil
}

// RemoveEventHandler takes a handler off.
func (v *view) RemoveEventHandler(added toolscache.ResourceEventHandlerRegistration) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.handlers = slices.DeleteFunc(v.handlers, func(one toolscache.ResourceEventHandlerRegistration) bool { return one == added })
	return v.SharedIndexInformer.RemoveEventHandler(added)
}
