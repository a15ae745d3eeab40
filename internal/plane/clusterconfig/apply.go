// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"context"
	"errors"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// ApplyCluster changes an existing cluster. A cluster that is missing, because the service has not registered it yet,
// is an error for now.
func ApplyCluster(ctx context.Context, api client.Client, wanted *v1alpha1.Cluster) (changed bool, err error) {
	var current v1alpha1.Cluster
	if err := api.Get(ctx, client.ObjectKeyFromObject(wanted), &current); err != nil {
		return false, readError{err}
	}
	if apiequality.Semantic.DeepEqual(current.Spec, wanted.Spec) {
		return false, nil
	}
	current.Spec = wanted.Spec
	return true, api.Update(ctx, &current)
}

// ApplyNodeGroup makes a node group, or changes the one that is there.
func (c Config) ApplyNodeGroup(ctx context.Context, api client.Client, wanted *v1alpha1.NodeGroup) (changed bool, err error) {
	var current v1alpha1.NodeGroup
	err = api.Get(ctx, client.ObjectKeyFromObject(wanted), &current)
	if apierrors.IsNotFound(err) {
		return true, api.Create(ctx, wanted.DeepCopy())
	}
	if err != nil {
		return false, readError{err}
	}
	if err := c.KeepMaxSize(wanted, &current); err != nil {
		return false, err
	}
	if apiequality.Semantic.DeepEqual(current.Spec, wanted.Spec) {
		return false, nil
	}
	current.Spec = wanted.Spec
	return true, api.Update(ctx, &current)
}

// readError is of reading what is to be changed, and never final: whoever applies may read everything, and an API
// server that has not loaded its rules yet forbids that.
type readError struct{ error }

// Final reports whether an error is final, unlike that of a management plane that is not there yet.
func Final(err error) bool {
	var size *MaxSizeError
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || errors.As(err, &size)
}
