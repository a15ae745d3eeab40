// SPDX-License-Identifier: Apache-2.0

// Package instancetype has the EC2 instance types that machines can be: how many processors and how much memory each
// has, and how many pods a node of it takes. The numbers of network interfaces and addresses are those of package
// nodeconfig, by which a kubelet's limit of pods is computed, too: there is one table.
package instancetype

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/internal/node/nodeconfig"
)

// Default is the type of a managed node group that names none, as EKS's.
const Default = "t3.medium"

// Architecture is that of all types.
const Architecture = "x86_64"

// ThreadsPerCore is that of all types.
const ThreadsPerCore = 2

// Type is an instance type.
type Type struct {
	Name         string
	VCPUs, Cores int
	MemoryMiB    int64
	Manufacturer string // of the processor
	ClockGHz     float64
	Network      string // how fast, in EC2's words
	Burstable    bool   // its processors earn credits
	Current      bool   // EC2 counts it among the current generation
	FreeTier     bool
	USD          float64 // the price of an hour on demand, in US dollars. Nobody is charged: tools choose by it
	EBS          EBS
}

// EBS is how fast an EBS-optimized instance of a type reaches its volumes on EC2, always and at most: megabits and
// operations of 16 KiB a second. Tools choose by it; the volumes of machines here are as fast as the host's disk.
type EBS struct {
	BaselineMbps, BaselineIOPS, MaximumMbps, MaximumIOPS int64
}

// mbpsOfMBps is how many megabits a second are a megabyte a second.
const mbpsOfMBps = 8

// BaselineMBps is the bandwidth that an instance always has, in megabytes a second.
func (e EBS) BaselineMBps() float64 { return float64(e.BaselineMbps) / mbpsOfMBps }

// MaximumMBps is the highest bandwidth, in megabytes a second.
func (e EBS) MaximumMBps() float64 { return float64(e.MaximumMbps) / mbpsOfMBps }

// spotShare is the price of a spot instance as a share of the one on demand. Muster has no market: the price never changes.
const spotShare = 0.4

// SpotUSD is the price of an hour as a spot instance, in US dollars.
func (t Type) SpotUSD() float64 { return t.USD * spotShare }

// All are the types, by family and size.
func All() []Type { return catalogue() }

// Find finds a type.
func Find(name string) (Type, error) {
	all := catalogue()
	if i := slices.IndexFunc(all, func(t Type) bool { return t.Name == name }); i >= 0 {
		return all[i], nil
	}
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
	}
	return Type{}, fmt.Errorf("unknown instance type %.40q: there are %s", name, strings.Join(names, ", "))
}

// MemoryBytes is the memory in bytes.
func (t Type) MemoryBytes() int64 { return t.MemoryMiB << 20 }

// Interfaces returns how many network interfaces an instance has on EC2, and how many IPv4 addresses each of them.
func (t Type) Interfaces() (interfaces, addresses int32) {
	interfaces, addresses, _ = nodeconfig.Interfaces(t.Name)
	return interfaces, addresses
}

// MaxPods is how many pods a node takes by EKS's formula.
func (t Type) MaxPods() int32 {
	interfaces, addresses := t.Interfaces()
	return interfaces*(addresses-1) + 2
}
