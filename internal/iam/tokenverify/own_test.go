// SPDX-License-Identifier: Apache-2.0

package tokenverify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/sigv4"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

// keys is an identity service in memory.
type keys struct {
	mu     sync.Mutex
	known  map[string]ststest.Key
	calls  int
	fail   error
	hold   chan struct{} // if not nil, answers wait until it is closed
	until  time.Time
	node   *identity.Instance
	dead   atomic.Bool
	asked  chan struct{}
	answer func(*keyservice.Resolved)
}

func newKeys(all ...ststest.Key) *keys {
	k := &keys{known: map[string]ststest.Key{}, until: time.Now().Add(time.Hour), asked: make(chan struct{}, 1000)}
	for _, key := range all {
		k.known[key.ID] = key
	}
	return k
}

func (k *keys) Resolve(_ context.Context, id, session string, scope sigv4.Scope) (keyservice.Resolved, error) {
	k.mu.Lock()
	k.calls++
	hold := k.hold
	key, ok := k.known[id]
	err := k.fail
	k.mu.Unlock()
	k.asked <- struct{}{}
	if hold != nil {
		<-hold
	}
	switch {
	case err != nil:
		return keyservice.Resolved{}, err
	case !ok || key.Session != session:
		return keyservice.Resolved{}, fmt.Errorf("resolving: %w", &keyservice.Unknown{Code: "InvalidClientTokenId", Reason: "there is no such access key"})
	}
	userID, name, _ := strings.Cut(key.UserID, ":")
	r := keyservice.Resolved{
		Key: sigv4.Derive(key.Secret, scope), ARN: key.ARN, Account: key.Account, UserID: userID, SessionName: name, Instance: k.node, ValidUntil: k.until,
	}
	if k.answer != nil {
		k.answer(&r)
	}
	return r, nil
}

func (k *keys) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

func (k *keys) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.calls
}

func own(t testing.TB, k *keys, change func(*tokenverify.OwnConfig)) *tokenverify.Own {
	t.Helper()
	c := tokenverify.OwnConfig{ClusterID: cluster, Keys: k, Live: func() bool { return !k.dead.Load() }}
	if change != nil {
		change(&c)
	}
	o, err := tokenverify.NewOwn(c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestSignaturesAreVerifiedHere(t *testing.T) {
	user, node := ststest.User("alice", 1), ststest.Session("nodes", "i-0123456789abcdef0", 2)
	k := newKeys(user, node)
	k.node = &identity.Instance{ID: "i-0123456789abcdef0", PrivateDNSName: "ip-10-0-0-1.muster.internal"}
	o := own(t, k, nil)
	parsed := token(t, node)
	got, err := o.Verify(t.Context(), parsed)
	if err != nil || got.ARN.String() != node.ARN || got.SessionName != "i-0123456789abcdef0" || got.UserID != "AROA0000000000000002" ||
		got.AccessKeyID != node.ID || got.Instance == nil || got.Instance.PrivateDNSName != "ip-10-0-0-1.muster.internal" || !got.ValidUntil.Equal(parsed.Expires) {
		t.Errorf("%+v: %v", got, err)
	}
	for range 3 {
		if _, err := o.Verify(t.Context(), token(t, node)); err != nil {
			t.Error(err)
		}
	}
	if k.count() != 1 {
		t.Errorf("asked %d times for one derived key", k.count())
	}
	k.set(func() { k.until = time.Now().Add(time.Minute) })
	if got, err := o.Verify(t.Context(), token(t, user)); err != nil || !got.ValidUntil.Equal(k.until) {
		t.Errorf("valid until %s, want %s: %v", got.ValidUntil, k.until, err)
	}
}

func TestWhatOwnRefuses(t *testing.T) {
	user, session := ststest.User("alice", 1), ststest.Session("deploy", "ci", 2)
	now := time.Now()
	for _, tc := range []struct {
		name, token, says string
		at                time.Time
	}{
		{"a token for another cluster", ststest.Token(t, user, "other", now), "SignatureDoesNotMatch", now},
		{"a token by another secret", ststest.Token(t, ststest.Key{ID: user.ID, Secret: "guessed"}, cluster, now), "SignatureDoesNotMatch", now},
		{"a key that there is not", ststest.Token(t, ststest.User("eve", 9), cluster, now), "InvalidClientTokenId", now},
		{"a session without its token", ststest.Token(t, ststest.Key{ID: session.ID, Secret: session.Secret}, cluster, now), "InvalidClientTokenId", now},
		{"a token that ended since it was read", ststest.Token(t, user, cluster, now.Add(-15*time.Minute+time.Second)), "RequestExpired", now.Add(2 * time.Second)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := own(t, newKeys(user, session), func(c *tokenverify.OwnConfig) { c.Now = func() time.Time { return tc.at } })
			parsed := ststest.Parsed(t, tc.token, cluster, now)
			_, err := o.Verify(t.Context(), parsed)
			if kind(err) != "refused" || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v; want refused with %s", err, tc.says)
			}
			for _, secret := range ststest.Secrets(t, parsed) {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error holds a secret: %v", err)
				}
			}
		})
	}
}

func TestWhatIsToldOfKeysIsForgottenInTime(t *testing.T) {
	user := ststest.User("alice", 1)
	k := newKeys(user)
	o := own(t, k, nil)
	verify := func() string { _, err := o.Verify(t.Context(), token(t, user)); return kind(err) }
	if verify() != "ok" {
		t.Fatal("a good key is refused")
	}
	k.set(func() { delete(k.known, user.ID) })
	for name, c := range map[string]keyservice.Change{
		"its ID": {AccessKeyIDs: []string{user.ID}}, "its user": {UserIDs: []string{user.UserID}}, "everything": {All: true},
	} {
		k.set(func() { k.known[user.ID] = user })
		o.Forget(keyservice.Change{All: true})
		if verify() != "ok" {
			t.Fatal("a good key is refused")
		}
		k.set(func() { delete(k.known, user.ID) })
		o.Forget(keyservice.Change{AccessKeyIDs: []string{"AKIAOTHER"}, UserIDs: []string{"AIDAOTHER"}, Instances: []string{"i-1"}})
		if verify() != "ok" {
			t.Errorf("a change of others forgot it")
		}
		o.Forget(c)
		if got := verify(); got != "refused" {
			t.Errorf("after a change of %s: %s", name, got)
		}
	}
	k.set(func() { k.known[user.ID] = user })
	if got := verify(); got != "refused" {
		t.Errorf("a no is not remembered: %s", got)
	}
	o.Forget(keyservice.Change{AccessKeyIDs: []string{user.ID}})
	if got := verify(); got != "ok" {
		t.Errorf("a key that was made is not found: %s", got)
	}
	k.set(func() { k.fail = errors.New("down") })
	if got := verify(); got != "ok" {
		t.Errorf("what is remembered is not used: %s", got)
	}
	k.dead.Store(true)
	if got := verify(); got != "unavailable" {
		t.Errorf("while nobody tells of changes: %s", got)
	}
	k.dead.Store(false)
	if got := verify(); got != "ok" {
		t.Errorf("when changes are told again: %s", got)
	}
}

// A change that comes while a question is on its way must count for its answer.
func TestAnAnswerFromBeforeAChangeIsNotRemembered(t *testing.T) {
	user := ststest.User("alice", 1)
	parsed := token(t, user)
	synctest.Test(t, func(t *testing.T) {
		k := newKeys(user)
		k.until = time.Now().AddDate(100, 0, 0)
		o := own(t, k, func(c *tokenverify.OwnConfig) { c.Now = func() time.Time { return parsed.Signed.SignedAt } })
		hold := make(chan struct{})
		k.hold = hold
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { _, err := o.Verify(t.Context(), parsed); first <- err }()
		synctest.Wait()
		k.set(func() { delete(k.known, user.ID); k.hold = nil }) // it is revoked
		o.Forget(keyservice.Change{AccessKeyIDs: []string{user.ID}})
		go func() { _, err := o.Verify(t.Context(), parsed); second <- err }()
		synctest.Wait()
		if got := kind(<-second); got != "refused" {
			t.Errorf("who asked after the change got %s", got)
		}
		close(hold)
		if got := kind(<-first); got != "ok" {
			t.Errorf("who asked before the change got %s", got)
		}
		if _, err := o.Verify(t.Context(), parsed); kind(err) != "refused" {
			t.Errorf("the answer from before the change was remembered: %v", err)
		}
	})
}

func TestOneQuestionForAll(t *testing.T) {
	user := ststest.User("alice", 1)
	parsed := token(t, user)
	synctest.Test(t, func(t *testing.T) {
		k := newKeys(user)
		k.until = time.Now().AddDate(100, 0, 0)
		hold := make(chan struct{})
		k.hold = hold
		o := own(t, k, func(c *tokenverify.OwnConfig) { c.Now = func() time.Time { return parsed.Signed.SignedAt } })
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				if _, err := o.Verify(t.Context(), parsed); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(hold)
		group.Wait()
		if k.count() != 1 {
			t.Errorf("asked %d times", k.count())
		}
	})
}

// An access key's id is in audit logs, and the region of a token may be any.
func TestWhoKnowsAKeysIDPushesOutNobodysKey(t *testing.T) {
	users := []ststest.Key{ststest.User("alice", 1), ststest.User("bob", 2)}
	k := newKeys(users...)
	o := own(t, k, func(c *tokenverify.OwnConfig) { c.Most = 8 })
	all := func() {
		t.Helper()
		for _, user := range users {
			if _, err := o.Verify(t.Context(), token(t, user)); err != nil {
				t.Error(err)
			}
		}
	}
	all()
	for n := range 100 {
		forged := token(t, ststest.Key{ID: users[0].ID, Secret: "guessed"})
		forged.Signed.Region = fmt.Sprintf("invented-%d", n)
		if _, err := o.Verify(t.Context(), forged); kind(err) != "refused" {
			t.Fatalf("a forged token: %v", err)
		}
	}
	if o.Admitted(users[0].ID) {
		t.Error("whoever asks about a key makes it a known one")
	}
	calls := k.count()
	all()
	if asked := k.count() - calls; asked != 0 {
		t.Errorf("%d of two keys were pushed out", asked)
	}
	for range 3 { // of a region that alice did not use yet
		forged := token(t, ststest.Key{ID: users[0].ID, Secret: "guessed"})
		forged.Signed.Region = "twice"
		_, _ = o.Verify(t.Context(), forged)
	}
	if asked := k.count() - calls; asked != 1 {
		t.Errorf("forged tokens of one region asked %d times", asked)
	}
	carol := ststest.User("carol", 3)
	k.set(func() { k.known[carol.ID] = carol })
	_, _ = o.Verify(t.Context(), token(t, ststest.Key{ID: carol.ID, Secret: "guessed"})) // now the key is known, and carol never used it
	k.set(func() { delete(k.known, users[0].ID); delete(k.known, carol.ID) })
	o.Forget(keyservice.Change{AccessKeyIDs: []string{users[0].ID, carol.ID}})
	for _, revoked := range []ststest.Key{users[0], carol} {
		if _, err := o.Verify(t.Context(), token(t, revoked)); kind(err) != "refused" {
			t.Errorf("a key that was revoked: %v", err)
		}
	}
}

func BenchmarkOwnCold(b *testing.B) {
	user := ststest.User("alice", 1)
	k := newKeys(user)
	o := own(b, k, nil)
	parsed := token(b, user)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := o.Verify(b.Context(), parsed); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
