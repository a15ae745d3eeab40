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
// Managers come and go; the watch stays. A manager has a view, whose handlers are taken off with the manager's end.
type Shared struct {
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
	return &Shared{informer}, informer.SetTransform(cache.TransformStripManagedFields())
}

// Run watches until the context ends.
func (s *Shared) Run(ctx context.Context) { s.informer.RunWithContext(ctx) }

// newInformer is what a manager's cache makes its informers with: for Machines a view of the one that there is.
func (s *Shared) newInformer(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	if reflect.TypeOf(example) != reflect.TypeFor[*v1alpha1.Machine]() {
		return toolscache.NewSharedIndexInformer(from, example, resync, indexers)
	}
	return &view{SharedIndexInformer: s.informer}
}

// view is a shared informer as the cache of one manager has it. It has run once the manager's cache has, and then hears
// nothing more.
type view struct {
	toolscache.SharedIndexInformer
	ended atomic.Bool

	mu       sync.Mutex
	handlers []toolscache.ResourceEventHandlerRegistration
}

// Run is [view.RunWithContext].
func (v *view) Run(stop <-chan struct{}) { v.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext waits until the manager's cache ends, and takes its handlers off.
func (v *view) RunWithContext(ctx context.Context) {
	<-ctx.Done()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended.Store(true)
	for _, one := range v.handlers {
		_ = v.SharedIndexInformer.RemoveEventHandler(one)
	}
	v.handlers = nil
}

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
