// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ReadNodes reads what kubectl get nodes -o json prints, for several nodes or for one. An error is what is wrong with
// the file: "is not JSON: …".
func ReadNodes(data []byte) ([]corev1.Node, error) {
	var list struct {
		Kind  string        `json:"kind"`
		Items []corev1.Node `json:"items"`
	}
	if data = bytes.TrimSpace(data); !bytes.HasPrefix(data, []byte("{")) {
		return nil, errors.New("is not JSON: make it with kubectl get nodes -o json")
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("is not a list of Nodes: %w", err)
	}
	nodes := list.Items
	if list.Kind == "Node" {
		nodes = make([]corev1.Node, 1)
		if err := json.Unmarshal(data, &nodes[0]); err != nil {
			return nil, fmt.Errorf("is not a Node: %w", err)
		}
	}
	for _, n := range nodes {
		if n.Kind != "Node" && (n.Kind != "" || list.Kind != "NodeList") {
			return nil, fmt.Errorf("has an object of kind %q: make it with kubectl get nodes -o json, which prints Nodes alone", n.Kind)
		}
	}
	return nodes, nil
}
