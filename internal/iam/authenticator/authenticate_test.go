// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

func TestWhoMadeATokenIsRememberedForAWhile(t *testing.T) {
	for _, tc := range []struct {
		name   string
		life   time.Duration // of the verifier's answer
		still  time.Duration // it is remembered
		not    time.Duration // it is not
		change func(*Config)
	}{
		{"until the time of the configuration", 0, 59 * time.Second, time.Minute, nil},
		{"until the token ends", 0, 15*time.Minute - time.Second, 15 * time.Minute, func(c *Config) { c.Remember = time.Hour }},
		{"until the session ends", 30 * time.Second, 29 * time.Second, 30 * time.Second, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, tc.change)
			w.verifier.life = tc.life
			token := w.token(t, "alice", 1)
			for range 3 {
				if got := w.user(t, token); got != "alice" {
					t.Fatal(got)
				}
			}
			w.advance(tc.still)
			w.user(t, token)
			if calls := w.verifier.calls.Load(); calls != 1 {
				t.Errorf("verified %d times after %s", calls, tc.still)
			}
			w.advance(tc.not - tc.still)
			got := w.user(t, token)
			if calls := w.verifier.calls.Load(); calls != 2 && !strings.HasPrefix(got, "403") {
				t.Errorf("verified %d times after %s: %s", calls, tc.not, got)
			}
		})
	}
}

func TestANoOfSTSIsRememberedForAMomentAndNothingElseIs(t *testing.T) {
	for _, tc := range []struct {
		name  string
		err   error
		want  string
		calls int64 // of three requests
	}{
		{"a no", &tokenverify.Refused{Rule: "sts", Code: "AccessDenied"}, "403 sts/AccessDenied", 1},
		{"throttling", fmt.Errorf("%w: by STS", tokenverify.ErrThrottled), "429 throttled", 3},
		{"an outage", &tokenverify.Unavailable{Asked: "sts", Err: errors.New("down")}, "503 unavailable", 3},
		{"what nobody thought of", errors.New("surprise"), "503 unavailable", 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.verifier.err = tc.err
			token := w.token(t, "alice", 1)
			for range 3 {
				if got := w.user(t, token); got != tc.want {
					t.Errorf("%s, want %s", got, tc.want)
				}
			}
			if calls := w.verifier.calls.Load(); calls != tc.calls {
				t.Errorf("verified %d times, want %d", calls, tc.calls)
			}
			w.verifier.set(func() { w.verifier.err = nil })
			w.advance(10 * time.Second)
			if got := w.user(t, token); got != "alice" {
				t.Errorf("later: %s", got)
			}
		})
	}
}

func TestMappingsCountAsTheyAreAtThatMoment(t *testing.T) {
	w := newWorld(t, nil)
	token := w.token(t, "alice", 1)
	for _, name := range []string{"alice", "bob", "alice"} {
		w.mapTo(t, name)
		if got := w.user(t, token); got != name {
			t.Errorf("%s, want %s", got, name)
		}
	}
	w.mapTo(t, "")
	if got := w.user(t, token); !strings.HasPrefix(got, "403") {
		t.Errorf("who is not mapped any more is %s", got)
	}
	w.table.Store(nil)
	if got := w.user(t, token); got != "503 unavailable" {
		t.Errorf("while mappings are not known: %s", got)
	}
	if calls := w.verifier.calls.Load(); calls != 1 {
		t.Errorf("verified %d times", calls)
	}
}

func TestWhatAChangeIsAboutIsForgotten(t *testing.T) {
	w := newWorld(t, nil)
	alice, bob := w.token(t, "alice", 1), w.token(t, "bob", 2)
	no := &tokenverify.Refused{Rule: "access-key", Code: "InvalidClientTokenId"}
	w.verifier.more = func(id *tokenverify.Identity) {
		id.UserID = "AIDA" + id.AccessKeyID[4:]
		id.Instance = &identity.Instance{ID: "i-" + id.AccessKeyID[19:], PrivateDNSName: "node.internal"}
	}
	for name, c := range map[string]keyservice.Change{
		"by key": {AccessKeyIDs: []string{ststest.User("alice", 1).ID}}, "by user": {UserIDs: []string{ststest.User("alice", 1).UserID}},
		"by instance": {Instances: []string{"i-1"}}, "all": {All: true},
	} {
		w.verifier.set(func() { w.verifier.err = nil })
		w.Forget(keyservice.Change{All: true})
		w.user(t, alice)
		w.user(t, bob)
		w.verifier.set(func() { w.verifier.err = no })
		w.Forget(c)
		if got := w.user(t, alice); got != "403 access-key/InvalidClientTokenId" {
			t.Errorf("%s: alice is still %s", name, got)
		}
		if got := w.user(t, bob); (got == "alice") == c.All {
			t.Errorf("%s: bob is %s", name, got)
		}
	}
	w.verifier.set(func() { w.verifier.err = nil })
	w.Forget(keyservice.Change{AccessKeyIDs: []string{"AKIASOMEBODYELSE"}})
	if got := w.user(t, alice); got != "alice" {
		t.Errorf("a no is remembered across a change: %s", got)
	}
}

func TestWhileNobodyTellsOfChangesNothingIsRemembered(t *testing.T) {
	var dead atomic.Bool
	w := newWorld(t, func(c *Config) { c.Live = func() bool { return !dead.Load() } })
	token := w.token(t, "alice", 1)
	w.user(t, token)
	dead.Store(true)
	w.verifier.err = &tokenverify.Unavailable{Asked: "keys", Err: errors.New("down")}
	if got := w.user(t, token); got != "503 unavailable" {
		t.Errorf("while nobody tells of changes it is %s", got)
	}
	dead.Store(false)
	if got := w.user(t, token); got != "alice" {
		t.Errorf("afterwards it is %s", got)
	}
}

// A request after a change must not be answered by what was found out before it, nor must that be remembered.
func TestAChangeCountsForWhatIsOnItsWay(t *testing.T) {
	w := newWorld(t, nil)
	token := w.token(t, "alice", 1)
	hold := make(chan struct{})
	w.verifier.hold = hold
	first := make(chan string, 1)
	go func() { first <- w.user(t, token) }()
	for w.verifier.calls.Load() == 0 {
		runtime.Gosched()
	}
	w.verifier.set(func() { w.verifier.hold, w.verifier.err = nil, &tokenverify.Refused{Rule: "access-key"} })
	w.Forget(keyservice.Change{AccessKeyIDs: []string{ststest.User("alice", 1).ID}})
	if got := w.user(t, token); got != "403 access-key" {
		t.Errorf("after the change: %s", got)
	}
	close(hold)
	<-first
	if got := w.user(t, token); got != "403 access-key" {
		t.Errorf("what was found out before the change is remembered: %s", got)
	}
}

func TestATokenIsVerifiedOnceForAllWhoHaveIt(t *testing.T) {
	w := newWorld(t, nil)
	token := w.token(t, "alice", 1)
	hold := make(chan struct{})
	w.verifier.hold = hold
	var group sync.WaitGroup
	var waiting atomic.Int64
	for range 100 {
		group.Go(func() {
			waiting.Add(1)
			if got := w.user(t, token); got != "alice" {
				t.Error(got)
			}
		})
	}
	for waiting.Load() < 100 {
		runtime.Gosched()
	}
	close(hold)
	group.Wait()
	if calls := w.verifier.calls.Load(); calls != 1 {
		t.Errorf("verified %d times", calls)
	}
}

func TestWhoIsNotLetInIsRememberedForWhenHeIs(t *testing.T) {
	w := newWorld(t, nil)
	w.mapTo(t, "")
	token := w.token(t, "alice", 1)
	w.user(t, token)
	w.mapTo(t, "alice")
	if got := w.user(t, token); got != "alice" || w.verifier.calls.Load() != 1 {
		t.Errorf("%s after %d calls", got, w.verifier.calls.Load())
	}
}

func principal(t testing.TB, k ststest.Key) identity.Principal {
	t.Helper()
	p := identity.Principal{Account: k.Account, AccessKeyID: k.ID}
	var err error
	if p.ARN, err = arn.Parse(k.ARN); err != nil {
		t.Fatal(err)
	}
	if p.CanonicalARN, err = p.ARN.Canonical(); err != nil {
		t.Fatal(err)
	}
	p.UserID, p.SessionName, _ = strings.Cut(k.UserID, ":")
	return p
}

func BenchmarkWarm(b *testing.B) {
	w := newWorld(b, nil)
	tokens := make([]string, 256)
	for n := range tokens {
		tokens[n] = w.token(b, "alice", n)
		w.user(b, tokens[n])
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for n := 0; pb.Next(); n++ {
			if d := w.Authenticate(b.Context(), tokens[n%len(tokens)]); d.Status != 200 || !d.Cached {
				b.Error(d)
				return
			}
		}
	})
}
