// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/platform/watchretry"
)

// Admitted reports when the set of admitted principals may have changed: by a mapping of the cluster, or by the
// identity service.
type Admitted struct {
	keys    *keyservice.Client
	sources []mappingSource
	changed chan struct{}
}

// mappingSource is one kind of mappings.
type mappingSource struct {
	from    cache.ListerWatcher
	example runtime.Object
}

// NewAdmitted returns a watch of the same sources that the authenticator reads. keys may be nil.
func NewAdmitted(cluster *rest.Config, keys *keyservice.Client) (*Admitted, error) {
	entries, err := authenticator.AccessEntries(cluster)
	if err != nil {
		return nil, err
	}
	mappings, err := authenticator.IdentityMappings(cluster)
	if err != nil {
		return nil, err
	}
	core, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("making a client of the cluster: %w", err)
	}
	return &Admitted{keys: keys, changed: make(chan struct{}, 1), sources: []mappingSource{
		{entries, &accessv1alpha1.AccessEntry{}}, {mappings, &iamv1alpha1.IAMIdentityMapping{}}, {authenticator.AWSAuth(core), &corev1.ConfigMap{}},
	}}, nil
}

// Run watches until the context ends.
func (a *Admitted) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	for _, source := range a.sources {
		informer := watchretry.NewInformer(source.from, source.example)
		informer.Handle(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { a.tell() }, DeleteFunc: func(any) { a.tell() },
			UpdateFunc: func(before, after any) {
				if !sameGeneration(before, after) {
					a.tell()
				}
			},
		})
		group.Go(func() { informer.Run(ctx) })
	}
	if a.keys != nil {
		a.keys.Watch(ctx, func(keyservice.Change) { a.tell() })
	}
	<-ctx.Done()
	return nil
}

// sameGeneration reports whether only the status of an object changed. A ConfigMap has neither a status nor a
// generation.
func sameGeneration(before, after any) bool {
	was, err := meta.Accessor(before)
	if err != nil {
		return false
	}
	is, err := meta.Accessor(after)
	return err == nil && is.GetGeneration() != 0 && was.GetUID() == is.GetUID() && was.GetGeneration() == is.GetGeneration()
}

func (a *Admitted) tell() {
	select {
	case a.changed <- struct{}{}:
	default: // a notice is on its way already
	}
}

// Changed has a value when the set of admitted principals may have changed since the last one was read.
func (a *Admitted) Changed() <-chan struct{} { return a.changed }
