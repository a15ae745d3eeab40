// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"strconv"
)

// Host is what a host has, and how many nodes claim all of it: a kubelet takes the capacity of its node from the kernel, which shows every
// local machine the whole host. A figure that is not known is 0.
type Host struct {
	CPUs   int   `json:"cpus"`
	Memory int64 `json:"memoryBytes"`
	// Nodes counts the nodes of local machines.
	Nodes int `json:"localNodes"`
}

// Overcommitted returns one line about what nodes claim together and the host does not have, "" if that is nothing.
func (h Host) Overcommitted() string {
	if h.Nodes < 2 || h.CPUs == 0 || h.Memory == 0 {
		return ""
	}
	return fmt.Sprintf("The host is overcommitted: each of %d local nodes claims all of it, together %d CPUs and %s of memory; the host has %d CPUs and %s.",
		h.Nodes, h.Nodes*h.CPUs, gibibytes(int64(h.Nodes)*h.Memory), h.CPUs, gibibytes(h.Memory))
}

func gibibytes(bytes int64) string {
	return strconv.FormatFloat(float64(bytes)/(1<<30), 'f', 1, 64) + " GiB"
}
