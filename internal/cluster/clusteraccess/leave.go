// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/machine/nodegroup"
)

// leaveInterval is the pause between two looks whether a machine still has the account's node role.
const leaveInterval = time.Minute

// Leave removes the entry that a cluster of an earlier version made for the account's node role, once nothing in the
// cluster has the role: no machine, and no node group by name. It does so once, calls removed with what it removed, and
// returns then or when the context ends. In a cluster without such an entry it returns at once.
func (n *NodeRoles) Leave(ctx context.Context, removed func(message string), log *slog.Logger) {
	said := ""
	for {
		why, err := n.leave(ctx, removed)
		if err == nil && why == "" || ctx.Err() != nil {
			return
		}
		if err != nil {
			why = err.Error()
		}
		if why != said {
			said = why
			log.Info("the access entry of the account's node role stays", "role", v1alpha1.AccountNodeRole, "reason", why)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(leaveInterval):
		}
	}
}

// leave returns what keeps the entry, or "" if it is gone, or is not the service's to remove.
func (n *NodeRoles) leave(ctx context.Context, removed func(message string)) (why string, err error) {
	n.preparing.Lock() // no node group begins to use the role meanwhile
	defer n.preparing.Unlock()
	record, _, err := n.record(ctx)
	if err != nil {
		return "", err
	}
	account := iam.Role{Account: identityservice.DefaultAccount, Path: "/", Name: v1alpha1.AccountNodeRole}.ARN().String()
	if record.Data[formerRole] != account {
		return "", nil
	}
	if record.Data[ownRole] == "" {
		return "the cluster has no node role of its own yet", nil
	}
	if why, err := n.keeps(ctx); err != nil || why != "" {
		return why, err
	}
	kinds, err := n.removeEntries(ctx, account)
	if err != nil {
		return "", err
	}
	delete(record.Data, formerRole)
	if err := n.change(ctx, record); err != nil {
		return "", err
	}
	for _, kind := range kinds {
		removed(fmt.Sprintf("removed %s of %s: no machine and no node group of the cluster has this role any more, its nodes have the role %s",
			kind, account, v1alpha1.ClusterNodeRole(n.namespace)))
	}
	return "", nil
}

// keeps returns what in the cluster has the account's node role, or "".
func (n *NodeRoles) keeps(ctx context.Context) (string, error) {
	role, err := n.role(ctx, v1alpha1.AccountNodeRole)
	if _, gone := errors.AsType[*nodegroup.RoleProblem](err); gone {
		return "", nil // nobody can have it
	}
	if err != nil {
		return "", err
	}
	// Machines of no cluster count: they may have joined this one.
	return uses(ctx, n.management, &role.Spec, func(cluster string) bool { return cluster == "" || cluster == n.namespace })
}

// removeEntries removes the access entry and the IAMIdentityMapping of the account's node role that the service made.
// Others stay, and so do these if somebody changed them. It returns the kinds of what it removed.
func (a Access) removeEntries(ctx context.Context, role string) (kinds []string, err error) {
	name := client.ObjectKey{Name: entryName(v1alpha1.AccountNodeRole)}
	entry, mapping := &accessv1alpha1.AccessEntry{}, &iamv1alpha1.IAMIdentityMapping{}
	for _, made := range []struct {
		kind   string
		object client.Object
		same   func() bool
	}{
		{"the access entry", entry, func() bool { return equality.Semantic.DeepEqual(entry.Spec, nodeEntry(role, entry.Spec.PrincipalID)) }},
		{"the IAMIdentityMapping", mapping, func() bool { return equality.Semantic.DeepEqual(mapping.Spec, nodeMapping(role)) }},
	} {
		err := a.cluster.Get(ctx, name, made.object)
		if apierrors.IsNotFound(err) || err == nil && !made.same() {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", made.kind, name.Name, err)
		}
		err = a.cluster.Delete(ctx, made.object, client.Preconditions{UID: new(made.object.GetUID()), ResourceVersion: new(made.object.GetResourceVersion())})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("removing %s %s: %w", made.kind, name.Name, err)
		}
		kinds = append(kinds, made.kind)
	}
	return kinds, nil
}
