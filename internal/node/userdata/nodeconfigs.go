// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"bytes"
	"fmt"
	"slices"

	"muster.dev/muster/internal/node/nodeconfig"
)

// Ignored says of each part that cloud-init would carry out on an instance of EC2, and nothing does here, that it is
// not carried out. Parts of types that cloud-init does not know are ignored there, too.
func Ignored(parts []Part) []string {
	var ignored []string
	for _, part := range parts {
		if slices.Contains(otherTypes(), part.MediaType) {
			ignored = append(ignored, fmt.Sprintf("%s is %s, which is not carried out here: write it as a script that begins with #!", part.Name, part.MediaType))
		}
	}
	return ignored
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
