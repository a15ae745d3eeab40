// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// A Machine refers to its group by spec.clusterName and spec.nodeGroup, and by spec.nodeGroupUID, which tells apart two
// groups of one name that were there one after the other. These fields cannot be changed. Labels are people's to edit
// and decide nothing, and an owner reference cannot lead from a Machine, which has no namespace, to a NodeGroup, which
// has one.
//
// No machine outlives its group:
//
//	a group is deleted         its finalizer goes when the API server, not the cache, lists no machine that refers to it
//	while machines are made    no machine is made for a group that was seen deleted, and the making ends when that is seen
//	and is gone all the same   such as by force: a machine that still refers to it is an orphan, and is deleted
//	or another has its name    a machine that refers to the group before is deleted, too

// errGoing means that the group was deleted or replaced since it was read.
var errGoing = errors.New("the group is being deleted")

// belongs reports whether a machine that names the group is of this very group. A machine that names no UID is.
func belongs(m *v1alpha1.Machine, group types.UID) bool {
	return m.Spec.NodeGroupUID == "" || m.Spec.NodeGroupUID == group
}

// groupOf is the key of the group that a machine names.
func groupOf(m *v1alpha1.Machine) client.ObjectKey {
	return client.ObjectKey{Namespace: v1alpha1.ClusterSlug(m.Spec.ClusterName), Name: v1alpha1.NodeGroupSlug(m.Spec.NodeGroup)}
}

// alive reports whether a machine is not being deleted.
func alive(m v1alpha1.Machine) bool { return m.DeletionTimestamp.IsZero() }

// list returns the machines of a group, and the strangers: those that refer to an earlier group of its name. Machines
// that a cache answers are for reading: a group is looked at ten times a second while hundreds of machines come, and a copy of all of
// them would take longer than the look.
func (r *groups) list(ctx context.Context, reader client.Reader, group *v1alpha1.NodeGroup) (own, strangers []v1alpha1.Machine, err error) {
	all, err := r.named(ctx, reader, client.ObjectKeyFromObject(group))
	for _, m := range all {
		if belongs(&m, group.UID) {
			own = append(own, m)
		} else {
			strangers = append(strangers, m)
		}
	}
	return own, strangers, err
}

// named returns the machines that refer to any group of a name in the cluster, for reading, as list does.
func (r *groups) named(ctx context.Context, reader client.Reader, group client.ObjectKey) ([]v1alpha1.Machine, error) {
	list := &v1alpha1.MachineList{}
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the machines of the group: %w", err)
	}
	var named []v1alpha1.Machine
	for i := range list.Items {
		if m := &list.Items[i]; r.ours(m) && m.Spec.NodeGroup != "" && groupOf(m) == group {
			named = append(named, *m)
		}
	}
	return named, nil
}

// stillWanted returns errGoing if the group is not to have machines made any more.
func (r *groups) stillWanted(ctx context.Context, reader client.Reader, group *v1alpha1.NodeGroup) error {
	now := &v1alpha1.NodeGroup{}
	err := reader.Get(ctx, client.ObjectKeyFromObject(group), now)
	switch {
	case apierrors.IsNotFound(err), err == nil && (now.UID != group.UID || !now.DeletionTimestamp.IsZero()):
		return errGoing
	case err != nil:
		return fmt.Errorf("asking whether the group is still wanted: %w", err)
	}
	return nil
}

// release lets a deleted group go if no machine refers to it any more. While one does, its going is an event of its
// own.
func (r *groups) release(ctx context.Context, group *v1alpha1.NodeGroup) error {
	left, err := r.named(ctx, r.managementLive, client.ObjectKeyFromObject(group))
	if err != nil || len(left) > 0 {
		return err
	}
	return r.letGroupGo(ctx, group)
}

func (r *groups) letGroupGo(ctx context.Context, group *v1alpha1.NodeGroup) error {
	before := group.DeepCopy()
	letGo(group, v1alpha1.FinalizerNodeGroup)
	if err := r.management.Patch(ctx, group, lockedPatch(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer: %w", err)
	}
	return nil
}

// gone clears up after a group that is not there.
func (r *groups) gone(ctx context.Context, group client.ObjectKey) error {
	r.writes.forget(group)
	if err := r.endOrphans(ctx, group); err != nil || r.NodeRoles == nil {
		return err
	}
	return r.NodeRoles.Tidy(ctx)
}

// endOrphans deletes the machines that name a group and are not of the group that has this name now, if one has. It
// believes the API server only: a cache may not show the group yet.
func (r *groups) endOrphans(ctx context.Context, name client.ObjectKey) error {
	group := &v1alpha1.NodeGroup{}
	err := r.managementLive.Get(ctx, name, group)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("asking whether node group %s exists: %w", name, err)
	}
	exists := err == nil
	machines, err := r.named(ctx, r.managementLive, name)
	if err != nil {
		return err
	}
	for i := range machines {
		m := &machines[i]
		if !alive(*m) || exists && belongs(m, group.UID) {
			continue
		}
		if err := r.management.Delete(ctx, m, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting machine %s, whose node group is gone: %w", m.Name, err)
		}
		r.recorder.Eventf(m, nil, corev1.EventTypeWarning, "NodeGroupGone", "Delete", "its node group %s is gone; deleting the machine", m.Spec.NodeGroup)
	}
	return nil
}
