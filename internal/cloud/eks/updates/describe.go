// SPDX-License-Identifier: Apache-2.0

package updates

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/addons"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/nodegroups"
)

// targetOf reads the cluster, and finds out what the updates are of that a request is about: of the cluster, or of the
// node group or add-on that it names.
func (a *API) targetOf(ctx context.Context, in updateTarget) (of *v1alpha1.Cluster, isOf func(*v1alpha1.Update) bool, err error) {
	switch {
	case in.NodegroupName != "" && in.AddonName != "":
		return nil, nil, eksfault.New(eksfault.InvalidParameter, in.Name, in.NodegroupName, "An update is one of a node group or one of an add-on: give nodegroupName or addonName")
	case in.AddonName != "":
		of, found, err := a.addons.Get(ctx, addons.Named{ClusterName: in.Name, AddonName: in.AddonName})
		return of, func(u *v1alpha1.Update) bool { return addons.IsUpdateOf(u, of, found) }, err
	case in.NodegroupName != "":
		of, group, err := a.groups.Get(ctx, in.Name, in.NodegroupName)
		return of, func(u *v1alpha1.Update) bool { return change.IsOf(u, of, group) }, err
	}
	of, err = a.store.Cluster(ctx, in.Name)
	return of, func(u *v1alpha1.Update) bool { return change.IsOf(u, of, nil) }, err
}

// updateTarget is the part of an input that says whose updates are meant.
type updateTarget struct{ Name, NodegroupName, AddonName string }

func (a *API) aboutUpdates(ctx context.Context, call *awsfront.Call, in updateTarget) ([]awsfront.Target, error) {
	switch {
	case in.AddonName != "":
		return a.addons.About(ctx, call, &addons.Named{ClusterName: in.Name, AddonName: in.AddonName})
	case in.NodegroupName != "":
		return a.groups.About(ctx, call, &nodegroups.Named{ClusterName: in.Name, NodegroupName: in.NodegroupName})
	}
	return a.store.AboutCluster(ctx, call, in.Name)
}

// findUpdate reads an update of a cluster, node group or add-on that is there.
func (a *API) findUpdate(ctx context.Context, in updateTarget, id string) (*v1alpha1.Update, error) {
	of, isOf, err := a.targetOf(ctx, in)
	if err != nil {
		return nil, err
	}
	missing := eksfault.New(eksfault.NotFound, in.Name, in.NodegroupName, "No update found for ID: %.100s", id)
	return a.read(ctx, of, id, isOf, missing)
}

// read reads an update by its id. The refusal missing is the answer if the id is not that of an update which isOf
// accepts.
func (a *API) read(ctx context.Context, of *v1alpha1.Cluster, id string, isOf func(*v1alpha1.Update) bool, missing *awsfault.Error) (*v1alpha1.Update, error) {
	if _, err := uuid.Parse(id); err != nil {
		return nil, missing
	}
	u := &v1alpha1.Update{}
	err := a.store.Management.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: id}, u)
	switch {
	case apierrors.IsNotFound(err), err == nil && !isOf(u):
		return nil, missing
	case err != nil:
		return nil, eksfault.Away(fmt.Errorf("reading update %s: %w", id, err))
	}
	return u, nil
}

type describeUpdateInput struct {
	updateTarget

	UpdateID string
}

func (a *API) describeUpdate() awsfront.Spec[describeUpdateInput, change.Output] {
	return awsfront.Spec[describeUpdateInput, change.Output]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeUpdateInput) ([]awsfront.Target, error) {
			return a.aboutUpdates(ctx, call, in.updateTarget)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *describeUpdateInput) (*change.Output, error) {
			return change.Answer(a.findUpdate(ctx, in.updateTarget, in.UpdateID))
		},
	}
}

type listUpdatesInput struct {
	updateTarget

	MaxResults *int32
	NextToken  string
}

type listUpdatesOutput struct {
	UpdateIDs []string
	NextToken string
}

func (a *API) listUpdates() awsfront.Spec[listUpdatesInput, listUpdatesOutput] {
	return awsfront.Spec[listUpdatesInput, listUpdatesOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *listUpdatesInput) ([]awsfront.Target, error) {
			return a.aboutUpdates(ctx, call, in.updateTarget)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listUpdatesInput) (*listUpdatesOutput, error) {
			of, isOf, err := a.targetOf(ctx, in.updateTarget)
			if err != nil {
				return nil, err
			}
			all, err := change.List(ctx, a.store.Management, of, isOf)
			if err != nil {
				return nil, err
			}
			newest := func(u v1alpha1.Update) string { return nexttoken.NewestFirst(change.Time(u), u.Name) }
			cut, next, err := awsresource.Page(a.store.Account, call, in.updateTarget, all, newest, in.MaxResults, in.NextToken)
			if err != nil {
				return nil, err
			}
			out := &listUpdatesOutput{UpdateIDs: make([]string, 0, len(cut)), NextToken: next}
			for i := range cut {
				out.UpdateIDs = append(out.UpdateIDs, cut[i].Name)
			}
			return out, nil
		},
	}
}
