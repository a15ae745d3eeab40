// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/platform/atomicfile"
)

// saveConfig writes a configuration as the documents that clusterconfig.Load reads, and reports whether that changed anything.
func saveConfig(path string, wanted clusterconfig.Config) (changed bool, err error) {
	objects := []any{savedObject{wanted.Cluster.APIVersion, wanted.Cluster.Kind, savedMeta{wanted.Cluster.Name}, wanted.Cluster.Spec}}
	for _, group := range wanted.NodeGroups {
		objects = append(objects, savedObject{group.APIVersion, group.Kind, savedMeta{group.Name}, group.Spec})
	}
	var content bytes.Buffer
	content.WriteString("# Written by muster: what this cluster was asked to be. Node groups are made from it once; see `muster get nodegroups`.\n")
	for i, object := range objects {
		raw, err := yaml.Marshal(object)
		if err != nil {
			return false, fmt.Errorf("encoding configuration: %w", err)
		}
		if i > 0 {
			content.WriteString("---\n")
		}
		content.Write(raw)
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content.Bytes()) {
		return false, nil
	}
	return true, atomicfile.Write(path, content.Bytes(), 0o600)
}

// savedObject leaves out what only an API server fills in.
type savedObject struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Metadata   savedMeta `json:"metadata"`
	Spec       any       `json:"spec"`
}

type savedMeta struct {
	Name string `json:"name"`
}

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
	if _, err := releaseOf(h.service.cfg.BinDir, spec.Version); err != nil {
		return false, err
	}
	before := saved.Cluster.Spec
	saved.Cluster.Spec = spec
	changed, err = saveConfig(h.dir.Record(), saved)
	before.Tags, before.EKS = spec.Tags, spec.EKS // nothing runs by them
	return changed && !equality.Semantic.DeepEqual(before, spec), err
}
