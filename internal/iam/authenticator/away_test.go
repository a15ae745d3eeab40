// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

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
			if (got == "system:node:ip-10-0-0-1.internal") != strings.HasPrefix(tc.want, "503") { // an answer that failed is not remembered
				t.Errorf("when it is proven: %s", got)
			}
		})
	}
}

// Who came before his entry did is let in like everybody else from then on, and not forgotten as strangers are.
func TestWhileNobodyCanTellWhoWasLetInLateGoesOn(t *testing.T) {
	w := newWorld(t, nil)
	w.verifier.outage = 5 * time.Minute
	token := w.token(t, "alice", 1)
	w.mapTo(t, "")
	if got := w.user(t, token); got != "403 no-entry" {
		t.Fatal(got)
	}
	w.mapTo(t, "alice")
	if got := w.user(t, token); got != "alice" {
		t.Fatal(got)
	}
	w.verifier.set(func() { w.verifier.err = &tokenverify.Unavailable{Asked: "sts", Err: errors.New("down")} })
	w.Forget(keyservice.Change{UserIDs: []string{"AIDASOMEBODYELSE0001"}})
	if got := w.user(t, token); got != "alice" {
		t.Errorf("%s, want alice", got)
	}
}
