// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// optional lists and watches objects of a kind that may not be installed: then there are none, and it is looked for now
// and then.
type optional struct {
	inner   cache.ListerWatcherWithContext
	missing atomic.Bool
}

var _ cache.ListerWatcherWithContext = (*optional)(nil)

// lookAgain is how often a kind that is missing is looked for.
const lookAgain = 2 * time.Second

// List lists.
func (o *optional) List(options metav1.ListOptions) (runtime.Object, error) {
	return o.ListWithContext(context.Background(), options)
}

// Watch watches.
func (o *optional) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return o.WatchWithContext(context.Background(), options)
}

// ListWithContext lists; a missing kind is an empty list.
func (o *optional) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := o.inner.ListWithContext(ctx, options)
	o.missing.Store(apierrors.IsNotFound(err))
	if o.missing.Load() {
		return &metav1.List{}, nil
	}
	return list, err
}

// WatchWithContext watches; a missing kind is waited for, and then has to be listed.
func (o *optional) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if !o.missing.Load() {
		return o.inner.WatchWithContext(ctx, options)
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
		if _, err := o.inner.ListWithContext(ctx, metav1.ListOptions{Limit: 1}); !apierrors.IsNotFound(err) {
			return nil, apierrors.NewResourceExpired("the kind is installed now")
		}
	}
}

// IsWatchListSemanticsUnSupported has objects listed first, which reports whether there is such a kind.
func (o *optional) IsWatchListSemanticsUnSupported() bool { return true }
