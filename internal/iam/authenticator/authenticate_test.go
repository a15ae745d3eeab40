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

	"muster.dev/muster/internal/iam/arn"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

func TestWhoMadeATokenIsRememberedForAWhile(t *testing.T) {
	for _, tc := range []struct {
		name   string
		life   time.Duration // of what the verifier says
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

func TestWhileNobodyCanTellWhoIsKnownGoesOn(t *testing.T) {
	down := &tokenverify.Unavailable{Asked: "sts", Err: errors.New("down")}
	for _, tc := range []struct {
		name    string
		outage  time.Duration // how long an answer outlasts
		happens func(w *world)
		at      time.Duration
		want    string
	}{
		{"an outage", 5 * time.Minute, func(w *world) { w.verifier.err = down }, 90 * time.Second, "alice"},
		{"one that takes too long", 5 * time.Minute, func(w *world) { w.verifier.err = down }, 5 * time.Minute, "503 unavailable"},
		{"one that outlasts the token", time.Hour, func(w *world) { w.verifier.err = down }, 15 * time.Minute, "403 expired"},
		{"one where nobody may go on", 0, func(w *world) { w.verifier.err = down }, 90 * time.Second, "503 unavailable"},
		{"throttling", 5 * time.Minute, func(w *world) { w.verifier.err = fmt.Errorf("%w: by STS", tokenverify.ErrThrottled) }, 90 * time.Second, "429 throttled"},
		{"a no", 5 * time.Minute, func(w *world) { w.verifier.err = &tokenverify.Refused{Rule: "sts"} }, 90 * time.Second, "403 sts"},
		{"a mapping that went", 5 * time.Minute, func(w *world) { w.verifier.err = down; w.mapTo(t, "") }, 90 * time.Second, "403 no-entry"},
		{"a change", 5 * time.Minute, func(w *world) {
			w.verifier.err = down
			w.Forget(keyservice.Change{UserIDs: []string{"AIDA0000000000000001"}})
		}, 90 * time.Second, "503 unavailable"},
		{"an outage after a no", 5 * time.Minute, func(w *world) {
			w.verifier.err = &tokenverify.Refused{Rule: "sts"}
			w.advance(time.Minute)
			w.user(t, w.token(t, "alice", 1))
			w.verifier.err = down
		}, 30 * time.Second, "503 unavailable"},
		{"an outage after a no that came together with a change", 5 * time.Minute, func(w *world) {
			w.verifier.more = func(*tokenverify.Identity) {}
			w.verifier.err, w.verifier.hold = &tokenverify.Refused{Rule: "sts"}, make(chan struct{})
			w.advance(time.Minute)
			calls, done := w.verifier.calls.Load(), make(chan struct{})
			go func() { w.user(t, w.token(t, "alice", 1)); close(done) }()
			for w.verifier.calls.Load() == calls {
				runtime.Gosched()
			}
			w.Forget(keyservice.Change{UserIDs: []string{"AIDASOMEBODYELSE0001"}})
			close(w.verifier.hold)
			<-done
			w.verifier.set(func() { w.verifier.err, w.verifier.hold = down, nil })
		}, 30 * time.Second, "503 unavailable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.verifier.outage = tc.outage
			token := w.token(t, "alice", 1)
			if got := w.user(t, token); got != "alice" {
				t.Fatal(got)
			}
			tc.happens(w)
			w.advance(tc.at)
			for range 2 {
				if got := w.user(t, token); got != tc.want {
					t.Errorf("%s, want %s", got, tc.want)
				}
			}
		})
	}
}

func TestWhileEC2IsDownNodesThatAreKnownGoOn(t *testing.T) {
	table, problems := identity.NewTable(identity.Options{}, []identity.AccessEntry{{Name: "nodes", PrincipalARN: "arn:aws:iam::111122223333:role/nodes", Type: identity.TypeEC2Linux}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w := newWorld(t, nil)
	w.table.Store(&table)
	w.verifier.outage = 5 * time.Minute
	const id, name = "i-0123456789abcdef0", "ip-10-0-0-1.internal"
	w.verifier.more = func(i *tokenverify.Identity) {
		i.Principal = principal(t, ststest.Session("nodes", id, 1))
		i.Instance = &identity.Instance{ID: id, PrivateDNSName: name}
		i.ValidUntil = w.now().Add(30 * time.Second)
	}
	token := w.token(t, "alice", 1)
	if got := w.user(t, token); got != "system:node:"+name {
		t.Fatal(got)
	}
	w.verifier.set(func() {
		w.verifier.more = func(i *tokenverify.Identity) {
			i.Principal = principal(t, ststest.Session("nodes", id, 1))
			i.Unproven = &tokenverify.Unavailable{Asked: "EC2", Err: errors.New("down")}
		}
	})
	w.advance(time.Minute)
	if got := w.user(t, token); got != "system:node:"+name {
		t.Errorf("after a minute: %s", got)
	}
	w.advance(4 * time.Minute)
	if got := w.user(t, token); got != "503 unavailable" {
		t.Errorf("after five minutes: %s", got)
	}
}

func TestANodeThatCannotBeProvenNow(t *testing.T) {
	entry := identity.AccessEntry{Name: "nodes", PrincipalARN: "arn:aws:iam::111122223333:role/nodes", Type: identity.TypeEC2Linux}
	table, problems := identity.NewTable(identity.Options{}, []identity.AccessEntry{entry}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, tc := range []struct {
		name     string
		unproven error
		want     string
		says     string
	}{
		{"EC2 is down", &tokenverify.Unavailable{Asked: "EC2", Err: errors.New("down")}, "503 unavailable", "EC2"},
		{"it is no instance", &tokenverify.Refused{Rule: "instance", Saw: "no such instance"}, "403", "no such instance"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.table.Store(&table)
			w.verifier.more = func(id *tokenverify.Identity) {
				k := ststest.Session("nodes", "i-0123456789abcdef0", 1)
				id.Principal = principal(t, k)
				id.Unproven = tc.unproven
			}
			d := w.Authenticate(t.Context(), w.token(t, "alice", 1))
			if got := fmt.Sprintf("%d %s", d.Status, d.Rule); !strings.HasPrefix(got, tc.want) || !strings.Contains(d.Saw, tc.says) {
				t.Errorf("%s: %s; want %s", got, d.Saw, tc.want)
			}
			w.verifier.set(func() {
				w.verifier.more = func(id *tokenverify.Identity) {
					id.Principal = principal(t, ststest.Session("nodes", "i-0123456789abcdef0", 1))
					id.Instance = &identity.Instance{ID: "i-0123456789abcdef0", PrivateDNSName: "ip-10-0-0-1.internal"}
				}
			})
			got := w.user(t, w.token(t, "alice", 1))
			if (got == "system:node:ip-10-0-0-1.internal") != strings.HasPrefix(tc.want, "503") { // what could not be told is not remembered
				t.Errorf("when it is proven: %s", got)
			}
		})
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
