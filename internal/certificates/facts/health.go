// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

// staleAfter is how old an inventory may be that certificates are approved by. A machine that was taken off a list must
// not renew for longer.
const staleAfter = 5 * time.Second

// health knows whether a watch goes on. An informer without its watch keeps answering from what it last saw.
type health struct {
	now        func() time.Time
	staleAfter time.Duration
	logger     *slog.Logger
	recovered  func()

	mu     sync.Mutex
	broken time.Time // when it broke; zero while it works
	last   error     // the error that it broke by
	// When it was last heard of: a connection that hangs breaks nothing for long. Zero if nobody listens; then it goes
	// on until it breaks.
	heard time.Time
}

// since returns the time at which answers were last known to be true, and whether that is too long ago.
func (h *health) since() (at time.Time, stale bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known()
}

// known is since, with the lock held.
func (h *health) known() (at time.Time, stale bool) {
	now := h.now()
	at = now
	if !h.heard.IsZero() {
		at = h.heard
	}
	if !h.broken.IsZero() && h.broken.Before(at) {
		at = h.broken
	}
	return at, now.Sub(at) > h.staleAfter
}

// status returns for how long answers have not been known to be true, and why. A short silence is no problem.
func (h *health) status() (age time.Duration, problem string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, stale := h.known()
	switch age = h.now().Sub(at); {
	case !h.broken.IsZero():
		return age, h.last.Error()
	case stale:
		return age, "nothing was heard of it"
	}
	return 0, ""
}

// old returns since when answers have not been known to be true, if that is too long ago, in words that a reason has.
func (h *health) old() (at time.Time, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, stale := h.known()
	if !stale {
		return at, ""
	}
	why = fmt.Sprintf("what it says is %s old (of %s), and may be %s", h.now().Sub(at).Round(time.Second), at.UTC().Format(time.RFC3339), h.staleAfter)
	if !h.broken.IsZero() {
		why += ": " + h.last.Error()
	}
	return at, why
}

// hear notes that it was there at a moment, and tells of it if it was not heard of for too long before.
func (h *health) hear(at time.Time) {
	h.mu.Lock()
	_, was := h.known()
	if at.After(h.heard) {
		h.heard = at
	}
	_, is := h.known()
	h.mu.Unlock()
	if was && !is {
		h.logger.Info("inventory source heard of again")
		h.recovered()
	}
}

const (
	// listenEvery is how often an API server is asked whether it is there, and listenFor how long it may take to say
	// so, which a busy one may do: together no more than staleAfter.
	listenEvery = 2 * time.Second
	listenFor   = 3 * time.Second
)

// listen asks the source at regular times whether it is reachable, until ctx is done. It does not wait for an answer
// before it asks again.
func (h *health) listen(ctx context.Context, ask func(context.Context) error) {
	var asking sync.WaitGroup
	defer asking.Wait()
	tick := time.NewTicker(listenEvery)
	defer tick.Stop()
	for {
		began := h.now()
		asking.Go(func() {
			ctx, over := context.WithTimeout(ctx, listenFor)
			defer over()
			if ask(ctx) == nil {
				h.hear(began)
			}
		})
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *health) report(err error) {
	h.mu.Lock()
	was, now := h.broken, h.now()
	h.last = err
	switch {
	case err == nil:
		h.broken = time.Time{}
	case was.IsZero():
		h.broken = now
	}
	h.mu.Unlock()
	switch {
	case err != nil && was.IsZero():
		h.logger.Warn("inventory source broken", "error", err)
	case err == nil && !was.IsZero():
		h.logger.Info("inventory source restored", "broken_for", now.Sub(was).String())
		h.recovered()
	}
}

// watched reports how each request of a ListerWatcher went. A connection that hangs is noticed by the HTTP/2 health
// check of client-go after 45 s; then the watch ends and the next request fails or works.
type watched struct {
	inner  cache.ListerWatcher
	health *health
}

var _ cache.ListerWatcherWithContext = watched{}

func (w watched) List(options metav1.ListOptions) (runtime.Object, error) {
	return w.ListWithContext(context.Background(), options)
}

func (w watched) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return w.WatchWithContext(context.Background(), options)
}

func (w watched) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := cache.ToListerWatcherWithContext(w.inner).ListWithContext(ctx, options)
	if ctx.Err() == nil {
		w.health.report(err)
	}
	return list, err
}

func (w watched) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	stream, err := cache.ToListerWatcherWithContext(w.inner).WatchWithContext(ctx, options)
	// A server that cannot stream its list says so this way, and is asked for the list instead.
	unable := options.SendInitialEvents != nil && apierrors.IsInvalid(err)
	if ctx.Err() == nil && !unable {
		w.health.report(err)
	}
	return stream, err
}

// IsWatchListSemanticsUnSupported passes on what the inner one says; fakes in tests cannot stream their lists.
func (w watched) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(w.inner)
}
