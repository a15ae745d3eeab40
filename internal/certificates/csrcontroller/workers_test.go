// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

func TestCrewFollowsLatency(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fixed  int
		most   int
		calls  int
		passed time.Duration // since the last look
		used   time.Duration // of processor time in it
		want   int
	}{
		{"nothing is short", 0, most, 0, time.Second, 0, fewest},
		{"short, and others are waited for", 0, most, 1, time.Second, 0, fewest + step},
		{"short, and the processor is busy", 0, most, 1, time.Second, 100 * time.Second, fewest},
		{"too soon to tell", 0, most, 1, 0, 0, fewest},
		{"never more than the most", 0, most, 99, time.Second, 0, most},
		{"a number that was asked for", 3, most, 9, time.Second, 0, 3},
		{"few connections", 0, fewest + 1, 9, time.Second, 0, fewest + 1},
		{"fewer connections than workers at first", 0, 6, 9, time.Second, 0, 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hired := 0
			c := newCrew(tc.fixed, tc.most)
			c.start(func() { hired++ })
			for range tc.calls {
				c.at, c.used = time.Now().Add(-tc.passed), used()-tc.used
				c.short()
			}
			if hired != tc.want || c.count() != tc.want {
				t.Errorf("%d hired, %d counted, want %d", hired, c.count(), tc.want)
			}
			if s := c.shares(); s.signer >= tc.want || s.requester >= s.signer && tc.want > 3 || s.requester < tc.want/2 {
				t.Errorf("shares of %d are %+v", tc.want, s)
			}
		})
	}
}

// A signer that hangs holds up its own requests and no others, and the crew grows.
func TestASlowSignerDelaysNobodyElse(t *testing.T) {
	release := make(chan struct{})
	open := sync.OnceFunc(func() { close(release) })
	w := newWorld(t, func(w *world) {
		w.issuance(pki.SignerKubeletServing, func(i *Issuance) {
			i.Signer = &interrupted{Fake: w.signer, before: func() { <-release }}
		})
	})
	const n = 200
	for k := range n {
		w.machine(k)
		w.create(serving(t, fmt.Sprint("slow-", k), k, address(k)))
	}
	t.Cleanup(open) // before the controller is stopped, which waits for them
	w.until("the crew has grown", func() bool { return w.crew.count() > fewest })
	w.create(bootstrap(t, "quick", 11))
	w.becomes("quick", wasIssued)
	if left := w.queue.depth(); left < n-most {
		t.Errorf("only %d of the slow ones are left", left)
	}
	open()
	for k := range n {
		w.becomes(fmt.Sprint("slow-", k), wasIssued)
	}
}

// One requester whose passes hang leaves workers to others.
func TestARequesterThatHangsDelaysNobodyElse(t *testing.T) {
	release := make(chan struct{})
	open := sync.OnceFunc(func() { close(release) })
	w := newWorld(t, func(w *world) {
		w.config.Workers, w.config.Keep = 4, -1
		w.config.Inventory = hanging{w.config.Inventory, nodeName(11), release}
	})
	for k := range 20 {
		w.create(serving(t, fmt.Sprint("hangs-", k), 11, address(11)))
	}
	t.Cleanup(open) // before the controller is stopped, which waits for it
	w.until("it holds its share", func() bool { return w.queue.depth() == 18 })
	w.machine(12)
	w.create(serving(t, "quick", 12, address(12)))
	w.becomes("quick", wasIssued)
	open()
	w.becomes("hangs-0", wasIssued)
}

// hanging is an inventory that does not answer about one node until it is released.
type hanging struct {
	Inventory
	node string
	open chan struct{}
}

func (h hanging) MachineOfNode(node string) policy.Fact[policy.Machine] {
	if node == h.node {
		<-h.open
	}
	return h.Inventory.MachineOfNode(node)
}
