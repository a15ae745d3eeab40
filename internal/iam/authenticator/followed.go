// SPDX-License-Identifier: Apache-2.0

package authenticator

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
)

// followed tells once that objects are not followed any more, and once that they are again: requests for them are made
// again all the time, for hours if somebody took the right to read them away.
type followed struct {
	inner  cache.ListerWatcherWithContext
	kind   string
	failed func() // told of each request that fails
	now    func() time.Time
	logger *slog.Logger

	mu     sync.Mutex
	broken time.Time // when they were not followed any more; zero while they are
}

// listWatch makes the requests.
func (f *followed) listWatch() *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := f.inner.ListWithContext(ctx, o)
			switch {
			case ctx.Err() != nil:
			case apierrors.IsNotFound(err): // the kind is not installed, which is an answer
				f.again()
			case err != nil:
				f.ended(err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			stream, err := f.inner.WatchWithContext(ctx, o)
			switch {
			case ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err): // they are listed anew
			case err != nil:
				f.ended(err)
			default: // and not when they could be listed: one may be allowed without the other
				f.again()
			}
			return stream, err
		},
	}
}

func (f *followed) ended(err error) {
	f.failed()
	f.mu.Lock()
	first := f.broken.IsZero()
	if first {
		f.broken = f.now()
	}
	f.mu.Unlock()
	if first {
		f.logger.Warn("mappings are not followed, what was read before counts until they are again", "kind", f.kind, "error", err)
		return
	}
	f.logger.Debug("mappings are still not followed", "kind", f.kind, "error", err)
}

func (f *followed) again() {
	f.mu.Lock()
	since := f.broken
	f.broken = time.Time{}
	f.mu.Unlock()
	if !since.IsZero() {
		f.logger.Info("mappings are followed again", "kind", f.kind, "not_for", f.now().Sub(since).String())
	}
}
