// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addonfiles"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/platform/steps"
)

// applyTimeout is how long the management plane may take to be there for a change.
const applyTimeout = time.Minute

// apply changes the cluster to the requested spec, and makes the requested node groups or changes them.
func (s Session) apply(ctx context.Context) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	var refused error
	changed, err = s.applied(ctx, "cluster "+s.Wanted.Cluster.Spec.Name, func(c client.Client) (bool, error) {
		var addons v1alpha1.AddonList
		if err := c.List(ctx, &addons, client.InNamespace(s.Cluster().Namespace())); err != nil {
			return false, err
		}
		if refused = addonfiles.CheckComputeAlone(s.Wanted.Cluster.Spec, addons.Items); refused != nil {
			return false, nil //nolint:nilerr // it is returned below: another try would be refused, too
		}
		return clusterconfig.ApplyCluster(ctx, c, s.Wanted.Cluster)
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return changed, err
	}
	for _, wanted := range s.Wanted.NodeGroups {
		did, err := s.applied(ctx, "node group "+wanted.Spec.Name, func(c client.Client) (bool, error) {
			return s.Wanted.ApplyNodeGroup(ctx, c, wanted.DeepCopy())
		})
		changed = changed || did
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// applied repeats a change until it is made or refused: the management plane may still be starting.
func (s Session) applied(ctx context.Context, what string, change func(client.Client) (bool, error)) (changed bool, err error) {
	for {
		c, err := planeclient.NewAdministrator(s.State)
		if err == nil {
			changed, err = change(c)
		}
		if err == nil {
			return changed, nil
		}
		if clusterconfig.Final(err) || steps.Pause(ctx, pollInterval) != nil {
			return false, fmt.Errorf("applying %s: %w", what, err)
		}
	}
}
