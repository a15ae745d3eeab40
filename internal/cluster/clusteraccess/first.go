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
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/machine/nodegroup"
	"muster.dev/muster/internal/plane/component"
)

// Access writes the entries that let IAM's users and roles into a cluster: access entries, or IAMIdentityMapping
// objects where the authentication mode does not read access entries.
type Access struct {
	management client.Reader
	cluster    client.Client
	namespace  string // of the cluster in the management plane
	mode       v1alpha1.AuthenticationMode
	// store returns the store of the identity service, or nil while that service does not run.
	store func() identityservice.Store
	now   func() time.Time
}

// Config is what New needs. All fields are required.
type Config struct {
	// Management reads the management plane past any cache: a role that was made a moment ago counts.
	Management client.Reader
	// Cluster is a client of the cluster with [Mapper].
	Cluster client.Client
	// Namespace is that of the cluster in the management plane.
	Namespace string
	Mode      v1alpha1.AuthenticationMode
	// Store returns the store of the identity service, or nil while that service does not run.
	Store func() identityservice.Store
}

// New returns the entries of one cluster.
func New(c Config) Access {
	return Access{management: c.Management, cluster: c.Cluster, namespace: c.Namespace, mode: c.Mode, store: c.Store, now: time.Now}
}

const (
	clusterAdminPolicy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
	creatorEntry       = "cluster-creator"
	// firstAccess records that the first entries were made, so that an entry that somebody deletes is not made again.
	firstAccess = "muster-first-access"
)

// record reads the record of the first entries. there is false if the first entries were not made yet.
func (a Access) record(ctx context.Context) (record *corev1.ConfigMap, there bool, err error) {
	record = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: policyconfig.HostsNamespace, Name: firstAccess}}
	err = a.cluster.Get(ctx, client.ObjectKeyFromObject(record), record)
	if client.IgnoreNotFound(err) != nil {
		return nil, false, fmt.Errorf("reading ConfigMap "+firstAccess+": %w", err)
	}
	return record, err == nil, nil
}

// change writes the record, unless somebody changed it since it was read.
func (a Access) change(ctx context.Context, record *corev1.ConfigMap) error {
	if err := a.cluster.Update(ctx, record); err != nil {
		return fmt.Errorf("updating ConfigMap "+firstAccess+": %w", err)
	}
	return nil
}

// first makes the entries of the creator and of the cluster's node role, unless the record says that they were made.
func (a Access) first(ctx context.Context, creator bool) error {
	done, there, err := a.record(ctx)
	if err != nil {
		return err
	}
	if there {
		if err := a.moved(ctx, done); err != nil {
			return err
		}
		return a.ownNodes(ctx, done)
	}
	if creator {
		if err := a.creator(ctx); err != nil {
			return err
		}
	}
	role, err := a.makeOwnRole(ctx, false)
	if err != nil {
		return err
	}
	if err := a.nodes(ctx, role); err != nil {
		return err
	}
	done.Data = map[string]string{ownRole: role.Spec.ARN, firstMode: string(a.mode)}
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

const (
	// firstInterval is the pause between two looks for the first user, which the identity service makes at its first
	// start.
	firstInterval = 100 * time.Millisecond
	// problemInterval is the pause after a problem that people have to mend.
	problemInterval = 10 * time.Second
)

// First makes the first entries, as soon as the identity service can make the role that they are for: of the cluster's
// node role and, if creator is set, of the cluster's creator. It makes each of them once in the life of a cluster, and
// returns when that is done or the context ends.
func (a Access) First(ctx context.Context, creator bool, log *slog.Logger) {
	said := ""
	for {
		err := a.first(ctx, creator)
		if err == nil || ctx.Err() != nil {
			return
		}
		interval := firstInterval
		if _, problem := errors.AsType[*nodegroup.RoleProblem](err); problem {
			interval = problemInterval
		}
		if text := err.Error(); text != said && !errors.Is(err, errNoUser) && !errors.Is(err, nodegroup.ErrNotYet) {
			said = text
			log.Info("waiting to make the first access entries", "reason", text)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
	}
}
