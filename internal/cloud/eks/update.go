// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
)

// update is EKS's, as it is answered.
type update struct {
	ID, Status, Type string
	Params           []updateParam
	CreatedAt        time.Time
	Errors           []updateError
}

type updateParam struct{ Type, Value string }

type updateError struct {
	ErrorCode, ErrorMessage string
	ResourceIDs             []string
}

type updateOutput struct{ Update *update }

// showUpdate is an update as EKS tells of it.
func showUpdate(u *v1alpha1.Update) *update {
	shown := &update{
		ID: u.Name, Status: string(u.Phase()), Type: string(u.Spec.Type), CreatedAt: u.CreationTimestamp.Time,
		Params: []updateParam{}, Errors: []updateError{},
	}
	for _, p := range u.Spec.Params {
		shown.Params = append(shown.Params, updateParam(p))
	}
	for _, e := range u.Status.Errors {
		shown.Errors = append(shown.Errors, updateError(e))
	}
	return shown
}

// updatesOf lists the updates of a cluster, or of a node group if there is one.
func (a *api) updatesOf(ctx context.Context, of *v1alpha1.Cluster, group *v1alpha1.NodeGroup) ([]v1alpha1.Update, error) {
	return a.listUpdatesOf(ctx, of, func(u *v1alpha1.Update) bool { return isUpdateOf(u, of, group) })
}

// listUpdatesOf lists those of a cluster's updates that are chosen.
func (a *api) listUpdatesOf(ctx context.Context, of *v1alpha1.Cluster, isOf func(*v1alpha1.Update) bool) ([]v1alpha1.Update, error) {
	var all v1alpha1.UpdateList
	if err := a.Management.List(ctx, &all, client.InNamespace(of.Namespace)); err != nil {
		return nil, away(fmt.Errorf("listing the updates of cluster %s: %w", of.Spec.Name, err))
	}
	return slices.DeleteFunc(all.Items, func(u v1alpha1.Update) bool { return !isOf(&u) }), nil
}

// orUpdating is the status of a cluster, or of a node group if there is one: what it is otherwise, or UPDATING while an update of it is in progress.
func (a *api) orUpdating(ctx context.Context, status string, of *v1alpha1.Cluster, group *v1alpha1.NodeGroup) (string, error) {
	if status != active {
		return status, nil
	}
	all, err := a.updatesOf(ctx, of, group)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(all, inProgress) {
		return updating, nil
	}
	return status, nil
}

func inProgress(u v1alpha1.Update) bool { return u.Phase() == v1alpha1.UpdateInProgress }

// isUpdateOf reports whether an update is of the cluster, or of the node group if group is not nil. Updates of an earlier object of that name do not
// count.
func isUpdateOf(u *v1alpha1.Update, of *v1alpha1.Cluster, group *v1alpha1.NodeGroup) bool {
	name, uid := "", of.UID
	if group != nil {
		name, uid = group.Spec.Name, group.UID
	}
	return u.Spec.ClusterName == of.Spec.Name && u.Spec.NodeGroup == name && u.Spec.Addon == "" && (u.Spec.TargetUID == "" || u.Spec.TargetUID == string(uid))
}

// planned is a change of a cluster, or of a node group if there is one, that a request asks for.
type planned struct {
	of     *v1alpha1.Cluster
	group  *v1alpha1.NodeGroup
	kind   v1alpha1.UpdateType
	params []v1alpha1.UpdateParam
	change v1alpha1.UpdateChange
}

// repeated finds the update that this very request has made before. While there is another one in progress, the request is refused.
func (a *api) repeated(ctx context.Context, sent token, of *v1alpha1.Cluster, group *v1alpha1.NodeGroup) (*v1alpha1.Update, error) {
	all, err := a.updatesOf(ctx, of, group)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if again, err := sent.made(&all[i]); err != nil || again {
			return &all[i], err
		}
	}
	for i := range all {
		if all[i].Phase() != v1alpha1.UpdateInProgress {
			continue
		}
		if group != nil {
			return nil, fault(inUse, of.Spec.Name, group.Spec.Name, "Nodegroup cannot be updated as it is currently not in Active State: update %s is in progress", all[i].Name)
		}
		return nil, fault(inUse, of.Spec.Name, "", "Cannot %s because cluster %s currently has update %s in progress", all[i].Spec.Type, of.Spec.Name, all[i].Name)
	}
	return nil, nil
}

// accept makes the object of a change. Its controller does the rest.
func (a *api) accept(ctx context.Context, sent token, p planned) (*updateOutput, error) {
	u := &v1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Namespace: p.of.Namespace, Name: newUpdateID()}, Spec: v1alpha1.UpdateSpec{
		ClusterName: p.of.Spec.Name, TargetUID: string(p.of.UID), Type: p.kind, Params: p.params, Change: p.change,
	}}
	if p.group != nil {
		u.Spec.NodeGroup, u.Spec.TargetUID = p.group.Spec.Name, string(p.group.UID)
	}
	sent.mark(u)
	if err := a.Management.Create(ctx, u); err != nil {
		return nil, refusedWrite(err, fault(inUse, p.of.Spec.Name, "", "An update of this id exists: try again"))
	}
	return &updateOutput{showUpdate(u)}, nil
}

// targetOf reads the cluster, and finds out what the updates are of that a request is about: of the cluster, or of the node group or add-on that it names.
func (a *api) targetOf(ctx context.Context, in updateTarget) (of *v1alpha1.Cluster, isOf func(*v1alpha1.Update) bool, err error) {
	switch {
	case in.NodegroupName != "" && in.AddonName != "":
		return nil, nil, fault(invalidParameter, in.Name, in.NodegroupName, "An update is one of a node group or one of an add-on: give nodegroupName or addonName")
	case in.AddonName != "":
		of, found, err := a.addon(ctx, namedAddon{in.Name, in.AddonName})
		return of, func(u *v1alpha1.Update) bool { return isAddonUpdateOf(u, of, found) }, err
	case in.NodegroupName != "":
		of, group, err := a.nodegroup(ctx, in.Name, in.NodegroupName)
		return of, func(u *v1alpha1.Update) bool { return isUpdateOf(u, of, group) }, err
	}
	of, err = a.cluster(ctx, in.Name)
	return of, func(u *v1alpha1.Update) bool { return isUpdateOf(u, of, nil) }, err
}

// updateTarget is the part of an input that says whose updates are meant.
type updateTarget struct{ Name, NodegroupName, AddonName string }

func (a *api) aboutUpdates(ctx context.Context, call *awsfront.Call, in updateTarget) ([]awsfront.Target, error) {
	switch {
	case in.AddonName != "":
		return a.aboutAddon(ctx, call, namedAddon{in.Name, in.AddonName})
	case in.NodegroupName != "":
		return a.aboutNodegroup(ctx, call, in.Name, in.NodegroupName)
	}
	return a.aboutCluster(ctx, call, in.Name)
}

// findUpdate reads an update of a cluster, node group or add-on that is there.
func (a *api) findUpdate(ctx context.Context, in updateTarget, id string) (*v1alpha1.Update, error) {
	of, isOf, err := a.targetOf(ctx, in)
	if err != nil {
		return nil, err
	}
	missing := fault(notFound, in.Name, in.NodegroupName, "No update found for ID: %.100s", id)
	if _, err := uuid.Parse(id); err != nil {
		return nil, missing
	}
	u := &v1alpha1.Update{}
	err = a.Management.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: id}, u)
	switch {
	case apierrors.IsNotFound(err), err == nil && !isOf(u):
		return nil, missing
	case err != nil:
		return nil, away(fmt.Errorf("reading update %s: %w", id, err))
	}
	return u, nil
}
