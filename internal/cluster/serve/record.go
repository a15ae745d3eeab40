// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/clustercontroller"
)

// adopt keeps the record as people want the cluster to be, and has the cluster follow it.
func (h *hosted) adopt(object *v1alpha1.Cluster) error {
	changed, err := clustercontroller.Change(h.dir, object.Spec)
	h.mu.Lock()
	h.refusal, h.refusedAt = "", object.Generation
	if err != nil {
		h.refusal = err.Error()
	}
	h.mu.Unlock()
	if err != nil {
		return err
	}
	if changed {
		h.log.Info("the cluster is to change")
		h.requestReload()
	}
	return nil
}
