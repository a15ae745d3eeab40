// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"time"

	"muster.dev/muster/internal/certificates/policy"
)

// Source is one place that knows machines. Lookups never block and never ask anybody: what is not known yet is Unknown with
// Soon set, and a Change tells when it is. Before Run nobody is told anything.
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
	// Owners finds all machines that have a DNS name or an address, both in the text in which policy.Ask gives them. Nobody
	// having it is Known and empty. Of each the ID and the node's name are told; what else it has may be left out.
	Owners(name string) policy.Fact[[]policy.Machine]
	// Status tells how the source is.
	Status() SourceStatus
}

// SourceStatus is how a source is, for readiness and metrics.
type SourceStatus struct {
	Name   string
	Synced bool
	// Age of what it says: how long ago it was last known to be true. 0 while it is up to date, and before it was asked anything.
	Age time.Duration
	// Problem that it has, "" if none.
	Problem string
}

// Change tells what a change in a source may have changed the answer about.
type Change struct {
	// All means everything: the source was not there or out of date, and is not any more.
	All bool
	// Machines by ID, and Nodes, Names and addresses, before and after.
	Machines, Nodes, Names []string
}
