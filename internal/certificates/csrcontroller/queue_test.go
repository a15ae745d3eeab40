// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

func newTestQueue(share int, items ...item) *queue {
	q := newQueue(func() shares { return shares{share, share} }, 2)
	for _, i := range items {
		q.add(i)
	}
	return q
}

// take takes an item without waiting: "" if none may be handed out.
func (q *queue) takeNow() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	i, ok := q.pop()
	if !ok {
		return ""
	}
	delete(q.queued, i)
	q.inHand[i] = true
	return i.requester + i.name
}

func TestQueueTakesTurns(t *testing.T) {
	q := newTestQueue(99, item{"1", "a", "x", ""}, item{"2", "a", "x", ""}, item{"3", "a", "x", ""}, item{"1", "b", "x", ""}, item{"2", "b", "x", ""}, item{"1", "c", "x", ""})
	got := []string{q.takeNow(), q.takeNow()}
	q.add(item{"1", "d", "x", ""})
	q.add(item{"2", "c", "x", ""})
	q.add(item{"2", "c", "x", ""}) // twice is once
	for q.depth() > 0 {
		got = append(got, q.takeNow())
	}
	if s := strings.Join(got, " "); s != "a1 b1 c1 a2 b2 d1 c2 a3" {
		t.Errorf("order %s", s)
	}
	if s := q.signers[0]; len(s.lanes)+len(s.turns) > 0 {
		t.Error("something is left")
	}
}

func TestQueueTakesTurnsOfSigners(t *testing.T) {
	q := newTestQueue(99, item{"1", "a", "x", ""}, item{"1", "b", "x", ""}, item{"1", "c", "x", ""}, item{"1", "d", "y", ""}, item{"1", "e", "y", ""})
	var got []string
	for q.depth() > 0 {
		got = append(got, q.takeNow())
	}
	if s := strings.Join(got, " "); s != "a1 d1 b1 e1 c1" {
		t.Errorf("order %s", s)
	}
}

func TestTheNewestOfANodeIsFirst(t *testing.T) {
	node, token := "system:node:a", "system:bootstrap:abcdef"
	q := newTestQueue(99, item{"1", node, "x", ""}, item{"2", node, "x", ""}, item{"3", node, "x", ""})
	if got := q.takeNow() + q.takeNow() + q.takeNow(); got != node+"3"+node+"2"+node+"1" {
		t.Error(got)
	}
	q = newTestQueue(99, item{"1", token, "x", ""}, item{"2", token, "x", ""})
	if got := q.takeNow() + q.takeNow(); got != token+"1"+token+"2" {
		t.Error(got)
	}
}

// One machine that floods with a token holds up neither the others that have the same one, nor anybody else by
// inventing names.
func TestNamesTakeTurnsWithinAToken(t *testing.T) {
	token := "t"
	q := newTestQueue(99)
	for n := range 50 {
		q.add(item{fmt.Sprint("flood", n), token, "x", "a"})
	}
	q.add(item{"honest", token, "x", "b"})
	if got := []string{q.takeNow(), q.takeNow(), q.takeNow()}; !slices.Equal(got, []string{"tflood0", "thonest", "tflood1"}) {
		t.Errorf("of one name: %q", got)
	}

	q = newTestQueue(99)
	for n := range 50 {
		q.add(item{fmt.Sprint("flood", n), token, "x", fmt.Sprint("invented", n)})
	}
	for n := range 3 {
		q.add(item{fmt.Sprint(n), "other", "x", ""})
	}
	var got []string
	for range 6 {
		got = append(got, q.takeNow())
	}
	if want := []string{"tflood0", "other0", "tflood1", "other1", "tflood2", "other2"}; !slices.Equal(got, want) {
		t.Errorf("of many names: %q", got)
	}
	for q.depth() > 0 {
		q.takeNow()
	}
	if s := q.signers[0]; len(s.lanes)+len(s.turns) > 0 {
		t.Error("something is left")
	}
}

// Requests by one token take turns by their subject, as it is read in the request.
func TestWhatATokenAsksIsSortedByName(t *testing.T) {
	w := prepareWorld(t)
	w.run()
	w.stop()
	for csr, want := range map[*certificatesv1.CertificateSigningRequest]string{
		bootstrap(t, "a", 11):            "system:node:" + nodeName(11),
		serving(t, "b", 11, address(11)): "",
	} {
		for range 2 {
			o, err := w.hold(csr.DeepCopy())
			h, ok := o.(*held)
			if err != nil || !ok || h.item.about != want || !h.item.is(csr) {
				t.Errorf("%+v %v, want %q", h, err, want)
			}
			if err := w.informer.GetStore().Add(h); err != nil {
				t.Fatal(err)
			}
			csr.ResourceVersion += "1"
		}
	}
}

func TestSharesOfWorkers(t *testing.T) {
	q := newTestQueue(2, item{"1", "a", "x", ""}, item{"2", "a", "x", ""}, item{"3", "a", "x", ""})
	q.alone = true
	got := q.takeNow() + q.takeNow() + q.takeNow()
	if got != "a1a2" {
		t.Errorf("one requester holds %q of two", got)
	}
	q.add(item{"1", "b", "x", ""}) // the signer is the only one, and may hold more than a share
	if got := q.takeNow(); got != "b1" {
		t.Errorf("another gets %q", got)
	}
	q.done(item{"1", "a", "x", ""})
	if got := q.takeNow(); got != "a3" {
		t.Errorf("then %q", got)
	}

	q = newTestQueue(2, item{"1", "a", "slow", ""}, item{"1", "b", "slow", ""}, item{"1", "c", "slow", ""}, item{"1", "d", "quick", ""})
	got = ""
	for range 4 {
		got += q.takeNow()
	}
	if got != "a1d1b1" {
		t.Errorf("the slow signer holds %q", got)
	}
	q.done(item{"1", "b", "slow", ""})
	if got := q.takeNow(); got != "c1" {
		t.Errorf("then %q", got)
	}
}

func TestAnItemIsInOneHandOnly(t *testing.T) {
	i := item{"1", "a", "x", ""}
	q := newTestQueue(99, i)
	q.takeNow()
	q.add(i)
	if q.takeNow() != "" {
		t.Fatal("it is in two hands")
	}
	q.done(i)
	if q.takeNow() == "" {
		t.Error("it was forgotten")
	}
}

func TestQueueLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTestQueue(99)
		a, b, c := item{"a", "", "x", ""}, item{"b", "", "x", ""}, item{"c", "", "x", ""}
		q.addAfter(a, time.Hour)
		q.addAfter(a, time.Minute) // the last one counts
		q.addAfter(b, time.Minute)
		q.addAfter(c, time.Hour)
		q.forget(b)
		<-time.After(time.Minute + 1)
		synctest.Wait()
		if got := q.takeNow() + q.takeNow(); got != "a" {
			t.Errorf("after a minute: %q", got)
		}
		q.done(a)
		<-time.After(2 * time.Hour)
		synctest.Wait()
		if got := q.takeNow() + q.takeNow(); got != "c" {
			t.Errorf("later: %q", got)
		}
		q.addAfter(b, time.Minute)
		q.close()
		if len(q.later) > 0 {
			t.Error("a timer is left")
		}
	})
}

func TestQueueWakesWhoWaits(t *testing.T) {
	q := newTestQueue(1)
	const n = 200
	var group sync.WaitGroup
	var mu sync.Mutex
	seen := map[item]int{}
	all := make(chan struct{})
	for range 8 {
		group.Go(func() {
			for {
				i, ok := q.get()
				if !ok {
					return
				}
				mu.Lock()
				if seen[i]++; len(seen) == n {
					close(all)
				}
				mu.Unlock()
				q.done(i)
			}
		})
	}
	for k := range n {
		q.add(item{fmt.Sprint(k), fmt.Sprint("r", k%3), fmt.Sprint("s", k%2), fmt.Sprint("n", k%5)})
	}
	<-all
	q.close()
	group.Wait()
	if q.depth() != 0 || len(q.busy)+len(q.inHand)+len(q.queued) != 0 {
		t.Error("something is left")
	}
}
