// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

type deleteAddonInput struct {
	Named

	Preserve *bool
}

func (a *API) deleteAddon() awsfront.Spec[deleteAddonInput, addonOutput] {
	return awsfront.Spec[deleteAddonInput, addonOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteAddonInput) ([]awsfront.Target, error) {
			return a.About(ctx, call, &in.Named)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *deleteAddonInput) (*addonOutput, error) {
			defer a.store.Hold(in.ClusterName)()
			of, found, err := a.Get(ctx, in.Named)
			if err != nil {
				return nil, err
			}
			if !found.DeletionTimestamp.IsZero() {
				return a.answerAddon(ctx, call, of, found)
			}
			if preserve := eksresource.Deref(in.Preserve, false); preserve != found.Spec.Preserve { // what this request says holds, whatever kubectl said
				before := found.DeepCopy()
				found.Spec.Preserve = preserve
				if err := a.store.Management.Patch(ctx, found, client.MergeFrom(before)); err != nil {
					return nil, eksfault.Away(fmt.Errorf("changing add-on %s: %w", in.AddonName, err))
				}
			}
			if err := a.store.Management.Delete(ctx, found, client.Preconditions{UID: &found.UID}); client.IgnoreNotFound(err) != nil {
				return nil, eksfault.Away(fmt.Errorf("deleting add-on %s: %w", in.AddonName, err))
			}
			found.DeletionTimestamp = new(metav1.NewTime(call.Now))
			return a.answerAddon(ctx, call, of, found)
		},
	}
}
