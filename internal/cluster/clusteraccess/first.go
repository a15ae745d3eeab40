// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/cluster/nodegroup"
	"muster.dev/muster/internal/iam/identityservice"
)

// Access writes the entries that let IAM's users and roles into a cluster: access entries, or IAMIdentityMapping objects where the
// authentication mode does not read access entries.
type Access struct {
	management client.Reader
	cluster    client.Client
	mode       v1alpha1.AuthenticationMode
}

// New returns the entries of one cluster. It reads IAM's users and roles from the management plane, past any cache: a role that was made
// a moment ago counts. The client of the cluster is one with [Mapper].
func New(management client.Reader, cluster client.Client, mode v1alpha1.AuthenticationMode) Access {
	return Access{management: management, cluster: cluster, mode: mode}
}

const (
	clusterAdminPolicy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
	creatorEntry       = "cluster-creator"
	// firstAccess records that the first entries were made, so that an entry that somebody deletes is not made again.
	firstAccess = "muster-first-access"
)

// first makes the entries of the creator and of the default node role, unless the record says that they were made.
func (a Access) first(ctx context.Context, creator bool) error {
	done := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: policyconfig.HostsNamespace, Name: firstAccess}}
	err := a.cluster.Get(ctx, client.ObjectKeyFromObject(done), done)
	if err == nil {
		return a.moved(ctx, done)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading ConfigMap "+firstAccess+": %w", err)
	}
	if creator {
		if err := a.creator(ctx); err != nil {
			return err
		}
	}
	role, err := a.role(ctx, v1alpha1.DefaultNodeRole)
	if err != nil {
		return err
	}
	if err := a.nodes(ctx, role); err != nil {
		return err
	}
	done.Data = map[string]string{"nodeRole": role.Spec.ARN, firstMode: string(a.mode)}
	if err := a.cluster.Create(ctx, done); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making ConfigMap "+firstAccess+": %w", err)
	}
	return nil
}

func (a Access) creator(ctx context.Context) error {
	var users v1alpha1.IAMUserList
	if err := a.management.List(ctx, &users); err != nil {
		return fmt.Errorf("looking for the creator of the cluster: %w", err)
	}
	for _, user := range users.Items {
		if user.Spec.Account != identityservice.DefaultAccount || user.Spec.Name != identityservice.FirstUserName {
			continue
		}
		if a.mode == v1alpha1.AuthenticationConfigMap {
			return a.mapping(ctx, creatorEntry, iamv1alpha1.IAMIdentityMappingSpec{ARN: user.Spec.ARN, Username: user.Spec.ARN, Groups: []string{component.GroupAdministrators}})
		}
		return a.enter(ctx, creatorEntry, accessv1alpha1.AccessEntrySpec{
			PrincipalARN: user.Spec.ARN, PrincipalID: user.Spec.UserID, Type: accessv1alpha1.TypeStandard,
			AccessPolicies: []accessv1alpha1.AccessPolicy{{PolicyARN: clusterAdminPolicy, Scope: accessv1alpha1.AccessScope{Type: accessv1alpha1.ScopeCluster}}},
		})
	}
	return errNoUser
}

var errNoUser = errors.New("the first IAM user is not there yet")

// firstInterval is the pause between two looks for the first user and role, which the identity service makes at its first start.
const firstInterval = 100 * time.Millisecond

// First makes the first entries, as soon as the identity service has made the user and the role that they are for: of the default node
// role and, if creator is set, of the cluster's creator. It makes each of them once in the life of a cluster, and returns when that is
// done or the context ends.
func (a Access) First(ctx context.Context, creator bool, log *slog.Logger) {
	said := ""
	for {
		err := a.first(ctx, creator)
		if err == nil || ctx.Err() != nil {
			return
		}
		if text := err.Error(); text != said && !errors.Is(err, errNoUser) && !errors.Is(err, nodegroup.ErrNotYet) {
			said = text
			log.Info("waiting to make the first access entries", "reason", text)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(firstInterval):
		}
	}
}
