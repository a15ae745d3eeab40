// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"

	"muster.dev/muster/internal/machine/instancetype"
)

const (
	// vcpusPerCPU is how many virtual processors of instance types a host offers for each of its processors, which
	// machines share: as many as OpenStack's Nova does unless told otherwise (cpu_allocation_ratio).
	vcpusPerCPU = 16
	// leastMemory is what a machine without a known type is promised, in bytes, with one virtual processor. It takes
	// what others leave, within its bounds.
	leastMemory int64 = 256 << 20
)

// Offer is what a host has for its local machines, or has left of that. Memory is in bytes, and is promised once: each
// machine has that of its instance type. The zero value is a host that is not known: it refuses nothing.
type Offer struct {
	Memory int64
	VCPUs  int

	whole *Offer // before anything was taken; nil if the host is not known
}

// Offer is what the host has for local machines beside the control planes of some clusters and of the account, which
// come first.
func (h Host) Offer(clusters int) Offer {
	if h.CPUs == 0 || h.Memory == 0 {
		return Offer{}
	}
	planes := int64(clusters+1) * ControlPlaneMemory
	o := Offer{Memory: max(min(Bounds{Memory: h.Memory}.Machines().Memory, h.Memory-planes), 0), VCPUs: h.CPUs * vcpusPerCPU}
	o.whole = &Offer{Memory: o.Memory, VCPUs: o.VCPUs}
	return o
}

// Give takes what a machine of an instance type has been promised, whether it is left or not.
func (o *Offer) Give(instanceType string) {
	memory, vcpus := promised(instanceType)
	o.Memory -= memory
	o.VCPUs -= vcpus
}

// Take takes what a machine of an instance type is promised. The error says what that is and what is left; nothing is
// taken then.
func (o *Offer) Take(instanceType string) error {
	memory, vcpus := promised(instanceType)
	if o.whole != nil && (memory > o.Memory || vcpus > o.VCPUs) {
		return fmt.Errorf("one takes %s of memory and %d vCPUs, and the host has %s and %d left of the %s and %d that it offers machines",
			gibibytes(memory), vcpus, gibibytes(max(o.Memory, 0)), max(o.VCPUs, 0), gibibytes(o.whole.Memory), o.whole.VCPUs)
	}
	o.Give(instanceType)
	return nil
}

// promised is what a machine of an instance type has for itself.
func promised(instanceType string) (memory int64, vcpus int) {
	if kind, err := instancetype.OfMachine(instanceType); err == nil {
		return kind.MemoryBytes(), kind.VCPUs
	}
	return leastMemory, 1
}
