// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// HostStatus is what this host has, and how many nodes claim all of it: a kubelet takes the capacity of its node from the kernel, which
// shows every local machine the whole host.
type HostStatus struct {
	CPUs   int   `json:"cpus"`
	Memory int64 `json:"memoryBytes"`
	// Nodes are those of local machines.
	Nodes int `json:"localNodes"`
}

// Overcommitted says in one line what nodes claim together that the host does not have; empty if nothing.
func (h HostStatus) Overcommitted() string {
	if h.Nodes < 2 || h.CPUs == 0 || h.Memory == 0 {
		return ""
	}
	return fmt.Sprintf("The host is overcommitted: each of %d local nodes claims all of it, together %d CPUs and %s of memory; the host has %d CPUs and %s.",
		h.Nodes, h.Nodes*h.CPUs, gibibytes(int64(h.Nodes)*h.Memory), h.CPUs, gibibytes(h.Memory))
}

func gibibytes(bytes int64) string {
	return strconv.FormatFloat(float64(bytes)/(1<<30), 'f', 1, 64) + " GiB"
}

// readHost reads what the host has. A number that cannot be read stays 0, and no warning is made of it.
func readHost() HostStatus {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return HostStatus{}
	}
	return HostStatus{CPUs: runtime.NumCPU(), Memory: memoryTotal(string(raw))}
}

// memoryTotal is MemTotal of /proc/meminfo (proc_meminfo(5)) in bytes, or 0.
func memoryTotal(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "MemTotal:" || fields[2] != "kB" {
			continue
		}
		kibibytes, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0
		}
		return kibibytes << 10
	}
	return 0
}
