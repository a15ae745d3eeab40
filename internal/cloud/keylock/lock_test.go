// SPDX-License-Identifier: Apache-2.0

package keylock

import (
	"sync"
	"testing"
)

func TestOneAtATime(t *testing.T) {
	var locks Locks
	var group sync.WaitGroup
	n := 0
	for range 50 {
		group.Go(func() {
			defer locks.Hold("a")()
			before := n
			defer locks.Hold("b")()
			n = before + 1
		})
	}
	group.Wait()
	if n != 50 || len(locks.all) != 0 {
		t.Errorf("%d changes of 50, and %d locks are left", n, len(locks.all))
	}
}
