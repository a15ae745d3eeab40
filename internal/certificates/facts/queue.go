// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"container/list"
	"reflect"
	"time"

	"muster.dev/muster/internal/certificates/policy"
)

// entry is one answer, or the lack of one.
type entry struct {
	subject  Subject
	fact     policy.Fact[[]policy.Machine]
	put      time.Time // when it was answered, zero if it never was
	until    time.Time // when it must be looked up again
	owed     bool      // somebody was told that a change will tell
	underWay bool
	queue    *queue
	used     *list.Element
	waiting  *list.Element // nil unless it waits
}

// names that the answer gives to a machine that was looked up. The owner of a name that was looked up is for that
// lookup alone to say.
func (e *entry) names() []string {
	if e.subject.Name != "" || len(e.fact.Value) == 0 {
		return nil
	}
	return namesOf(e.fact.Value[0])
}

// queue holds entries, and those of them in their order that wait to be looked up.
type queue struct {
	used    *list.List // of *entry, latest first
	waiting *list.List // of *entry, latest first
}

func newQueue() queue { return queue{used: list.New(), waiting: list.New()} }

func (q *queue) add(e *entry) {
	e.queue = q
	e.used = q.used.PushFront(e)
}

// ask puts an entry before all others that wait.
func (q *queue) ask(e *entry) {
	if e.waiting != nil {
		q.waiting.MoveToFront(e.waiting)
		return
	}
	e.waiting = q.waiting.PushFront(e)
}

// first takes out what is to be looked up next, nil if nothing waits.
func (q *queue) first() *entry {
	front := q.waiting.Front()
	if front == nil {
		return nil
	}
	e := entryOf(front)
	q.waiting.Remove(front)
	e.waiting = nil
	return e
}

func (q *queue) remove(e *entry) {
	q.used.Remove(e.used)
	if e.waiting != nil {
		q.waiting.Remove(e.waiting)
		e.waiting = nil
	}
}

// moveTo puts an entry into another queue. A request for it puts it before all that wait there.
func (e *entry) moveTo(q *queue) {
	e.queue.remove(e)
	q.add(e)
}

func entryOf(e *list.Element) *entry {
	found, _ := e.Value.(*entry) // nothing else is in these lists
	return found
}

// same reports whether two facts say the same, whenever and for whatever reason.
func same(a, b policy.Fact[[]policy.Machine]) bool {
	return a.State == b.State && (len(a.Value)+len(b.Value) == 0 || reflect.DeepEqual(a.Value, b.Value))
}
