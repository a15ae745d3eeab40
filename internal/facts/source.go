// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"

	"muster.dev/muster/internal/policy"
)

// Source is one place that knows machines. Lookups never block and never ask anybody: what is not known yet is Unknown with
// Soon set, and a Change tells when it is.
type Source interface {
	// Name of the source in facts, logs and metrics, as the policy file calls it.
	Name() string
	// Run keeps the source up to date until ctx is done.
	Run(ctx context.Context)
	// HasSynced tells whether lookups can be answered at all.
	HasSynced() bool
	// Machine finds a machine by the ID that this source gives it.
	Machine(id string) policy.Fact[policy.Machine]
	// MachineOfNode finds the machine that may register a node.
	MachineOfNode(node string) policy.Fact[policy.Machine]
	// Owners finds all machines that have a DNS name or an address, both in the text in which policy.Ask gives them.
	Owners(name string) policy.Fact[[]policy.Machine]
}
