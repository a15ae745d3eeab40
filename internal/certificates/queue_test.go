// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"strings"
	"testing"
)

func TestFairQueueTakesTurns(t *testing.T) {
	q := newFairQueue()
	for _, i := range []item{{"1", "a"}, {"2", "a"}, {"3", "a"}, {"1", "b"}, {"2", "b"}, {"1", "c"}} {
		q.Push(i)
	}
	var got []string
	take := func() { i := q.Pop(); got = append(got, i.requester+i.name) }
	take()
	take()
	q.Push(item{"1", "d"})
	q.Push(item{"2", "c"})
	for q.Len() > 0 {
		take()
	}
	if s := strings.Join(got, " "); s != "a1 b1 c1 a2 b2 d1 c2 a3" {
		t.Errorf("order %s", s)
	}
	if len(q.items)+len(q.turns) > 0 {
		t.Error("something is left")
	}
}
