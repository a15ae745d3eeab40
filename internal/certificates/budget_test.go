// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster.dev/muster/internal/pki"
	"muster.dev/muster/internal/pki/pkitest"
)

func TestBudgetOfEvents(t *testing.T) {
	b, now := newBudget(), time.Unix(1000, 0)
	spend := func(requester string, times int) (n int) {
		for range times {
			if b.spend(requester, now) {
				n++
			}
		}
		return n
	}
	if n := spend("a", 1000); n != eventsAtOnce {
		t.Errorf("%d at once", n)
	}
	if n := spend("b", 1); n != 1 {
		t.Error("one requester spends what is another's")
	}
	now = now.Add(7 * eventsPace)
	if n := spend("a", 1000); n != 7 {
		t.Errorf("%d after seven paces", n)
	}
	now = now.Add(1000 * eventsPace)
	if n := spend("a", 1000); n != eventsAtOnce {
		t.Errorf("%d after a long time", n)
	}
	now = now.Add(time.Hour)
	for n := range 10 * manyBudgets {
		b.spend(fmt.Sprint(n), now)
		now = now.Add(eventsPace)
	}
	if len(b.full) > manyBudgets+1 {
		t.Errorf("%d are kept", len(b.full))
	}
}

// Who floods is told less, and whoever else waits is told why; so is he who flooded, later.
func TestAFloodLeavesEventsToOthers(t *testing.T) {
	var later atomic.Int64
	start := time.Now()
	now := func() time.Time { return start.Add(time.Duration(later.Load())) }
	w := newWorld(t, func(w *world) { w.config.Now, w.facts.Now, w.config.Keep = now, now, -1 })
	flood := eventsAtOnce + 20
	pem := pkitest.Kubelet(t, nodeName(12))
	for n := range flood {
		w.create(object(fmt.Sprintf("flood-%03d", n), pki.SignerKubeletClient, pem, "system:node:"+nodeName(12), "system:nodes"))
	}
	w.create(serving(t, "honest", 13, address(13)))
	told := func(prefix string) int {
		return len(slices.DeleteFunc(w.events.all(), func(e string) bool { return !strings.HasPrefix(e, prefix) }))
	}
	w.until("the other is told", func() bool { return told("honest") == 1 })
	w.until("all are counted", func() bool {
		return w.gather()[namespace+"_decisions_total machine "+pki.SignerKubeletClient+" Wait"] == float64(flood)
	})
	w.until("all passes have ended", w.resting)
	if n := told("flood-"); n != eventsAtOnce {
		t.Errorf("%d events of one requester", n)
	}
	later.Store(int64(20 * eventsPace))
	for _, o := range w.informer.GetStore().List() {
		if h, ok := o.(*held); ok {
			w.queue.add(h.item)
		}
	}
	w.until("all are told", func() bool { return told("flood-") == flood })
	w.until("all passes have ended", w.resting)
	if got := len(w.events.all()); got != flood+1 {
		t.Errorf("%d events of %d requests", got, flood+1)
	}
	if n := strings.Count(w.log.String(), "certificate request decided"); n != flood+1 {
		t.Errorf("%d lines in the log", n)
	}
}
