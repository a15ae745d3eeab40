// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"bytes"
	"fmt"
	"slices"

	"muster.dev/muster/internal/node/nodeconfig"
)

// Ignored says of each part that cloud-init would carry out on an instance of EC2, and nothing does here, that it is
// not carried out. Parts of types that cloud-init does not know are ignored there, too, and a cloud-config that says
// nothing, such as Cluster API's AWS provider writes, asks for nothing.
func Ignored(parts []Part) []string {
	var ignored []string
	for _, part := range parts {
		if slices.Contains(otherTypes(), part.MediaType) && (part.MediaType != TypeCloudConfig || !onlyComments(part.Content)) {
			ignored = append(ignored, fmt.Sprintf("%s is %s, which is not carried out here: write it as a script that begins with #!", part.Name, part.MediaType))
		}
	}
	return ignored
}

// onlyComments reports whether each line of YAML is empty or a comment.
func onlyComments(content []byte) bool {
	for line := range bytes.Lines(content) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// NodeConfigs are the documents among parts that are NodeConfigs, and doubts about parts that look like one and have
// another type: a node would not read them.
func NodeConfigs(parts []Part) (sources []nodeconfig.Source, doubts []string) {
	for _, part := range parts {
		switch {
		case part.MediaType == nodeconfig.MediaType:
			sources = append(sources, nodeconfig.Source{Name: part.Name, Content: part.Content})
		case part.MediaType != TypeShellScript && (bytes.Contains(part.Content, []byte(nodeconfig.APIVersionEKS)) || bytes.Contains(part.Content, []byte(nodeconfig.APIVersion))):
			doubts = append(doubts, fmt.Sprintf("%s looks like a NodeConfig and is ignored: its Content-Type is %s, not %s", part.Name, part.MediaType, nodeconfig.MediaType))
		}
	}
	return sources, doubts
}
