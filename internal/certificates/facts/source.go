// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"time"

	"muster.dev/muster/internal/certificates/policy"
)

// Source is one source of machines. Lookups never block and do no I/O: an answer that is not there yet is Unknown with
// Soon set, and a Change announces it. There are no Changes before Run.
type Source interface {
	// Name of the source in facts, logs and metrics, as the policy file calls it.
	Name() string
	// Run keeps the source up to date until ctx is done.
	Run(ctx context.Context)
	// HasSynced reports whether lookups can be answered at all.
	HasSynced() bool
	// Machine finds a machine by the ID that this source gives it.
	Machine(id string) policy.Fact[policy.Machine]
	// MachineOfNode finds the machine that may register a node.
	MachineOfNode(node string) policy.Fact[policy.Machine]
	// Owners finds all machines that have a DNS name or an address, both in the text in which policy.Ask gives them. If
	// no machine has it, the answer is Known and empty. Of each machine the ID and the node's name are set; the rest
	// may be left out.
	Owners(name string) policy.Fact[[]policy.Machine]
	// Status returns the health of the source.
	Status() SourceStatus
}

// SourceStatus is the health of a source, for readiness and metrics.
type SourceStatus struct {
	Name   string
	Synced bool
	// Age of what it says: how long ago it was last known to be true. 0 while it is up to date, and before it was asked
	// anything.
	Age time.Duration
	// Problem that it has, "" if none.
	Problem string
}

// Change lists the machines, nodes and names whose answers may have changed.
type Change struct {
	// All means everything: the source was not there or out of date, and is not any more.
	All bool
	// Machines by ID, and Nodes, Names and addresses, before and after.
	Machines, Nodes, Names []string
}
