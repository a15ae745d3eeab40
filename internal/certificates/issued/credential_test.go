// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

// of is a client certificate with a fingerprint, which n has.
func of(n int, node, machine, requester string) Entry {
	e := entry(n, node, machine)
	e.Requester, e.Certificate = requester, certificate(n)
	return e
}

func certificate(n int) pki.Fingerprint { return key(1000 + n) }

func credentialIs(t *testing.T, what string, f policy.Fact[policy.Credential], machine string, replaced bool) {
	t.Helper()
	if f.State != policy.Known || string(f.Value.Machine) != machine || f.Value.Replaced != replaced {
		t.Errorf("%s: %+v, want machine %q, replaced %t", what, f, machine, replaced)
	}
}

func TestCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		fresh, err := New(config(s))
		if err != nil {
			t.Fatal(err)
		}
		if f := fresh.Credential("a", certificate(1)); f.State != policy.Unknown || !f.Soon {
			t.Errorf("before anything was read: %+v", f)
		}
		r := start(t, s)
		credentialIs(t, "a node that nobody knows", r.Credential("a", certificate(1)), "", false)
		r.Add(of(1, "a", "test|i-1", "system:bootstrap:abcdef"))
		elapse(time.Hour)
		r.Add(of(2, "a", "test|i-1", "system:node:a"))
		r.Add(of(3, "b", "other|i-9", "system:node:b"))
		check := func(r *running, replaced bool) {
			t.Helper()
			credentialIs(t, "the first", r.Credential("a", certificate(1)), "test|i-1", replaced)
			credentialIs(t, "the second", r.Credential("a", certificate(2)), "test|i-1", replaced)
			credentialIs(t, "another node's", r.Credential("a", certificate(3)), "", replaced)
			credentialIs(t, "one of which only the key is known", r.Credential("a", key(2)), "", replaced)
			credentialIs(t, "another node", r.Credential("b", certificate(3)), "other|i-9", false)
		}
		check(r, false)
		elapse(10 * time.Second)
		check(start(t, s), false)
		r.Add(of(4, "a", "test|i-2", "system:bootstrap:fedcba"))
		r.Add(of(5, "b", "test|i-10", "system:node:b")) // the source changed, and the machine perhaps not
		check(r, true)
		elapse(10 * time.Second)
		again := start(t, s)
		check(again, true)
		credentialIs(t, "the new machine's", again.Credential("a", certificate(4)), "test|i-2", true)
		elapse(169 * time.Hour) // they have expired
		credentialIs(t, "that it was replaced stays known", start(t, s).Credential("a", certificate(99)), "", true)
		elapse(keepExpired + 2*time.Hour)
		credentialIs(t, "that it was replaced stays known with the keys alone", start(t, s).Credential("a", certificate(99)), "", true)
	})
}

// An entry that may have been lost is not taken for never issued.
func TestCredentialsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(of(1, "a", "test|i-1", "system:bootstrap:abcdef"))
		elapse(time.Second)
		r.Add(of(5, "a", "test|i-1", "system:node:a"))
		elapse(10 * time.Second)
		r.stop()
		s.edit(nameOf(1), func(cm *corev1.ConfigMap) { cm.Data[certificatesKey] += "nonsense\n" })
		r = start(t, s)
		credentialIs(t, "what can be read", r.Credential("a", certificate(1)), "test|i-1", false)
		if f := r.Credential("a", certificate(2)); f.State != policy.Unknown {
			t.Errorf("another certificate: %+v", f)
		}
		if f := r.TokenSpent("a", "system:bootstrap:fedcba", key(2)); f.State != policy.Unknown {
			t.Errorf("another token: %+v", f)
		}
		if f := r.TokenSpent("a", "system:bootstrap:abcdef", key(2)); f.State != policy.Known || !f.Value {
			t.Errorf("the token: %+v", f)
		}
	})
}

func TestSpentTokens(t *testing.T) {
	const token, another = "system:bootstrap:abcdef", "system:bootstrap:fedcba"
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		spent := func(what string, r *running, node, token string, k int, want bool) {
			t.Helper()
			if f := r.TokenSpent(node, token, key(k)); f.State != policy.Known || f.Value != want {
				t.Errorf("%s: %+v, want %t", what, f, want)
			}
		}
		asks := func(n int, node string) Entry {
			e := entry(n, node, "i-1")
			e.Requester, e.Signer = "system:node:"+node, pki.SignerKubeletServing
			return e
		}
		r := start(t, s)
		spent("a new node", r, "a", token, 1, false)
		r.Add(of(1, "a", "i-1", token))
		spent("another key, of a kubelet that may not have got the first", r, "a", token, 2, false)
		r.Add(asks(100, "a"))
		for _, r := range []*running{r, start(t, s)} {
			spent("the same key", r, "a", token, 1, false)
			spent("another key", r, "a", token, 2, true)
			spent("another token", r, "a", another, 2, false)
			spent("another node", r, "b", token, 2, false)
			elapse(10 * time.Second)
		}
		// It leaves, and joins again by another token.
		r.Add(of(3, "a", "i-1", another))
		for _, r := range []*running{r, start(t, s)} {
			spent("the new token, for a kubelet that may not have got its answer", r, "a", another, 4, false)
			elapse(10 * time.Second)
		}
		r.Add(asks(101, "a"))
		for _, r := range []*running{r, start(t, s)} {
			spent("the new token", r, "a", another, 4, true)
			spent("the old token", r, "a", token, 4, true)
			elapse(10 * time.Second)
		}
		// The token goes on, and so does the node, by certificates of its own.
		for n := range 4 {
			elapse(160 * time.Hour)
			r.Add(of(10+n, "a", "i-1", "system:node:a"))
		}
		elapse(10 * time.Second)
		for _, r := range []*running{r, start(t, s)} {
			if r.TokenSpent("a", token, key(2)).Value != true {
				t.Error("after its certificate became a key, the token is forgotten")
			}
			spent("a third token", r, "a", "system:bootstrap:222222", 2, false)
		}
		elapse(200 * time.Hour)
		spent("a node whose certificates have expired", r, "a", token, 2, false)
	})
}

// A token's certificate is remembered in between, too, when it has expired and is not a key yet.
func TestSpentTokensUntilTheNextCompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		rarely := func(c *Config) { c.CompactEvery = 10_000 * time.Hour }
		r := start(t, s, rarely)
		r.Add(of(1, "a", "i-1", "system:bootstrap:abcdef"))
		for n := range 2 {
			elapse(160 * time.Hour)
			r.Add(of(10+n, "a", "i-1", "system:node:a"))
		}
		elapse(10 * time.Second)
		for _, r := range []*running{r, start(t, s, rarely)} {
			if f := r.TokenSpent("a", "system:bootstrap:abcdef", key(2)); !f.Value {
				t.Errorf("%+v", f)
			}
		}
	})
}

// A node that renews often does not make its token new again: certificates of an hour are many before the first becomes
// a key.
func TestSpentTokensOfShortCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(of(1, "a", "i-1", "system:bootstrap:abcdef"))
		for n := range 3 * maxHeld {
			elapse(10 * time.Minute)
			r.Add(of(10+n, "a", "i-1", "system:node:a"))
			if f := r.TokenSpent("a", "system:bootstrap:abcdef", key(2)); !f.Value {
				t.Fatalf("after %d renewals: %+v", n+1, f)
			}
		}
		elapse(10 * time.Second)
		if f := start(t, s).TokenSpent("a", "system:bootstrap:abcdef", key(2)); !f.Value {
			t.Errorf("after a restart: %+v", f)
		}
		if n := len(r.last["a"].held); n != maxHeld {
			t.Errorf("%d are remembered", n)
		}
	})
}

// A requester of many with tokens pushes out the oldest of those.
func TestCredentialsOfTokensAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newServer(t))
		for n := range 2 * maxHeld {
			elapse(time.Second)
			r.Add(of(n+1, "a", "i-1", "system:bootstrap:abcdef"))
		}
		if n := len(r.last["a"].held); n != maxHeld {
			t.Errorf("%d are remembered", n)
		}
		credentialIs(t, "the newest", r.Credential("a", certificate(2*maxHeld)), "i-1", false)
	})
}

// A node that joined by many tokens asks with what it got by itself, and that is on record.
func TestRenewalsOfANodeOfManyTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newServer(t))
		for n := range 2 * maxHeld {
			elapse(time.Second)
			r.Add(of(n+1, "a", "i-1", fmt.Sprintf("system:bootstrap:%06d", n)))
		}
		for n := range 3 {
			elapse(time.Second)
			r.Add(of(100+n, "a", "i-1", "system:node:a"))
			credentialIs(t, "a renewal", r.Credential("a", certificate(100+n)), "i-1", false)
		}
		if n := len(r.last["a"].held); n != maxHeld {
			t.Errorf("%d are remembered", n)
		}
	})
}

// A requester of many pushes out its own, and no other's.
func TestCredentialsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newServer(t))
		r.Add(of(0, "b", "i-2", ""))
		for n := range 50 {
			elapse(time.Second)
			r.Add(of(n+1, "a", "i-1", ""))
		}
		if n := len(r.last["a"].held); n != maxHeld {
			t.Errorf("%d are remembered", n)
		}
		credentialIs(t, "the newest", r.Credential("a", certificate(50)), "i-1", false)
		credentialIs(t, "the oldest", r.Credential("a", certificate(1)), "i-1", false)
		credentialIs(t, "another node's", r.Credential("b", certificate(0)), "i-2", false)
	})
}

// A kubelet that cannot keep what it gets asks again and again with the certificate that it has.
func TestAKubeletThatCannotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r := start(t, s)
		r.Add(of(1, "a", "i-1", "system:bootstrap:abcdef"))
		for n := range 3 * maxEntries {
			elapse(30 * time.Minute)
			r.Add(of(10+n, "a", "i-1", "system:node:a"))
		}
		elapse(2 * time.Hour)
		for _, r := range []*running{r, start(t, s)} {
			for _, n := range []int{1, 10, 10 + maxEntries, 9 + 3*maxEntries} {
				credentialIs(t, fmt.Sprint("certificate ", n), r.Credential("a", certificate(n)), "i-1", false)
			}
		}
	})
}
