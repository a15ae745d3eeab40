// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/url"
	"strings"

	"muster.dev/muster/internal/console/blueprint"
	"muster.dev/muster/internal/console/view"
)

// newInput is a field of the form of a new cluster for its template.
func newInput(c view.Create, name, label, hint string) input {
	in := input{ID: strings.NewReplacer("[", "-", "].", "-").Replace(name), Name: name, Label: label, Hint: hint, Value: c.Value(name), Wrong: c.Wrong(name), Most: mostInput}
	switch part := name[strings.LastIndexByte(name, '.')+1:]; part {
	case "minSize", "desiredSize", "maxSize", "diskSize":
		in.Number, in.Class, in.Most = true, "short", 10
	case "roleArn":
		in.List, in.Class = "roles", "long"
	case "autoNodeRole", "nodeRole":
		in.List, in.Class = "node-roles", "long"
	case "instanceTypes":
		in.List = "types"
	}
	return in
}

// mostInput is how long the text of a field may be.
const mostInput = 2048

// input is a field of text.
type input struct {
	ID, Name, Label, Hint, Value, List, Class string
	Number                                    bool
	Most                                      int
	Wrong                                     []string
}

// newGroup is the address of the form of a node group of a cluster.
func newGroup(cluster string) string {
	return "/new?" + url.Values{blueprint.FieldCluster: {cluster}}.Encode()
}
