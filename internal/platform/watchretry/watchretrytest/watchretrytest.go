// SPDX-License-Identifier: Apache-2.0

// Package watchretrytest lets tests follow the fake client of controller-runtime without missing a change.
package watchretrytest

import (
	"context"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Follow makes an informer of a fake client see what changes between its list and its watch.
//
// An API server begins a watch at the resource version that the list had. The fake client has none for lists, and
// begins a watch when it is asked for: what is written before, after HasSynced, is never seen. Here the watch is begun
// before the list, so that it has at least what comes after it. A watch that goes on after an end begins when it is
// asked for, as before.
func Follow(fake client.WithWatch) client.WithWatch {
	var f follower
	return interceptor.NewClient(fake, interceptor.Funcs{List: f.list, Watch: f.watch})
}

type follower struct {
	mu    sync.Mutex
	last  int
	begun map[string]watch.Interface // by the resource version that its list was given
}

// list is an informer's if it has raw options; other lists are not watched.
func (f *follower) list(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	if asked.Raw == nil {
		return c.List(ctx, into, options...)
	}
	begun, err := c.Watch(ctx, into, options...)
	if err != nil {
		return err
	}
	if err := c.List(ctx, into, options...); err != nil {
		begun.Stop()
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	version := strconv.Itoa(f.last)
	into.SetResourceVersion(version)
	if f.begun == nil {
		f.begun = map[string]watch.Interface{}
	}
	f.begun[version] = begun
	return nil
}

func (f *follower) watch(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	if asked := (&client.ListOptions{}).ApplyOptions(options); asked.Raw != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if begun, ok := f.begun[asked.Raw.ResourceVersion]; ok {
			delete(f.begun, asked.Raw.ResourceVersion)
			return begun, nil
		}
	}
	return c.Watch(ctx, list, options...)
}
