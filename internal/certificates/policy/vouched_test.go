// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

// Where no fact is asked for, none would have changed that the request is not approved, and nobody waits for one.
func TestNoFactHelpsWhomNobodyVouchesFor(t *testing.T) {
	const rounds = 5_000
	seed := uint64(time.Now().UnixNano())
	g := generator{Rand: rand.New(rand.NewPCG(seed, 0)), requests: map[string][]byte{}, key: pkitest.Key(t), signers: allSigners(t)}
	verdicts := map[decision.Verdict]int{}
	for range rounds {
		w := g.world(t)
		if policy.Vouched(w.policy, policy.Read(&w.object, w.policy)) {
			continue
		}
		d := w.decide()
		verdicts[d.Verdict]++
		if d.Verdict != decision.Ignore && d.Verdict != decision.Deny {
			t.Fatalf("seed %d: %s\n%+v\n%+v", seed, d, w.object.Spec, w.facts)
		}
	}
	if verdicts[decision.Ignore] < rounds/100 || verdicts[decision.Deny] < rounds/100 {
		t.Errorf("too few to mean anything: %v", verdicts)
	}
}
