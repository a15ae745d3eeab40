// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/clusterconfig"
)

// adopt keeps the record as people want the cluster to be, and has the cluster follow it.
func (h *hosted) adopt(object *v1alpha1.Cluster) error {
	changed, err := h.record(object.Spec)
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

// record keeps what is asked of the cluster, and reports whether anything is to be run in another way.
func (h *hosted) record(spec v1alpha1.ClusterSpec) (changed bool, err error) {
	saved, err := clusterconfig.Read(h.dir.Record())
	if err != nil {
		return false, err
	}
	if err := clusterconfig.CheckMode(saved.Cluster.Spec, spec); err != nil {
		return false, err // the API server refuses it; a management plane that was restored may not know
	}
	if _, err := clusterconfig.ReleaseOf(spec.Version); err != nil {
		return false, err
	}
	before := saved.Cluster.Spec
	saved.Cluster.Spec = spec
	changed, err = clusterconfig.Save(h.dir.Record(), saved)
	before.Tags, before.EKS = spec.Tags, spec.EKS // nothing runs by them
	return changed && !equality.Semantic.DeepEqual(before, spec), err
}
