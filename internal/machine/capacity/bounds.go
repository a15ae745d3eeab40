// SPDX-License-Identifier: Apache-2.0

package capacity

import "muster.dev/muster/internal/machine/instancetype"

// Bounds are how much memory, in bytes, and how many processes, each thread counted, a host or its machines may have.
// Zero is no bound.
type Bounds struct{ Memory, PIDs int64 }

const (
	// reservedShare is the part of a host that local machines leave to control planes and to everything else: one in so
	// many.
	reservedShare = 8
	// reservedMemory is the least of it, in bytes, and reservedMost the most: one part in so many, on small hosts.
	reservedMemory int64 = 1 << 30
	reservedMost         = 4
	// aloneShare bounds the processes of one machine: it may have 1/aloneShare of the processes of all machines. If one
	// machine has half of them, the others can still start processes.
	aloneShare = 2
	// memoryOfProcess is the memory for which a kernel allows one process by default (kernel/fork.c, set_max_threads:
	// an eighth of the memory for stacks of 16 KiB). Instances of EC2 have that limit.
	memoryOfProcess = 128 << 10
)

// Machines returns the bounds of all local machines of a host together.
func (host Bounds) Machines() Bounds {
	return Bounds{Memory: host.Memory - host.reserved(), PIDs: host.PIDs - host.PIDs/reservedShare}
}

// Machine returns the bounds of one local machine of a host: those of its instance type, but less than all machines
// together may have, so that the machine meets its own bound first, and others have something left. A machine of no
// known type has what is left of the host.
func (host Bounds) Machine(instanceType string) Bounds {
	all := host.Machines()
	alone := Bounds{Memory: all.Memory - host.reserved(), PIDs: all.PIDs / aloneShare}
	memory := host.Memory
	if kind, err := instancetype.OfMachine(instanceType); err == nil {
		memory = kind.MemoryBytes()
	}
	return Bounds{Memory: min(alone.Memory, memory), PIDs: min(alone.PIDs, memory/memoryOfProcess)}
}

// reserved is how much memory machines leave.
func (host Bounds) reserved() int64 {
	return min(max(host.Memory/reservedShare, reservedMemory), host.Memory/reservedMost)
}
