// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"time"

	"muster.dev/muster/internal/certificates/policy"
)

// Nothing is the source of a cluster without an inventory: every machine is Absent.
type Nothing struct{}

var _ Source = Nothing{}

const nothing = "no inventory"

// Name of the source.
func (Nothing) Name() string { return nothing }

// Run does nothing until ctx is done.
func (Nothing) Run(ctx context.Context) { <-ctx.Done() }

// HasSynced is always true.
func (Nothing) HasSynced() bool { return true }

// Machine is never there.
func (Nothing) Machine(string) policy.Fact[policy.Machine] {
	return policy.None[policy.Machine](nothing, time.Now())
}

// MachineOfNode is never there.
func (Nothing) MachineOfNode(string) policy.Fact[policy.Machine] {
	return policy.None[policy.Machine](nothing, time.Now())
}

// Owners are none.
func (Nothing) Owners(string) policy.Fact[[]policy.Machine] {
	return policy.Know([]policy.Machine(nil), nothing, time.Now())
}

// Status has no problem.
func (Nothing) Status() SourceStatus { return SourceStatus{Name: nothing, Synced: true} }
