// SPDX-License-Identifier: Apache-2.0

package nodeconfig_test

import (
	"fmt"

	"muster.dev/muster/internal/node/nodeconfig"
)

// Documents are merged in their order, and each value keeps its origin.
func ExampleRead() {
	merged, err := nodeconfig.Read([]nodeconfig.Source{
		{Name: "user data", Content: []byte(`apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: lab, cidr: 10.100.0.0/16}
  kubelet: {config: {maxPods: 20}}
`)},
		{Name: "/etc/muster/node.yaml", Content: []byte(`apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet: {config: {maxPods: 40}}
`)},
	}, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(merged.Spec.Cluster.Name, "from", merged.Origins["spec.cluster.name"])
	fmt.Println(merged.Spec.Kubelet.Config["maxPods"], "from", merged.Origins["spec.kubelet.config.maxPods"])
	// Output:
	// lab from user data
	// 40 from /etc/muster/node.yaml
}

// A field that does not exist is an error with its path, or a warning if the reading is lenient.
func ExampleRead_unknownField() {
	_, err := nodeconfig.Read([]nodeconfig.Source{{Name: "node.yaml", Content: []byte(`apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: lab, cdir: 10.100.0.0/16}
`)}}, false)
	fmt.Println(err)
	// Output: node.yaml: unknown field "spec.cluster.cdir"
}
