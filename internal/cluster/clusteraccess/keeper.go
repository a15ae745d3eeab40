// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/principalid"
	"muster.dev/muster/internal/plane/component"
)

// Keeper keeps who gets into a cluster by IAM as it is to be, beside the cluster's controllers.
type Keeper struct {
	Roles    *NodeRoles
	Admitted *Admitted

	access  Access
	specs   component.Config
	plane   manager.Manager
	direct  client.Client
	entries cache.ListerWatcher
	keys    *keyservice.Client
	log     *slog.Logger
}

// NewKeeper makes what keeps the access of a cluster: its API server is reached by the connection, and the management
// plane by the manager of its controllers. Store is that of the identity service, or nil while that service does not
// run. A keeper is closed at its end.
func NewKeeper(c component.Config, plane manager.Manager, connection *rest.Config, store func() identityservice.Store, log *slog.Logger) (_ *Keeper, err error) {
	k := &Keeper{specs: c, plane: plane, log: log}
	k.keys, err = keyservice.NewClient(keyservice.ClientConfig{
		Socket: c.State.MetadataSocket(), Logger: log,
		Credential: keyservice.Credential{CA: c.Account.Authority(authority.Account), File: c.Account.Credential(component.CredentialAccountMetadata)},
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			k.Close()
		}
	}()
	if k.direct, err = client.New(connection, client.Options{Scheme: plane.GetScheme(), Mapper: Mapper()}); err != nil {
		return nil, fmt.Errorf("making a client of the cluster for access entries: %w", err)
	}
	k.access = New(Config{
		Management: plane.GetAPIReader(), Cluster: k.direct, Namespace: c.Dir.Namespace(), Mode: c.Cluster.Spec.AccessConfig.AuthenticationMode,
		Store: store,
	})
	if k.Roles, err = NewNodeRoles(c, k.access, k.keys); err != nil {
		return nil, err
	}
	if k.Admitted, err = NewAdmitted(connection, k.keys); err != nil {
		return nil, err
	}
	k.entries, err = authenticator.AccessEntries(connection)
	return k, err
}

// Close ends the connection to the account.
func (k *Keeper) Close() { k.keys.Close() }

// Run keeps the access until the context ends: it makes the first entries, records the ids of principals in entries,
// and hears of changed mappings.
func (k *Keeper) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		// If the watch fails, admission is polled every 15 s.
		if err := k.Admitted.Run(ctx); err != nil {
			k.log.Warn("watching the mappings of the cluster failed; machines are checked every 15 s", "error", err)
		}
	})
	group.Go(func() { principalid.New(k.plane.GetAPIReader(), k.direct, k.log).Run(ctx, k.entries) })
	creator := k.specs.Cluster.Spec.AccessConfig.BootstrapClusterCreatorAdminPermissions
	k.access.First(ctx, creator == nil || *creator, k.log)
	if err := k.Roles.Tidy(ctx); err != nil && ctx.Err() == nil { // of groups that went while the service was away
		k.log.Warn("instance profiles of groups that are gone may be left", "error", err)
	}
	k.Roles.Leave(ctx, k.formerRoleLeft(ctx), k.log)
}

// formerRoleLeft returns a function that records as an Event of a Cluster that the entry of its former node role was
// removed.
func (k *Keeper) formerRoleLeft(ctx context.Context) func(message string) {
	recorder, namespace := k.plane.GetEventRecorder("muster"), k.specs.Dir.Namespace()
	return func(message string) {
		cluster := &v1alpha1.Cluster{}
		if err := k.plane.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: namespace, Name: namespace}, cluster); err != nil {
			return // it is being deleted
		}
		recorder.Eventf(cluster, nil, corev1.EventTypeNormal, "NodeRoleEntryRemoved", "Delete", "%s", message)
	}
}
