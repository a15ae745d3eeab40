// SPDX-License-Identifier: Apache-2.0

package bootstrapsh

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const usageLine = "/etc/eks/bootstrap.sh CLUSTER [flags]"

// Usage is the help, with a line for each flag.
func Usage() string {
	var text strings.Builder
	text.WriteString("Says what a machine is to join, in the words of EKS's Amazon Linux 2 nodes.\n\nUsage:\n  " + usageLine + "\n\nFlags, each with its value as the next word:\n")
	all := conversions()
	for _, flag := range slices.Sorted(maps.Keys(all)) {
		help := all[flag].help
		if help == "" {
			help = "does nothing here"
		}
		fmt.Fprintf(&text, "  %-26s %s\n", flag, help)
	}
	return text.String()
}
