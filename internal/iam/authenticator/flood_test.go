// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

func TestAFloodOfBadTokensNeitherFillsMemoryNorPushesOutGoodOnes(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Most, c.MostNo = 64, 64 })
	good := make([]string, 8)
	for n := range good {
		good[n] = w.token(t, "alice", n)
		if got := w.user(t, good[n]); got != "alice" {
			t.Fatal(got)
		}
	}
	w.verifier.set(func() { w.verifier.err = &tokenverify.Refused{Rule: "sts"} })
	calls := w.verifier.calls.Load()
	template := w.token(t, "mallory", 99)
	for n := range 2000 {
		bad := template
		switch n % 4 {
		case 0:
			bad = fmt.Sprintf("k8s-aws-v1.%d", n)
		case 1:
			bad = fmt.Sprintf("%s%d", strings.Repeat("x", 5000), n)
		case 2:
			bad = ststest.Token(t, ststest.User("mallory", n), "other", w.start.Add(-time.Hour))
		case 3:
			bad = ststest.Token(t, ststest.User("mallory", n), cluster, w.start)
		}
		if got := w.user(t, bad); !strings.HasPrefix(got, "403") {
			t.Fatalf("%d: %s", n, got)
		}
	}
	if asked := w.verifier.calls.Load() - calls; asked != 500 {
		t.Errorf("%d bad tokens were verified; only the 500 of the right form should be", asked)
	}
	kept, no := w.memory.size()
	if kept != len(good) || no > 64 {
		t.Errorf("%d good and %d bad tokens are remembered", kept, no)
	}
	for _, token := range good {
		if got := w.user(t, token); got != "alice" {
			t.Errorf("a good token was pushed out: %s", got)
		}
	}
	if len(w.asking) != 0 {
		t.Errorf("%d tokens are still on their way", len(w.asking))
	}
}

// Everybody has an AWS account, and can make good tokens by the thousand.
func TestAFloodOfPeopleWhoAreNotLetInPushesOutNobody(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Most, c.MostNo = 64, 64 })
	good := w.token(t, "alice", 1)
	if got := w.user(t, good); got != "alice" {
		t.Fatal(got)
	}
	w.verifier.set(func() {
		w.verifier.more = func(id *tokenverify.Identity) {
			id.Principal = principal(t, ststest.Session("elsewhere", "mallory", 7))
			id.AccessKeyID = "ASIAMALLORY000000000"
		}
	})
	for n := range 500 {
		if got := w.user(t, w.token(t, "mallory", 100+n)); !strings.HasPrefix(got, "403") {
			t.Fatal(got)
		}
	}
	calls := w.verifier.calls.Load()
	if got := w.user(t, good); got != "alice" || w.verifier.calls.Load() != calls {
		t.Errorf("%s, and it was verified again: %t", got, w.verifier.calls.Load() != calls)
	}
	if w.verifier.Admitted("ASIAMALLORY000000000") || !w.verifier.Admitted(ststest.User("alice", 1).ID) {
		t.Error("known keys are not those of people who are let in")
	}
}
