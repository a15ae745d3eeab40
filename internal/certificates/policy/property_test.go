// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/platform/decision"
)

// TestNothingReachableApprovesAnotherMachinesName draws requests and facts at random from small sets, so that near
// misses are common, and checks every approval against what may be approved at all, written down a second time and
// without the rules.
func TestNothingReachableApprovesAnotherMachinesName(t *testing.T) {
	const (
		rounds = 15_000
		enough = 6 // approvals of a kind mean something; rare kinds take more rounds in some draws
	)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	g := generator{Rand: r, requests: map[string][]byte{}, key: pkitest.Key(t), signers: allSigners(t)}
	approved := map[string]int{}
	few := func() string {
		for _, kind := range []string{
			"kubernetes.io/kube-apiserver-client-kubelet by node", "kubernetes.io/kube-apiserver-client-kubelet by token",
			"kubernetes.io/kubelet-serving by node", "kubernetes.io/kube-apiserver-client by person",
			"kubernetes.io/legacy-unknown by person", appServing + " by person", appClient + " by person",
		} {
			if approved[kind] < enough {
				return kind
			}
		}
		return ""
	}
	for n := 0; n < rounds || few() != "" && n < 10*rounds; n++ {
		w := g.world(t)
		d := w.decide()
		if d.Verdict != decision.Approve {
			continue
		}
		approved[w.object.Spec.SignerName+" by "+w.asker()]++
		if why := w.mustNotBeApproved(t); why != "" {
			t.Fatalf("seed %d: approved although %s\n%+v\n%+v\n%+v\n%s", seed, why, w.object.Spec, w.policy.Bootstrap, w.facts, d)
		}
	}
	t.Log(approved)
	if kind := few(); kind != "" {
		t.Errorf("too few approvals of %s to mean anything: %v", kind, approved)
	}
}

// Facts are not known forever: a machine may be another by now.
func TestOldFactsNeverApprove(t *testing.T) {
	for name, fresh := range map[string]func() *world{
		"serving": func() *world { return serving(t, nodeA, addrA) }, "renewal": func() *world { return renewal(t) },
		"bootstrap": func() *world { return bootstrap(t) },
		"service":   func() *world { return person(t, appServing, user("a"), "a.default.svc") },
		"vip":       func() *world { return person(t, "kubernetes.io/kube-apiserver-client", vip()) },
	} {
		t.Run(name, func(t *testing.T) {
			fresh().must(t, decision.Approve, "")
			old := fresh()
			old.policy.MaxFactAge = time.Second
			w := fresh()
			later := now.Add(3 * time.Minute)
			if d := w.decideAt(later); d.Verdict != decision.Wait {
				t.Errorf("facts of three minutes ago: %s", d)
			}
			if d := old.decideAt(now.Add(2 * time.Second)); d.Verdict != decision.Wait {
				t.Errorf("facts of two seconds ago, of which one may be old: %s", d)
			}
		})
	}
}
