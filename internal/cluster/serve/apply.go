// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/platform/statedir"
)

// applyTimeout is how long the management plane may take to be there for a change.
const applyTimeout = time.Minute

// Scheme knows every kind that the service and its command line speak of.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, group := range []struct {
		name string
		add  func(*runtime.Scheme) error
	}{
		{"Kubernetes", clientgoscheme.AddToScheme},
		{apiextensionsv1.GroupName, apiextensionsv1.AddToScheme},
		{v1alpha1.GroupVersion.Group, v1alpha1.AddToScheme},
		{accessv1alpha1.GroupVersion.Group, accessv1alpha1.AddToScheme},
		{iamv1alpha1.GroupVersion.Group, iamv1alpha1.AddToScheme},
	} {
		if err := group.add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds of %s: %w", group.name, err)
		}
	}
	return scheme, nil
}

func managementClient(dir statedir.Dir) (client.Client, error) {
	rest, err := managementConfig(dir)
	if err != nil {
		return nil, err
	}
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	return client.New(rest, client.Options{Scheme: scheme, Mapper: managementMapper()})
}

// apply changes the cluster to the requested spec, and makes the requested node groups or changes them.
func (s Session) apply(ctx context.Context) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	changed, err = s.applied(ctx, "cluster "+s.Wanted.Cluster.Spec.Name, func(c client.Client) (bool, error) { return clusterconfig.ApplyCluster(ctx, c, s.Wanted.Cluster) })
	if err != nil {
		return changed, err
	}
	for _, wanted := range s.Wanted.NodeGroups {
		did, err := s.applied(ctx, "node group "+wanted.Spec.Name, func(c client.Client) (bool, error) {
			return s.Wanted.ApplyNodeGroup(ctx, c, wanted.DeepCopy())
		})
		changed = changed || did
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// applied repeats a change until it is made or refused: the management plane may still be starting.
func (s Session) applied(ctx context.Context, what string, change func(client.Client) (bool, error)) (changed bool, err error) {
	for {
		c, err := managementClient(s.State)
		if err == nil {
			changed, err = change(c)
		}
		if err == nil {
			return changed, nil
		}
		if clusterconfig.Final(err) || pause(ctx, pollInterval) != nil {
			return false, fmt.Errorf("applying %s: %w", what, err)
		}
	}
}
