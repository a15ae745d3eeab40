// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

// The informer may show that a request is finished before the answer to what we wrote is there.
func TestWhatIsShownNeedNotBeRemembered(t *testing.T) {
	i := item{"a", "r", "s", ""}
	l := newLedger()
	l.observe(i, "1", time.Now())
	l.markFinished(i, "1")
	if !l.isFinished("1") {
		t.Error("forgotten before it was shown")
	}
	l.forgetFinished(i, "1")
	l.observe(i, "1", time.Now())
	l.markFinished(i, "1")
	if l.isFinished("1") || len(l.finished) > 0 {
		t.Error("remembered for ever")
	}
}

func TestANameThatIsUsedAgainBeginsAnew(t *testing.T) {
	i := item{"a", "r", "s", ""}
	l := newLedger()
	l.observe(i, "1", time.Now())
	l.dependsOn(i, policy.Question{Node: "n"})
	l.markFinished(i, "1")
	l.isNewMessage(i, "something")
	l.observe(i, "2", time.Now())
	if l.isFinished("1") || l.isFinished("2") || !l.isNewMessage(i, "something") || len(l.interest) > 0 {
		t.Error("what is known of the old one is still there")
	}
	l.remove(i, "1") // its deletion is told late
	if l.entries[i] == nil {
		t.Error("the new one was forgotten with the old")
	}
}

func TestWhomAChangeConcerns(t *testing.T) {
	l := newLedger()
	a, b := item{"a", "", "", ""}, item{"b", "", "", ""}
	for i, q := range map[item]policy.Question{a: {Machine: "m", Node: "n", Names: []string{"x", "10.0.0.1"}}, b: {Node: "o"}} {
		l.observe(i, "", time.Now())
		l.dependsOn(i, q)
	}
	for _, tc := range []struct {
		change facts.Change
		a, b   bool
	}{
		{facts.Change{}, false, false},
		{facts.Change{All: true}, true, true},
		{facts.Change{Machines: []string{"m"}}, true, false},
		{facts.Change{Nodes: []string{"o", "p"}}, false, true},
		{facts.Change{Names: []string{"10.0.0.1"}}, true, false},
		{facts.Change{Names: []string{"m", "n", "o"}, Machines: []string{"x"}}, false, false},
	} {
		l.dependsOn(a, policy.Question{Machine: "m", Node: "n", Names: []string{"x", "10.0.0.1"}})
		l.dependsOn(b, policy.Question{Node: "o"})
		found := l.affectedBy(tc.change)
		if found[a] != tc.a || found[b] != tc.b || l.factsChanged(a) != tc.a || l.factsChanged(b) != tc.b {
			t.Errorf("%+v: %v", tc.change, found)
		}
	}
}

func TestAKeyIsOneNodesUntilAllHaveGivenItBack(t *testing.T) {
	c := newClaims()
	key := pki.Fingerprint{1}
	waiting := item{"b", "", "", ""}
	first := c.take(key, "n", item{})
	if again := c.take(key, "n", item{}); !first || !again || c.take(key, "o", waiting) || !c.take(pki.Fingerprint{2}, "o", item{}) {
		t.Fatal("claims are wrong")
	}
	if got := c.release(key); len(got) > 0 || c.take(key, "o", waiting) {
		t.Error("it was given away while somebody had it")
	}
	if got := c.release(key); len(got) != 2 || got[0] != waiting || !c.take(key, "o", item{}) {
		t.Errorf("then %v", got)
	}
	if got := c.release(pki.Fingerprint{3}); got != nil {
		t.Errorf("nobody had it: %v", got)
	}
}
