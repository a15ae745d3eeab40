// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/clustercontroller"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/planerollout"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/release"
)

// checkVersion refuses a version that the control plane of a cluster cannot be taken to now.
func (s *Service) checkVersion(ctx context.Context, management client.Reader, object *v1alpha1.Cluster, to release.Release) error {
	dir := s.cfg.State.Cluster(object.Namespace)
	saved, err := clusterconfig.Read(dir.Record())
	if err != nil {
		return unasked{err}
	}
	versions, err := planerollout.VersionsOf(dir, saved.Cluster.Spec, v1alpha1.ClusterSpec{Version: to.Minor()}, time.Now())
	if err != nil || !versions.Moves() {
		return err
	}
	return s.checkMove(ctx, management, object, to)
}

// checkMove refuses a release that is not built, or that the cluster's machines do not fit.
func (s *Service) checkMove(ctx context.Context, management client.Reader, object *v1alpha1.Cluster, to release.Release) error {
	if missing := programs.Unbuilt(s.cfg.BinDir, to); missing != "" {
		return fmt.Errorf("spec.version: %s", missing)
	}
	var machines v1alpha1.MachineList
	if err := management.List(ctx, &machines); err != nil {
		return unasked{fmt.Errorf("listing the machines of cluster %s: %w", object.Spec.Name, err)}
	}
	var groups v1alpha1.NodeGroupList
	if err := management.List(ctx, &groups, client.InNamespace(object.Namespace)); err != nil {
		return unasked{fmt.Errorf("listing the node groups of cluster %s: %w", object.Spec.Name, err)}
	}
	own := slices.DeleteFunc(machines.Items, func(m v1alpha1.Machine) bool { return m.Spec.ClusterName != object.Spec.Name })
	return clustercontroller.CheckMachines(to, own, groups.Items)
}
