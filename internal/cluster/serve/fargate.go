// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/cluster/clusteraccess"
	"muster.dev/muster/internal/cluster/fargatecontroller"
	"muster.dev/muster/internal/machine/nodegroup"
	"muster.dev/muster/internal/plane/component"
)

// addFargate adds the controllers of a cluster's Fargate profiles and their pods.
func (h *hosted) addFargate(mgr manager.Manager, groups nodegroup.Config, roles *clusteraccess.NodeRoles, connection *rest.Config, scheme *runtime.Scheme, c component.Config) error {
	api, pods, err := fargatecontroller.Open(connection, scheme)
	if err != nil {
		return err
	}
	var public func(ctx context.Context, vpc, subnet string) (table, gateway string, err error)
	if of := h.service.cfg.Public; of != nil {
		public = of(mgr.GetAPIReader())
	}
	return fargatecontroller.Add(mgr, fargatecontroller.Config{
		ClusterName: c.Cluster.Spec.Name, Region: c.Region.Name, User: component.UserService, ImageID: ami.OfRelease(c.Release), BetaPolicies: c.Release.BetaMutatingPolicies,
		Network: c.Network, Usage: groups.Usage, Room: groups.Room, Public: public, Roles: roles, API: api, Pods: pods,
		Recorder: groups.Cluster.GetEventRecorder(v1alpha1.FargateScheduler),
	})
}
