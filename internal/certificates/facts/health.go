// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
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

// health knows whether a watch goes on. An informer without its watch keeps answering from what it last saw.
type health struct {
	now        func() time.Time
	staleAfter time.Duration
	logger     *slog.Logger
	recovered  func()

	mu     sync.Mutex
	broken time.Time // when it broke; zero while it works
	last   error     // what it broke by
}

// since returns the time at which answers were last known to be true, and whether that is too long ago.
func (h *health) since() (at time.Time, stale bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	if h.broken.IsZero() {
		return now, false
	}
	return h.broken, now.Sub(h.broken) > h.staleAfter
}

// status returns how long the watch has been broken, and by what.
func (h *health) status() (age time.Duration, problem string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken.IsZero() {
		return 0, ""
	}
	return h.now().Sub(h.broken), h.last.Error()
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

// watched reports how each request of a ListerWatcher went. A connection that hangs is noticed by the HTTP/2 health check of
// client-go after 45 s; then the watch ends and the next request fails or works.
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
