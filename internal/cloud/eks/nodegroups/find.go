// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/eksfault"
)

// Get reads a node group of a cluster that is there.
func (a *API) Get(ctx context.Context, cluster, name string) (*v1alpha1.Cluster, *v1alpha1.NodeGroup, error) {
	of, err := a.store.Cluster(ctx, cluster)
	if err != nil {
		return nil, nil, err
	}
	found, err := a.Find(ctx, of, name)
	if err == nil && found == nil {
		return nil, nil, eksfault.New(eksfault.NotFound, cluster, name, "No node group found for name: %s.", name)
	}
	return of, found, err
}

// Find returns nil if there is no node group of the name.
func (a *API) Find(ctx context.Context, of *v1alpha1.Cluster, name string) (*v1alpha1.NodeGroup, error) {
	found := &v1alpha1.NodeGroup{}
	err := a.store.Management.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: v1alpha1.NodeGroupSlug(name)}, found)
	switch {
	case apierrors.IsNotFound(err), err == nil && found.Spec.Name != name:
		return nil, nil
	case err != nil:
		return nil, eksfault.Away(fmt.Errorf("reading node group %s: %w", name, err))
	}
	return found, nil
}

func (a *API) nodegroupARN(call *awsfront.Call, cluster string, g *v1alpha1.NodeGroup) string {
	return a.store.ARN(call, "nodegroup/"+cluster+"/"+g.Spec.Name+"/"+string(g.UID))
}

// About is the node group as IAM is asked about it. A missing node group has * for its UUID, so that policies about its
// name decide.
func (a *API) About(ctx context.Context, call *awsfront.Call, in *Named) ([]awsfront.Target, error) {
	return a.store.AboutPart(ctx, call, in.ClusterName, "nodegroup/"+in.ClusterName+"/"+in.NodegroupName+"/*", func(of *v1alpha1.Cluster) (string, v1alpha1.Tags, error) {
		found, err := a.Find(ctx, of, in.NodegroupName)
		if err != nil || found == nil {
			return "", nil, err
		}
		return a.nodegroupARN(call, in.ClusterName, found), found.Spec.Tags, nil
	})
}
