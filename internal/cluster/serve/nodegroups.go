// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/internal/cluster/zonalshiftcontroller"
	"muster.dev/muster/internal/machine/nodegroup"
	"muster.dev/muster/internal/plane/component"
)

// addNodeGroups adds the controllers of a cluster's node groups and machines, and that of its zonal shifts, which sees
// the cluster's Nodes in their cache.
func addNodeGroups(mgr manager.Manager, groups nodegroup.Config, connection *rest.Config, scheme *runtime.Scheme, c component.Config) error {
	if err := nodegroup.Add(mgr, groups); err != nil {
		return fmt.Errorf("adding the controllers of node groups: %w", err)
	}
	api, err := zonalshiftcontroller.NewAPI(connection, scheme)
	if err != nil {
		return err
	}
	return zonalshiftcontroller.Add(mgr, groups.Cluster, zonalshiftcontroller.Config{Namespace: c.Dir.Namespace(), API: api, BetaPolicies: c.Release.BetaMutatingPolicies})
}
