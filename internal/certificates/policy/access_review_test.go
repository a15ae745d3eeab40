// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

func TestAccessReview(t *testing.T) {
	access := func(f policy.Fact[bool]) func(*world) { return func(w *world) { w.facts.Access = f } }
	for name, w := range map[string]func() *world{
		"serving":   func() *world { return serving(t, addrA) },
		"renewal":   func() *world { return renewal(t) },
		"bootstrap": func() *world { return bootstrap(t) },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, []namedCase{
				{"no", w(), access(know(false)), decision.Wait, "access-review"},
				{"not known", w(), access(policy.DontKnow[bool]("test", "timeout")), decision.Wait, "access-review"},
				{"not asked", w(), access(policy.Fact[bool]{}), decision.Wait, "access-review"},
				{"absent", w(), access(policy.None[bool]("test", now)), decision.Wait, "access-review"},
			})
			approved := w()
			approved.approvedAlready()
			access(policy.Fact[bool]{})(approved)
			approved.must(t, decision.Approve, "")
		})
	}
}
