// SPDX-License-Identifier: Apache-2.0

package launchdata

import "testing"

func TestPods(t *testing.T) {
	const head = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet: "
	const boundary = "Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: "
	for name, test := range map[string]struct {
		data, kind string
		want       int
	}{
		"nothing said":             {kind: "m5.large", want: 29},
		"an unknown type":          {kind: "local", want: 110},
		"no type":                  {want: 110},
		"the kubelet's config":     {data: head + "{config: {maxPods: 17}}", kind: "m5.large", want: 17},
		"the kubelet's flags":      {data: head + "{config: {maxPods: 17}, flags: [--max-pods=40]}", kind: "m5.large", want: 40},
		"an expression":            {data: head + "{maxPodsExpression: max_pods * 2}", kind: "m5.large", want: 58},
		"an expression that fails": {data: head + "{maxPodsExpression: default_enis}", kind: "local", want: 110},
		"many":                     {data: head + "{config: {maxPods: 1000000}}", want: 65533},
		"what cannot be read":      {data: "\x1f\x8bx", kind: "m5.large", want: 29},
		"a NodeConfig that is bad": {data: head + "[]", kind: "m5.large", want: 29},
		"a script":                 {data: "#!/bin/sh\n/etc/eks/bootstrap.sh muster --use-max-pods false\n", kind: "m5.large", want: 110},
		"a script and more":        {data: boundary + "text/x-shellscript\n\n#!/bin/sh\n--B\nContent-Type: application/node.eks.aws\n\n" + head + "{config: {maxPods: 200}}\n--B--\n", kind: "m5.large", want: 200},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Pods([]byte(test.data), test.kind); got != test.want {
				t.Errorf("%d pods, want %d", got, test.want)
			}
		})
	}
}
