// SPDX-License-Identifier: Apache-2.0

package readcache

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/platform/lru"
)

// rememberedGone is how many deleted objects are remembered, whose deletion may be reported before the write is
// answered.
const rememberedGone = 1024

// Writes knows what this process wrote to an API server and which informers have not reported yet.
type Writes struct {
	group string
	now   func() time.Time
	// patience is that of the package; tests have other ones.
	patience time.Duration

	mu     sync.Mutex
	number uint64
	kinds  map[string]*written // by resource, such as clusters
	gone   *lru.Map[types.UID, struct{}]
}

// written is what was written of one kind that is followed.
type written struct {
	store   cache.Store
	waiting map[string][]fence // by the key of the object; unknown objects are ""
	fewer   chan struct{}      // closed when some are waited for no more
}

// NewWrites makes a Writes for the kinds of an API group. Its transport must be in every client of the process that
// writes them: see [Writes.Wrap].
func NewWrites(group string) *Writes {
	return &Writes{group: group, now: time.Now, patience: patience, kinds: map[string]*written{}, gone: lru.New[types.UID, struct{}](rememberedGone)}
}

// follow begins to remember the writes of a kind, which a store is to have. It is called before the store's objects are
// first listed; an earlier store of the kind is forgotten.
func (w *Writes) follow(resource string, store cache.Store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kinds[resource] = &written{store: store, waiting: map[string][]fence{}, fewer: make(chan struct{})}
}

// follows reports whether the writes of a kind are remembered.
func (w *Writes) follows(resource string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kinds[resource] != nil
}

// note takes a write that was answered, or whose answer did not come.
func (w *Writes) note(resource, key string, f fence) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.kinds[resource]
	if k == nil {
		return
	}
	if _, gone := w.gone.Get(f.uid); gone && f.uid != "" {
		return
	}
	w.number++
	f.number, f.noted = w.number, w.now()
	if f.until = f.noted.Add(fenceFor); f.doubtful() {
		f.until = f.noted.Add(doubtFor)
	}
	k.waiting[key] = append(k.waiting[key], f)
	w.look(k, key)
}

// reported takes that the store has changed.
func (w *Writes) reported(resource string, store cache.Store, o any, deleted bool) {
	object := accessor(o)
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if object == nil || err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.kinds[resource]
	if k == nil || k.store != store {
		return
	}
	if deleted {
		w.gone.Put(object.GetUID(), struct{}{})
		before := len(k.waiting[key])
		k.waiting[key] = slices.DeleteFunc(k.waiting[key], func(f fence) bool { return f.ended(object.GetUID()) })
		k.tell(len(k.waiting[key]) < before)
	}
	w.look(k, key)
}

// look compares the fences of an object with its copy. The lock is held.
func (w *Writes) look(k *written, key string) {
	all := k.waiting[key]
	if len(all) == 0 {
		delete(k.waiting, key)
		return
	}
	o, there, err := k.store.GetByKey(key)
	object := accessor(o)
	if err != nil || !there {
		object = nil
	}
	left := remaining(all, object, w.now())
	if len(left) == 0 {
		delete(k.waiting, key)
	} else {
		k.waiting[key] = left
	}
	k.tell(len(left) < len(all))
}

// tell wakes those that wait. The lock is held.
func (k *written) tell(fewer bool) {
	if fewer {
		close(k.fewer)
		k.fewer = make(chan struct{})
	}
}

// progress is how far a kind's copy is.
type progress uint8

const (
	caughtUp progress = iota + 1
	behind
	late // for too long to wait, or nobody knows for how long
)

// caughtUp waits until a kind's copy has all writes that have been answered by now, and reports whether it has. It
// waits for no write longer than patience after its answer.
func (w *Writes) caughtUp(ctx context.Context, resource string) bool {
	w.mu.Lock()
	last := w.number
	w.mu.Unlock()
	var timer *time.Timer
	for {
		is, changed := w.progress(resource, last)
		if is != behind {
			return is == caughtUp
		}
		if timer == nil {
			timer = time.NewTimer(w.patience)
			defer timer.Stop()
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// progress says how far a kind's copy is with the writes up to one, and returns what is closed when that has changed.
func (w *Writes) progress(resource string, last uint64) (progress, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.kinds[resource]
	if k == nil {
		return late, nil
	}
	is, now := caughtUp, w.now()
	for key, all := range k.waiting {
		all = slices.DeleteFunc(all, func(f fence) bool { return !now.Before(f.until) })
		if k.waiting[key] = all; len(all) == 0 {
			delete(k.waiting, key)
		}
		for _, f := range all {
			switch {
			case f.number > last:
			case f.doubtful(), now.Sub(f.noted) > w.patience:
				return late, nil
			default:
				is = behind
			}
		}
	}
	return is, k.fewer
}
