// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"
)

func TestReadNodes(t *testing.T) {
	const empty = `{"kind": "List", "items": []}`
	for text, want := range map[string]string{
		`{"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "a"}}, {"kind": "Node", "metadata": {"name": "b"}}]}`: "a b",

		// As the API server answers.
		`{"kind": "NodeList", "items": [{"metadata": {"name": "a"}}]}`: "a",

		"\n {\"kind\": \"Node\", \"metadata\": {\"name\": \"a\"}}\n": "a",

		empty: "",
	} {
		nodes, err := ReadNodes([]byte(text))
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                "is not JSON: make it with kubectl get nodes -o json",
		"items: []":                       "is not JSON: make it with kubectl get nodes -o json",
		`{"items": 1}`:                    "is not a list of Nodes: json: ",
		`{"kind": "Node", "metadata": 1}`: "is not a Node: json: ",
		`{"kind": "List", "items": [{"kind": "Node"}, {"kind": "Pod"}]}`: `has an object of kind "Pod": make it`,
		`{"kind": "List", "items": [{"metadata": {"name": "a"}}]}`:       `has an object of kind "": make it`, // who knows what
	} {
		if nodes, err := ReadNodes([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", text, nodes, err, want)
		}
	}
}
