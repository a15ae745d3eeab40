// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/clusterconfig"
)

// further reports whether a mode comes after another, so that there is no way back to that.
func further(mode, than v1alpha1.AuthenticationMode) bool {
	order := v1alpha1.AuthenticationModes()
	return slices.Index(order, mode) > slices.Index(order, than)
}

// checkMode refuses to take a cluster back to a mode that it has left.
func checkMode(saved, wanted v1alpha1.ClusterSpec) error {
	is, asked := saved.AccessConfig.AuthenticationMode, wanted.AccessConfig.AuthenticationMode
	if further(is, asked) {
		return fmt.Errorf("spec.accessConfig.authenticationMode: the cluster is in mode %s and cannot go back to %s, which would admit principals again that only access entries keep out: write %[1]s", is, asked)
	}
	return nil
}

// adopt keeps the record as people want the cluster to be, and has the cluster follow it.
func (h *hosted) adopt(object *v1alpha1.Cluster) error {
	changed, err := h.record(object.Spec)
	if err != nil {
		return err
	}
	if changed {
		h.log.Info("the cluster is to change")
		h.requestReload()
	}
	return nil
}

func (h *hosted) record(spec v1alpha1.ClusterSpec) (changed bool, err error) {
	saved, err := clusterconfig.Read(h.dir.Record())
	if err != nil {
		return false, err
	}
	if further(saved.Cluster.Spec.AccessConfig.AuthenticationMode, spec.AccessConfig.AuthenticationMode) {
		return false, checkMode(saved.Cluster.Spec, spec) // the API server refuses it; a management plane that was restored may not know
	}
	saved.Cluster.Spec = spec
	return saveConfig(h.dir.Record(), saved)
}
