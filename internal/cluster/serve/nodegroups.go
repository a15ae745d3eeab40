// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/internal/cluster/clusteraccess"
	"muster.dev/muster/internal/cluster/zonalshiftcontroller"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/machine/nodegroup"
	"muster.dev/muster/internal/plane/component"
)

// addNodeGroups adds the controllers of a cluster's node groups and machines, and those of its Fargate profiles, of the
// Karpenter of its control plane, and of its zonal shifts, which see the cluster's Nodes in their cache.
func (h *hosted) addNodeGroups(mgr manager.Manager, groups nodegroup.Config, roles *clusteraccess.NodeRoles, connection *rest.Config, scheme *runtime.Scheme, c component.Config) error {
	causes, err := cause.Default()
	if err != nil {
		return err
	}
	groups.Cause = func(s nodegroup.Symptom) string {
		return string(causes.Named(cause.Source(s.Source), s.Code, s.Text, s.Still))
	}
	if err := nodegroup.Add(mgr, groups); err != nil {
		return fmt.Errorf("adding the controllers of node groups: %w", err)
	}
	if err := h.addFargate(mgr, groups, roles, connection, scheme, c); err != nil {
		return err
	}
	if err := h.addKarpenter(mgr, connection, roles, c); err != nil {
		return err
	}
	api, err := zonalshiftcontroller.NewAPI(connection, scheme)
	if err != nil {
		return err
	}
	return zonalshiftcontroller.Add(mgr, groups.Cluster, zonalshiftcontroller.Config{Namespace: c.Dir.Namespace(), API: api, BetaPolicies: c.Release.BetaMutatingPolicies})
}
