// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/eksfault"
)

func (a *API) deleteNodegroup() awsfront.Spec[Named, nodegroupOutput] {
	return awsfront.Spec[Named, nodegroupOutput]{
		About: a.About,
		Do: func(ctx context.Context, call *awsfront.Call, in *Named) (*nodegroupOutput, error) {
			defer a.store.Hold(in.ClusterName)()
			of, found, err := a.Get(ctx, in.ClusterName, in.NodegroupName)
			if err != nil {
				return nil, err
			}
			if found.DeletionTimestamp.IsZero() {
				if err := a.store.Management.Delete(ctx, found, client.Preconditions{UID: &found.UID}); client.IgnoreNotFound(err) != nil {
					return nil, eksfault.Away(fmt.Errorf("deleting node group %s: %w", in.NodegroupName, err))
				}
				found.DeletionTimestamp = new(metav1.NewTime(call.Now))
			}
			return &nodegroupOutput{a.showNodegroup(call, of, found)}, nil
		},
	}
}
