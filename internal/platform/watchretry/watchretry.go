// SPDX-License-Identifier: Apache-2.0

// Package watchretry retries list and watch within half a second after an API server outage.
//
// A reflector of client-go's asks again after pauses that double, up to a minute, and a server that has just been
// started makes that worse: it takes connections before it knows what anybody may do (RBAC), so all that waited for it
// are refused, and double their pauses once more. Many clients spare a server so. The few that nodes wait for, and
// those that revoke, ask two to four times a second. Wrap keeps client-go from pausing below them.
package watchretry

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

const (
	firstPause, longestPause = 100 * time.Millisecond, 500 * time.Millisecond
	// informerPause is the longest of an Informer, which asks twice as often.
	informerPause = 250 * time.Millisecond
	// refusals in a row are those of a server that has just been started. After more, they are meant.
	refusals = 30
)

// New makes requests of another one again until they are answered. The configuration of its client should be given to
// Wrap.
func New(inner cache.ListerWatcher) cache.ListerWatcher { return listerWatcher{inner, longestPause} }

type listerWatcher struct {
	inner   cache.ListerWatcher
	longest time.Duration // pause
}

func (l listerWatcher) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

func (l listerWatcher) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

func (l listerWatcher) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return answered(ctx, l.longest, func() (runtime.Object, error) {
		return cache.ToListerWatcherWithContext(l.inner).ListWithContext(marked(ctx), options)
	})
}

func (l listerWatcher) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return answered(ctx, l.longest, func() (watch.Interface, error) {
		return cache.ToListerWatcherWithContext(l.inner).WatchWithContext(marked(ctx), options)
	})
}

// IsWatchListSemanticsUnSupported passes on what the inner one says.
func (l listerWatcher) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(l.inner)
}

// answered asks until there is an answer. The pause between two questions doubles, and begins anew when a server that
// was away answers that it is not ready: it soon is.
func answered[T any](ctx context.Context, longest time.Duration, ask func() (T, error)) (T, error) {
	refused, silent := 0, false
	for pause := firstPause; ; pause = min(2*pause, longest) {
		answer, err := ask()
		spoke := apierrors.ReasonForError(err) != metav1.StatusReasonUnknown
		if spoke && silent {
			pause = firstPause
		}
		silent = !spoke
		switch {
		case err == nil:
			return answer, nil
		case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
			refused++
		case !away(err):
			return answer, err
		}
		if refused > refusals {
			return answer, err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2)) //nolint:gosec // G404: it only spreads requests
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return answer, err
		}
	}
}

// away reports whether an error is none of the server's own answers, or one that says to come again.
func away(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonUnknown, metav1.StatusReasonServiceUnavailable, metav1.StatusReasonInternalError, metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout:
		return true
	case metav1.StatusReasonTooManyRequests:
		return strings.Contains(err.Error(), "initializing") // the objects of the kind are being read
	default:
		return false
	}
}
