// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"muster.dev/muster/internal/policy"
	"muster.dev/muster/internal/trace"
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
				{"no", w(), access(know(false)), trace.Wait, "access-review"},
				{"not known", w(), access(policy.DontKnow[bool]("test", "timeout")), trace.Wait, "access-review"},
				{"not asked", w(), access(policy.Fact[bool]{}), trace.Wait, "access-review"},
				{"absent", w(), access(policy.None[bool]("test", now)), trace.Wait, "access-review"},
			})
			approved := w()
			approved.approvedAlready()
			access(policy.Fact[bool]{})(approved)
			approved.must(t, trace.Approve, "")
		})
	}
}
