// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/platform/watchretry"
)

// clusterAPIVersions that can be read, the best first.
func clusterAPIVersions() []string { return []string{"v1beta2", "v1beta1"} }

// clusterAPILister lists and watches Machines in the best version that the server has, which it asks the server.
type clusterAPILister struct {
	client    rest.Interface
	namespace string

	mu      sync.Mutex
	version string // "" if it is to be asked
}

var _ cache.ListerWatcherWithContext = (*clusterAPILister)(nil)

// ClusterAPIMachines lists and watches the Machines of a Cluster API management cluster, those of all namespaces if
// namespace is empty. Cluster API may be installed later.
func ClusterAPIMachines(config *rest.Config, namespace string) (cache.ListerWatcher, error) {
	scheme := runtime.NewScheme()
	for _, v := range clusterAPIVersions() {
		gv := schema.GroupVersion{Group: clusterAPIGroup, Version: v}
		scheme.AddKnownTypeWithName(gv.WithKind(clusterAPIKind), &capiMachine{})
		scheme.AddKnownTypeWithName(gv.WithKind(clusterAPIKind+clusterAPIListSuffix), &capiMachineList{})
		metav1.AddToGroupVersion(scheme, gv)
	}
	c := rest.CopyConfig(config)
	watchretry.Wrap(c)
	c.GroupVersion = &schema.GroupVersion{Group: clusterAPIGroup, Version: clusterAPIVersions()[0]}
	c.APIPath = "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON // custom resources have no protobuf
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("making a client for Cluster API: %w", err)
	}
	return &clusterAPILister{client: client, namespace: namespace}, nil
}

// List lists.
func (l *clusterAPILister) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// Watch watches.
func (l *clusterAPILister) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// ListWithContext lists.
func (l *clusterAPILister) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	path, err := l.path(ctx)
	if err != nil {
		return nil, err
	}
	list := &capiMachineList{}
	if err := l.client.Get().AbsPath(path...).VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Into(list); err != nil {
		return nil, l.seen(err)
	}
	return list, nil
}

// WatchWithContext watches.
func (l *clusterAPILister) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	path, err := l.path(ctx)
	if err != nil {
		return nil, err
	}
	o.Watch = true
	stream, err := l.client.Get().AbsPath(path...).VersionedParams(&o, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		return nil, l.seen(err)
	}
	return stream, nil
}

// seen has the versions asked for again if there is no such resource any more, as after an upgrade.
func (l *clusterAPILister) seen(err error) error {
	if apierrors.IsNotFound(err) {
		l.mu.Lock()
		l.version = ""
		l.mu.Unlock()
	}
	return err
}

func (l *clusterAPILister) path(ctx context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.version == "" {
		v, err := l.discover(ctx)
		if err != nil {
			return nil, err
		}
		l.version = v
	}
	path := []string{"/apis", clusterAPIGroup, l.version}
	if l.namespace != "" {
		path = append(path, "namespaces", l.namespace)
	}
	return append(path, "machines"), nil
}

func (l *clusterAPILister) discover(ctx context.Context) (string, error) {
	raw, err := l.client.Get().AbsPath("/apis", clusterAPIGroup).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("the server has no %s: Cluster API is not installed there", clusterAPIGroup)
	}
	if err != nil {
		return "", fmt.Errorf("asking for the versions of Cluster API: %w", err)
	}
	var group metav1.APIGroup
	if err := json.Unmarshal(raw, &group); err != nil {
		return "", fmt.Errorf("reading the versions of Cluster API: %w", err)
	}
	for _, want := range clusterAPIVersions() {
		for _, v := range group.Versions {
			if v.Version == want {
				return want, nil
			}
		}
	}
	return "", fmt.Errorf("the server has none of the versions %v of %s", clusterAPIVersions(), clusterAPIGroup)
}
