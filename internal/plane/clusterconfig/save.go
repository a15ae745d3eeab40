// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"bytes"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/platform/atomicfile"
)

// Save writes a configuration as the documents that [Read] reads, and reports whether that changed anything.
func Save(path string, wanted Config) (changed bool, err error) {
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
