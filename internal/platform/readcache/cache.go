// SPDX-License-Identifier: Apache-2.0

package readcache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"muster.dev/muster/internal/platform/watchretry"
)

type allowed struct{}

// Allow marks reads that may be answered from memory.
func Allow(ctx context.Context) context.Context { return context.WithValue(ctx, allowed{}, true) }

// Kind is a kind that is kept in memory.
type Kind struct {
	Object client.Object
	List   client.ObjectList
}

// Config is what a Cache needs.
type Config struct {
	// Client reads and writes the API server.
	Client client.WithWatch
	Writes *Writes
	Kinds  []Kind
}

// Cache is a client that answers reads from memory where it may. A kind is listed and watched from its first read on.
type Cache struct {
	client.Client
	writes  *Writes
	running context.Context //nolint:containedctx // informers begin at the first read, and end with Run
	end     context.CancelFunc
	group   sync.WaitGroup
	objects map[reflect.Type]*kind
	lists   map[reflect.Type]*kind
}

// kind is one that is followed from its first read on.
type kind struct {
	resource schema.GroupResource
	informer *watchretry.Informer
	begun    atomic.Bool
}

// New makes a Cache, which reads nothing yet.
func New(c Config) (*Cache, error) {
	if c.Client == nil || c.Writes == nil {
		return nil, errors.New("a cache needs a client and the writes of the process")
	}
	made := &Cache{Client: c.Client, writes: c.Writes, objects: map[reflect.Type]*kind{}, lists: map[reflect.Type]*kind{}}
	made.running, made.end = context.WithCancel(context.Background())
	for _, one := range c.Kinds {
		gvk, err := apiutil.GVKForObject(one.Object, c.Client.Scheme())
		if err != nil {
			return nil, fmt.Errorf("finding the kind of %T: %w", one.Object, err)
		}
		mapping, err := c.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, fmt.Errorf("finding the resource of %s: %w", gvk.Kind, err)
		}
		k := &kind{resource: mapping.Resource.GroupResource(), informer: newInformer(c.Client, one)}
		k.informer.Handle(made.handler(k))
		made.objects[reflect.TypeOf(one.Object)], made.lists[reflect.TypeOf(one.List)] = k, k
	}
	return made, nil
}

// Run keeps what is in memory up to date until the context ends. Reads ask the API server afterwards.
func (c *Cache) Run(ctx context.Context) {
	<-ctx.Done()
	c.end()
	c.group.Wait()
}

// newInformer lists past the API server's own cache, which may not have what was written before.
func newInformer(c client.WithWatch, k Kind) *watchretry.Informer {
	return watchretry.NewInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.ResourceVersion == "0" {
				o.ResourceVersion = ""
			}
			into := k.List.DeepCopyObject().(client.ObjectList)
			err := c.List(ctx, into, &client.ListOptions{Raw: &o})
			return into, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, k.List.DeepCopyObject().(client.ObjectList), &client.ListOptions{Raw: &o})
		},
	}, k.Object)
}

func (c *Cache) handler(k *kind) cache.ResourceEventHandler {
	reported := func(o any, deleted bool) { c.writes.reported(k.resource.Resource, k.informer.Store(), o, deleted) }
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { reported(o, false) },
		UpdateFunc: func(_, o any) { reported(o, false) },
		DeleteFunc: func(o any) { reported(o, true) },
	}
}

// ready reports whether a read may be answered from memory now. The first one of a kind begins to follow it.
func (c *Cache) ready(ctx context.Context, k *kind) bool {
	if k == nil || ctx.Value(allowed{}) == nil || c.running.Err() != nil {
		return false
	}
	if k.begun.CompareAndSwap(false, true) {
		c.writes.follow(k.resource.Resource, k.informer.Store())
		c.group.Go(func() { k.informer.Run(c.running) })
	}
	return k.informer.HasSynced() && c.writes.caughtUp(ctx, k.resource.Resource)
}
