// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"bytes"
	"fmt"

	"muster.dev/muster/internal/nodeconfig"
)

// NodeConfigs are the documents among parts that are NodeConfigs, and doubts about parts that look like one and have another type:
// a node would not read them.
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
