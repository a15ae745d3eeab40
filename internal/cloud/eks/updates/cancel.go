// SPDX-License-Identifier: Apache-2.0

package updates

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
)

type cancelUpdateInput struct{ Name, UpdateID, ClientRequestToken string }

// cancelUpdate asks for the end of an update of a cluster or of what is in it: of one that has not been made, and of a
// rollout.
func (a *API) cancelUpdate() awsfront.Spec[cancelUpdateInput, change.Output] {
	return awsfront.Spec[cancelUpdateInput, change.Output]{
		About: func(ctx context.Context, call *awsfront.Call, in *cancelUpdateInput) ([]awsfront.Target, error) {
			return a.store.AboutCluster(ctx, call, in.Name)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *cancelUpdateInput) (*change.Output, error) {
			defer a.store.Hold(in.Name)()
			of, err := a.store.Cluster(ctx, in.Name)
			if err != nil {
				return nil, err
			}
			missing := eksfault.New(eksfault.NotFound, in.Name, "", "No update found for ID: %.100s", in.UpdateID)
			u, err := a.read(ctx, of, in.UpdateID, func(u *v1alpha1.Update) bool { return u.Spec.ClusterName == in.Name }, missing)
			if err == nil { // the update may be of an earlier object of that name
				u, err = a.findUpdate(ctx, updateTarget{in.Name, u.Spec.NodeGroup, u.Spec.Addon}, u.Name)
			}
			switch {
			case err != nil:
				return nil, err
			case u.Phase() != v1alpha1.UpdateInProgress:
				return nil, eksfault.New(eksfault.InvalidRequest, in.Name, "", "Update %s cannot be cancelled: it is %s", u.Name, u.Phase())
			case u.Status.AppliedAt != nil && u.Spec.Change.Rollout == nil:
				return nil, eksfault.New(eksfault.InvalidRequest, in.Name, "", "Update %s cannot be cancelled: the change of type %s has been made, and takes effect", u.Name, u.Spec.Type)
			}
			before := u.DeepCopy()
			metav1.SetMetaDataAnnotation(&u.ObjectMeta, v1alpha1.AnnotationCancel, "true")
			if err := a.store.Management.Patch(ctx, u, client.MergeFrom(before)); err != nil {
				return nil, eksfault.Away(fmt.Errorf("cancelling update %s: %w", u.Name, err))
			}
			return change.Answer(u, nil)
		},
	}
}
