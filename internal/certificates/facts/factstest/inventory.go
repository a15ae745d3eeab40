// SPDX-License-Identifier: Apache-2.0

package factstest

import (
	"context"
	"slices"
	"sync"

	"muster.dev/muster/internal/certificates/policy"
)

// Inventory is an inventory of one Source, and access reviews, which fail on demand. Its zero value works.
type Inventory struct {
	Source

	reviewing sync.Mutex
	refuse    bool
	reviews   []policy.Access
}

// Owners finds the IDs of all machines with a name or address.
func (f *Inventory) Owners(name string) policy.Fact[[]string] {
	found := f.Source.Owners(name)
	if found.State != policy.Known {
		return policy.Fact[[]string]{Why: found.Why, Source: found.Source, Soon: found.Soon}
	}
	var ids []string
	for _, m := range found.Value {
		ids = append(ids, m.ID)
	}
	return policy.Know(ids, found.Source, found.At)
}

// Refuse makes access reviews say no, or yes again.
func (f *Inventory) Refuse(refuse bool) {
	f.reviewing.Lock()
	defer f.reviewing.Unlock()
	f.refuse = refuse
}

// Reviews returns the access reviews so far.
func (f *Inventory) Reviews() []policy.Access {
	f.reviewing.Lock()
	defer f.reviewing.Unlock()
	return slices.Clone(f.reviews)
}

// Review says yes unless told otherwise, and Unknown while the source is broken.
func (f *Inventory) Review(_ context.Context, q policy.Access) policy.Fact[bool] {
	f.reviewing.Lock()
	defer f.reviewing.Unlock()
	f.reviews = append(f.reviews, q)
	if problem := f.Status().Problem; problem != "" {
		return policy.DontKnow[bool](f.Name(), problem)
	}
	return policy.Know(!f.refuse, f.Name(), f.now())
}
