// SPDX-License-Identifier: Apache-2.0

package watchretry

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// Informer keeps a copy of the objects of one kind and reports each change, for revocations: those may not be late.
//
// An informer of client-go's lists again only after a pause of 0.8 s to 1.6 s, and each API server that was started
// again makes it list again ("too old resource version"). The pause of an Informer is 0.1 s at first and 0.4 s at most.
// An object that was deleted and made again under its name while nobody watched is reported as both. It lists and
// watches as informers always have: streaming lists save memory where there is a lot, and there is not.
type Informer struct {
	reflector *cache.Reflector
	store     cache.Store
	handler   cache.ResourceEventHandler
	synced    atomic.Bool
}

// NewInformer makes an Informer of objects like the example. Handle must be called before Run.
func NewInformer(from cache.ListerWatcher, example runtime.Object) *Informer {
	i := &Informer{store: cache.NewStore(cache.MetaNamespaceKeyFunc), handler: cache.ResourceEventHandlerFuncs{}}
	i.reflector = cache.NewReflectorWithOptions(plain{listerWatcher{from, informerPause}}, example, reflected{i}, cache.ReflectorOptions{
		Backoff: &wait.Backoff{Duration: firstPause, Cap: informerPause, Factor: 2, Jitter: 0.5, Steps: int(time.Minute / firstPause)},
	})
	return i
}

// Handle sets the one handler of changes. It is called for one change at a time and must not wait.
func (i *Informer) Handle(handler cache.ResourceEventHandler) { i.handler = handler }

// Run lists and watches until the context ends.
func (i *Informer) Run(ctx context.Context) { i.reflector.RunWithContext(ctx) }

// Store holds the objects as they were last reported.
func (i *Informer) Store() cache.Store { return i.store }

// HasSynced reports whether the first list has been reported.
func (i *Informer) HasSynced() bool { return i.synced.Load() }

type plain struct{ listerWatcher }

// IsWatchListSemanticsUnSupported keeps the reflector from streaming lists.
func (plain) IsWatchListSemanticsUnSupported() bool { return true }

// reflected is what the reflector of an Informer calls, one call at a time.
type reflected struct{ *Informer }

var _ cache.ReflectorStore = reflected{}

func (r reflected) Add(o any) error { return r.Update(o) }

func (r reflected) Update(now any) error {
	before, known, err := r.store.Get(now)
	if err != nil {
		return err
	}
	if err := r.store.Update(now); err != nil {
		return err
	}
	switch {
	case !known:
		r.handler.OnAdd(now, !r.HasSynced())
	case sameObject(before, now):
		r.handler.OnUpdate(before, now)
	default:
		r.handler.OnDelete(before)
		r.handler.OnAdd(now, false)
	}
	return nil
}

func (r reflected) Delete(o any) error {
	if err := r.store.Delete(o); err != nil {
		return err
	}
	r.handler.OnDelete(o)
	return nil
}

// Replace takes a new list: first what is not in it any more is reported as deleted.
func (r reflected) Replace(objects []any, _ string) error {
	listed := make(map[string]bool, len(objects))
	for _, o := range objects {
		key, err := cache.MetaNamespaceKeyFunc(o)
		if err != nil {
			return err
		}
		listed[key] = true
	}
	for _, key := range r.store.ListKeys() {
		if listed[key] {
			continue
		}
		if o, known, err := r.store.GetByKey(key); err == nil && known {
			if err := r.Delete(o); err != nil {
				return err
			}
		}
	}
	for _, o := range objects {
		if err := r.Update(o); err != nil {
			return err
		}
	}
	r.synced.Store(true)
	return nil
}

func (r reflected) Resync() error { return nil }

func sameObject(a, b any) bool {
	before, err := meta.Accessor(a)
	if err != nil {
		return false
	}
	now, err := meta.Accessor(b)
	return err == nil && before.GetUID() == now.GetUID()
}
