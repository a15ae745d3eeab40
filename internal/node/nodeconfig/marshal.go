// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Marshal writes the document, one of muster's own, that Read reads back. It holds the token if there is one.
func Marshal(spec Spec) ([]byte, error) {
	raw, err := yaml.Marshal(NodeConfig{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind}, Spec: spec})
	if err != nil {
		return nil, fmt.Errorf("writing NodeConfig: %w", err)
	}
	return raw, nil
}
