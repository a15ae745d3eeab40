// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/watchretry"
)

const nodesSource = "Nodes of the cluster"

// NodeNames lists and watches the Nodes of a cluster without what is in them: a heartbeat costs a hundred bytes, not
// ten thousand.
func NodeNames(config *rest.Config) (cache.ListerWatcher, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for nodes: %w", err)
	}
	nodes := client.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return nodes.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return nodes.Watch(ctx, o)
		},
	}, client), nil
}

// NodesConfig is what Nodes need.
type NodesConfig struct {
	// Objects lists and watches Nodes: see NodeNames.
	Objects cache.ListerWatcher
	// StaleAfter is how long the watch may be broken before answers become Unknown; 30 s if 0.
	StaleAfter time.Duration
	// OnChange is called when a Node comes or goes, and when answers are no longer Unknown. It must be quick.
	OnChange func(Change)
	Now      func() time.Time // time.Now if nil
	Logger   *slog.Logger
}

// Nodes knows which Node objects exist, and nothing else of them: they are the nodes' own to write.
type Nodes struct {
	config   NodesConfig
	informer cache.SharedIndexInformer
	handled  cache.ResourceEventHandlerRegistration
	health   *health
}

// NewNodes makes Nodes. They know nothing before Run.
func NewNodes(c NodesConfig) (*Nodes, error) {
	switch {
	case c.Objects == nil:
		return nil, errors.New("knowing nodes needs Nodes to read")
	case c.OnChange == nil, c.Logger == nil:
		return nil, errors.New("knowing nodes needs somebody to tell about changes, and a logger")
	}
	if c.StaleAfter <= 0 {
		c.StaleAfter = 30 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = c.Logger.With("source", "nodes")
	n := &Nodes{config: c}
	n.health = &health{now: c.Now, staleAfter: c.StaleAfter, logger: c.Logger, recovered: func() { c.OnChange(Change{All: true}) }}
	n.informer = cache.NewSharedIndexInformer(watchretry.New(watched{c.Objects, n.health}), &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
	// Requests that fail are logged where their health is watched, once for each outage.
	quiet := func(_ context.Context, _ *cache.Reflector, err error) {
		c.Logger.Debug("watch of nodes ended", "error", err)
	}
	var handlerError error
	n.handled, handlerError = n.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: n.tell, DeleteFunc: n.tell})
	if err := errors.Join(handlerError, n.informer.SetTransform(nameOnly), n.informer.SetWatchErrorHandlerWithContext(quiet)); err != nil {
		return nil, fmt.Errorf("preparing to know nodes: %w", err)
	}
	return n, nil
}

// nameOnly drops what nobody here reads, so that thousands of nodes stay small.
func nameOnly(o any) (any, error) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		m.ObjectMeta = metav1.ObjectMeta{Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
	}
	return o, nil
}

func (n *Nodes) tell(o any) {
	// Before that everything was Unknown, and Run tells of all at once.
	if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil && n.handled.HasSynced() {
		n.config.OnChange(Change{Nodes: []string{name}})
	}
}

// Run watches until ctx is done.
func (n *Nodes) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if cache.WaitFor(ctx, "", n.handled.HasSyncedChecker()) {
			n.config.OnChange(Change{All: true})
		}
	}()
	n.informer.RunWithContext(ctx)
	<-done
}

// HasSynced reports whether all Nodes have been read once.
func (n *Nodes) HasSynced() bool { return n.informer.HasSynced() }

// Exists reports whether there is a Node of this name.
func (n *Nodes) Exists(name string) policy.Fact[bool] {
	if !n.informer.HasSynced() {
		why := "they have not been read yet"
		if _, problem := n.health.status(); problem != "" {
			why += ": " + problem
		}
		return policy.DontKnow[bool](nodesSource, why)
	}
	at, stale := n.health.since()
	if stale {
		return policy.DontKnow[bool](nodesSource, fmt.Sprintf("the API server has not answered since %s", at.UTC().Format(time.RFC3339)))
	}
	_, there, err := n.informer.GetStore().GetByKey(name)
	if err != nil {
		return policy.DontKnow[bool](nodesSource, err.Error())
	}
	return policy.Know(there, nodesSource, at)
}

// Status reports whether the watch goes on.
func (n *Nodes) Status() SourceStatus {
	s := SourceStatus{Name: "nodes", Synced: n.HasSynced()}
	s.Age, s.Problem = n.health.status()
	return s
}
