// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

func TestBudgetOfEvents(t *testing.T) {
	b, now := newBudget(), time.Unix(1000, 0)
	count := 0
	offer := func(requester string, times int) (n int) {
		for range times {
			count++
			if b.offer(word{about: item{name: fmt.Sprintf("%04d", count), requester: requester}}, now) {
				n++
			}
		}
		return n
	}
	if n := offer("a", 1000); n != eventsAtOnce {
		t.Errorf("%d at once", n)
	}
	if n := offer("b", 1); n != 1 {
		t.Error("one requester spends what is another's")
	}
	if n := len(b.next(now)); n != 0 {
		t.Errorf("%d later, when no time has passed", n)
	}
	now = now.Add(7 * eventsPace)
	if n := offer("a", 1); n != 0 {
		t.Error("what comes last is said first")
	}
	words := b.next(now)
	if len(words) != 7 || words[0].about.name != fmt.Sprintf("%04d", eventsAtOnce+1) || b.waiting() != 1000-eventsAtOnce+1-7 {
		t.Errorf("after seven paces %d are said, and %d are held", len(words), b.waiting())
	}
	now = now.Add(1000 * eventsPace)
	if n := len(b.next(now)); n != eventsAtOnce {
		t.Errorf("%d after a long time", n)
	}
	now = now.Add(time.Hour)
	for b.waiting() > 0 {
		b.next(now)
		now = now.Add(eventsPace)
	}
	if len(b.lines) > 0 {
		t.Errorf("%d empty lines are kept", len(b.lines))
	}
	for n := range 10 * manyBudgets {
		offer(fmt.Sprint(n), 1)
		now = now.Add(eventsPace)
	}
	if len(b.full) > manyBudgets+1 {
		t.Errorf("%d are kept", len(b.full))
	}
}

// However many requesters there are, no more is said at once than the recorder holds, and all of it later. Each gets
// its turn.
func TestBudgetOfAll(t *testing.T) {
	b, now := newBudget(), time.Unix(1000, 0)
	said, turns := 0, map[string]int{}
	const requesters, each = 20, 60
	for n := range each {
		for r := range requesters {
			if b.offer(word{about: item{name: fmt.Sprint(n), requester: fmt.Sprint(r)}}, now) {
				said++
			}
		}
	}
	if said != allEventsAtOnce {
		t.Errorf("%d at once", said)
	}
	now = now.Add(requesters * allEventsPace)
	for _, w := range b.next(now) {
		turns[w.about.requester]++
		said++
	}
	if len(turns) != requesters {
		t.Errorf("turns are %v", turns)
	}
	for b.waiting() > 0 {
		now = now.Add(tick)
		n := len(b.next(now))
		if n > int(tick/allEventsPace) {
			t.Fatalf("%d in one tick", n)
		}
		said += n
	}
	if said != requesters*each {
		t.Errorf("%d are said", said)
	}
}

// Of the Events that are held, only the newest about a request is written, and no Event about a request that is gone. A
// finished request gets its last Event.
func TestBudgetForgets(t *testing.T) {
	b, now := newBudget(), time.Unix(1000, 0)
	for n := range eventsAtOnce {
		b.offer(word{about: item{name: fmt.Sprint("first", n)}}, now)
	}
	held := func(name, reason string, last bool) {
		if b.offer(word{about: item{name: name}, reason: reason, last: last}, now) {
			t.Errorf("%s is said at once", name)
		}
	}
	held("a", "waits", false)
	held("b", "waits", false)
	held("c", "waits", false)
	held("b", "denied", true)
	b.forget(item{name: "a"}, never)
	b.forget(item{name: "b"}, last)
	b.forget(item{name: "c"}, last)
	b.forget(item{name: "d"}, never)
	b.forget(item{name: "a", requester: "another"}, never)
	words := b.next(now.Add(time.Hour))
	if len(words) != 1 || words[0].about.name != "b" || words[0].reason != "denied" {
		t.Errorf("said is %+v", words)
	}
}

// A requester that floods is told less at once, and all of it later, by nobody's doing; others wait for none of that.
// It is the same whatever becomes of the requests, also where nothing happens to them ever again.
func TestAFloodLeavesEventsToOthers(t *testing.T) {
	const flood = eventsAtOnce + 20
	for name, tc := range map[string]struct {
		request func(*testing.T, string) *certificatesv1.CertificateSigningRequest
		change  func(*world)
		reason  string
	}{
		"they wait": {func(t *testing.T, name string) *certificatesv1.CertificateSigningRequest {
			t.Helper()
			return object(name, pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(12)), "system:node:"+nodeName(12), "system:nodes")
		}, nil, "CertificateWaiting"},
		"they are left to people": {stranger, nil, "CertificateLeftPending"},
		"they are denied": {func(t *testing.T, name string) *certificatesv1.CertificateSigningRequest {
			t.Helper()
			return serving(t, name, 11, "10.100.0.1")
		}, nil, "CertificateDenied"},
		"they are observed": {stranger, func(w *world) { w.config.Mode, w.config.Register = Observe, nil }, "WouldLeavePending"},
		"they are observed and another approver is quick": {func(t *testing.T, name string) *certificatesv1.CertificateSigningRequest {
			t.Helper()
			csr := approved(stranger(t, name))
			csr.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
			csr.Status.Certificate = []byte("theirs")
			return csr
		}, func(w *world) { w.config.Mode, w.config.Register = Observe, nil }, "WouldLeavePending"},
	} {
		t.Run(name, func(t *testing.T) {
			var later atomic.Int64
			start := time.Now()
			now := func() time.Time { return start.Add(time.Duration(later.Load())) }
			w := newWorld(t, func(w *world) {
				w.config.Now, w.facts.Now, w.config.Keep = now, now, -1
				if tc.change != nil {
					tc.change(w)
				}
			})
			for n := range flood {
				w.create(tc.request(t, fmt.Sprintf("flood-%03d", n)))
			}
			w.create(serving(t, "honest", 13, address(13)))
			told := func(prefix, reason string) int {
				return len(slices.DeleteFunc(w.events.all(), func(e string) bool { return !strings.HasPrefix(e, prefix) || !strings.Contains(e, reason) }))
			}
			w.until("the other is told", func() bool { return told("honest", "") == 1 })
			w.until("all are decided", func() bool { return strings.Count(w.log.String(), "certificate request decided") == flood+1 })
			w.until("all passes have ended", w.resting)
			if n := told("flood-", tc.reason); n != eventsAtOnce {
				t.Errorf("%d events of one requester", n)
			}
			later.Store(int64(20 * eventsPace))
			w.until("all are told", func() bool { return told("flood-", tc.reason) == flood })
			if got := len(w.events.all()); got != flood+1 || w.budget.waiting() != 0 {
				t.Errorf("%d events of %d requests, and %d are held", got, flood+1, w.budget.waiting())
			}
			for _, e := range []string{"flood-000", fmt.Sprintf("flood-%03d", flood-1)} {
				if d, ok := csrview.Decode(w.events.annotations(e)[csrview.Annotation]); !ok || len(d.Checks) == 0 {
					t.Errorf("the event about %s holds no decision", e)
				}
			}
			if n := strings.Count(w.log.String(), "certificate request decided"); n != flood+1 {
				t.Errorf("%d lines in the log", n)
			}
		})
	}
}

// stranger makes a request that no rule speaks for: it is left to people.
func stranger(t *testing.T, name string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	return object(name, pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(12)), "alice")
}

// waiting counts the words that are held.
func (b *budget) waiting() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lines {
		n += l.words.Len()
	}
	return n
}
