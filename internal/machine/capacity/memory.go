// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"strconv"

	"muster.dev/muster/internal/machine/instancetype"
)

// ControlPlaneMemory is what the host must have available before another control plane starts, in bytes: what its
// programs hold (etcd, kube-apiserver, kube-controller-manager, kube-scheduler, certificate controller, authenticator,
// pod identity webhook, simulator). Half a minute after the start, with Kubernetes v1.36.3 and three nodes, 845 MiB
// were resident: 369 MiB of its own, and pages of programs, which control planes share. The figure is about twice the
// memory of its own, so there is as much again to grow.
const ControlPlaneMemory int64 = 768 << 20

// ControlPlanes returns an error if the host has no memory left for one more control plane. available is MemAvailable
// of /proc/meminfo in bytes (proc_meminfo(5)), or less in a container, as host.MemoryRoom of internal/platform/host
// returns it, running is how many clusters have one already.
//
// The kernel's figure includes what running control planes use. It does not include what one that has just been started
// is about to use, for the first half minute or so: a caller that starts several at once subtracts [ControlPlaneMemory]
// for each of them.
func ControlPlanes(available int64, running int) error {
	if available >= ControlPlaneMemory {
		return nil
	}
	fix := "stop other programs, or use a host with more memory"
	switch {
	case running == 1:
		fix = "delete the cluster that runs here, " + fix
	case running > 1:
		fix = fmt.Sprintf("delete one of the %d clusters that run here, %s", running, fix)
	}
	return fmt.Errorf("the host has %d MiB of memory available, and the control plane of a cluster needs %d MiB: %s", max(available, 0)>>20, ControlPlaneMemory>>20, fix)
}

// Host is what a host has, and what the nodes of its local machines claim of it. The kubelet of a machine with an
// instance type reports what the type has, whether the host has that or not; that of a machine without one takes the
// capacity of its node from the kernel, which shows it the whole host. A figure that is not known is 0.
type Host struct {
	CPUs   int   `json:"cpus"`
	Memory int64 `json:"memoryBytes"`
	// Nodes counts the nodes of local machines.
	Nodes int `json:"localNodes"`
	// ClaimedCPUs and ClaimedMemory are what their kubelets report together.
	ClaimedCPUs   int   `json:"claimedCPUs"`
	ClaimedMemory int64 `json:"claimedMemoryBytes"`
}

// Claim adds the node of a machine of an instance type.
func (h *Host) Claim(instanceType string) {
	cpus, memory := h.CPUs, h.Memory
	if kind, err := instancetype.OfMachine(instanceType); err == nil {
		cpus, memory = kind.VCPUs, kind.MemoryBytes()
	}
	h.Nodes++
	h.ClaimedCPUs += cpus
	h.ClaimedMemory += memory
}

// Overcommitted returns one line about what nodes claim together and the host does not have, "" if that is nothing.
func (h Host) Overcommitted() string { return h.overcommitted("is") }

// WillBeOvercommitted is Overcommitted for nodes that are about to be made.
func (h Host) WillBeOvercommitted() string { return h.overcommitted("will be") }

func (h Host) overcommitted(is string) string {
	if h.CPUs == 0 || h.Memory == 0 || h.ClaimedCPUs <= h.CPUs && h.ClaimedMemory <= h.Memory {
		return ""
	}
	claim := "1 local node claims"
	if h.Nodes > 1 {
		claim = fmt.Sprintf("%d local nodes together claim", h.Nodes)
	}
	return fmt.Sprintf("The host %s overcommitted: %s %d CPUs and %s of memory; the host has %d CPUs and %s.",
		is, claim, h.ClaimedCPUs, gibibytes(h.ClaimedMemory), h.CPUs, gibibytes(h.Memory))
}

func gibibytes(bytes int64) string {
	return strconv.FormatFloat(float64(bytes)/(1<<30), 'f', 1, 64) + " GiB"
}
