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
	"time"

	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

// keys is an identity service in memory, asked by the authenticator of one cluster.
type keys struct {
	mu      sync.Mutex
	known   map[string]ststest.Key
	calls   int
	fail    error
	hold    chan struct{} // if not nil, answers wait until it is closed
	until   time.Time
	node    *identity.Instance
	machine *identity.Machine
	dead    atomic.Bool
	asked   chan struct{}
}

func newKeys(all ...ststest.Key) *keys {
	k := &keys{known: map[string]ststest.Key{}, until: time.Now().Add(time.Hour), asked: make(chan struct{}, 1000)}
	for _, key := range all {
		k.known[key.ID] = key
	}
	return k
}

func (k *keys) Verify(_ context.Context, q keyservice.Question) (keyservice.Maker, error) {
	t, read := ststoken.Read(q.Host, q.Query, cluster, time.Now())
	k.mu.Lock()
	k.calls++
	hold := k.hold
	key, ok := k.known[t.Signed.AccessKeyID]
	err := k.fail
	k.mu.Unlock()
	k.asked <- struct{}{}
	if hold != nil {
		<-hold
	}
	switch {
	case err != nil:
		return keyservice.Maker{}, err
	case q.Cluster != cluster:
		return keyservice.Maker{}, fmt.Errorf("asked about cluster %q", q.Cluster)
	case read != nil:
		return keyservice.Maker{}, fmt.Errorf("asked about what is no token: %w", read)
	case !ok || key.Session != t.Signed.SessionToken:
		return keyservice.Maker{}, fmt.Errorf("verifying: %w", &keyservice.Unknown{Code: "InvalidClientTokenId", Reason: "there is no such access key"})
	case t.Verify(sigv4.Derive(key.Secret, t.Signed.Scope), cluster) != nil:
		return keyservice.Maker{}, fmt.Errorf("verifying: %w", &keyservice.Unknown{Rule: "signature", Code: "SignatureDoesNotMatch", Reason: "a signature that it did not make"})
	}
	userID, name, _ := strings.Cut(key.UserID, ":")
	return keyservice.Maker{ARN: key.ARN, Account: key.Account, UserID: userID, SessionName: name, Instance: k.node, Machine: k.machine, ValidUntil: k.until}, nil
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
	c := tokenverify.OwnConfig{ClusterID: cluster, Account: k, Live: func() bool { return !k.dead.Load() }}
	if change != nil {
		change(&c)
	}
	o, err := tokenverify.NewOwn(c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTheAccountIsAskedAboutEachToken(t *testing.T) {
	user, node := ststest.User("alice", 1), ststest.Session("nodes", "i-0123456789abcdef0", 2)
	k := newKeys(user, node)
	k.node = &identity.Instance{ID: "i-0123456789abcdef0", PrivateDNSName: "ip-10-0-0-1.ec2.internal"}
	k.machine = &identity.Machine{ID: "i-0123456789abcdef0", Cluster: "blue"}
	o := own(t, k, nil)
	parsed := token(t, node)
	got, err := o.Verify(t.Context(), parsed)
	if err != nil || got.ARN.String() != node.ARN || got.SessionName != "i-0123456789abcdef0" || got.UserID != "AROA0000000000000002" ||
		got.AccessKeyID != node.ID || got.Instance == nil || got.Machine == nil || *got.Machine != *k.machine || got.Instance.PrivateDNSName != "ip-10-0-0-1.ec2.internal" || !got.ValidUntil.Equal(parsed.Expires) || !got.OutageUntil.Equal(parsed.Expires) {
		t.Errorf("%+v: %v", got, err)
	}
	for range 3 {
		if _, err := o.Verify(t.Context(), token(t, node)); err != nil {
			t.Error(err)
		}
	}
	if k.count() != 4 {
		t.Errorf("asked %d times about four tokens", k.count())
	}
	k.set(func() { k.until = time.Now().Add(time.Minute) })
	if got, err := o.Verify(t.Context(), token(t, user)); err != nil || !got.ValidUntil.Equal(k.until) || !got.OutageUntil.Equal(k.until) {
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

// A "no" about an access key is the same for each token of it, until something changes. That somebody else signed is
// not about the key.
func TestANoAboutAnAccessKeyIsRememberedForAWhile(t *testing.T) {
	user, now := ststest.User("alice", 1), time.Now()
	k := newKeys()
	moment := now
	o := own(t, k, func(c *tokenverify.OwnConfig) { c.Now = func() time.Time { return moment } })
	verify := func(want string, asked int) {
		t.Helper()
		before := k.count()
		if _, err := o.Verify(t.Context(), token(t, user)); kind(err) != want || k.count()-before != asked {
			t.Errorf("%s, asked %d times; want %s and %d", kind(err), k.count()-before, want, asked)
		}
	}
	verify("refused", 1)
	verify("refused", 0)
	k.dead.Store(true)
	verify("refused", 1) // nobody would tell that the key was made meanwhile
	k.dead.Store(false)
	moment = now.Add(9 * time.Second)
	verify("refused", 0)
	moment = now.Add(11 * time.Second)
	verify("refused", 1)
	k.set(func() { k.known[user.ID] = user })
	verify("refused", 0)
	o.Forget(keyservice.Change{AccessKeyIDs: []string{"AKIAOTHER"}})
	verify("ok", 1)
	forged := token(t, ststest.Key{ID: user.ID, Secret: "guessed"})
	for range 2 {
		before := k.count()
		if _, err := o.Verify(t.Context(), forged); kind(err) != "refused" || k.count()-before != 1 {
			t.Errorf("a forged token: %v, asked %d times", err, k.count()-before)
		}
	}
	verify("ok", 1) // forged tokens in her name do not change her access
	k.set(func() { k.fail = errors.New("down") })
	verify("unavailable", 1)
	if o.Admitted(user.ID) {
		t.Error("whoever asks about a key makes it a known one")
	}
}

// Of two sessions with one access key, as somebody may make them up, each is asked about.
func TestANoIsAboutTheSessionToo(t *testing.T) {
	good := ststest.Session("deploy", "ci", 2)
	k := newKeys(good)
	o := own(t, k, nil)
	wrong := good
	wrong.Session = "made-up"
	if _, err := o.Verify(t.Context(), token(t, wrong)); kind(err) != "refused" {
		t.Errorf("a session that was made up: %v", err)
	}
	if _, err := o.Verify(t.Context(), token(t, good)); err != nil {
		t.Errorf("the good one after it: %v", err)
	}
}

// A "no" that was on its way when something changed is not remembered.
func TestANoFromBeforeAChangeIsNotRemembered(t *testing.T) {
	user := ststest.User("alice", 1)
	parsed := token(t, user)
	k := newKeys()
	o := own(t, k, nil)
	k.hold = make(chan struct{})
	first := make(chan error, 1)
	go func() { _, err := o.Verify(t.Context(), parsed); first <- err }()
	<-k.asked // it is being answered that there is no such key
	o.Forget(keyservice.Change{AccessKeyIDs: []string{user.ID}})
	close(k.hold)
	if err := <-first; kind(err) != "refused" {
		t.Errorf("who asked before the change: %v", err)
	}
	k.set(func() { k.hold, k.known[user.ID] = nil, user })
	if _, err := o.Verify(t.Context(), parsed); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// An account that answers what cannot be is not believed.
func TestAnAnswerThatDoesNotAgreeIsNone(t *testing.T) {
	user := ststest.User("alice", 1)
	for name, change := range map[string]func(*ststest.Key){
		"another account": func(k *ststest.Key) { k.Account = "999999999999" }, "no ARN": func(k *ststest.Key) { k.ARN = "alice" },
		"a session that the ARN does not have": func(k *ststest.Key) { k.ARN, k.UserID = "arn:aws:sts::111122223333:assumed-role/r/a", "AROA1:b" },
	} {
		wrong := user
		change(&wrong)
		if _, err := own(t, newKeys(wrong), nil).Verify(t.Context(), token(t, user)); kind(err) != "unavailable" {
			t.Errorf("%s: %v", name, err)
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
