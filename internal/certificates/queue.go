// SPDX-License-Identifier: Apache-2.0

package certificates

// item is a request in the queue.
type item struct{ name, requester string }

// fairQueue hands out items of one requester after another in turns, so that who asks once waits for one item of each who
// floods, not for all of them. It is the storage of a workqueue, which locks it.
type fairQueue struct {
	items map[string][]item
	turns []string // requesters with items, whose turn is next first
	count int
}

func newFairQueue() *fairQueue { return &fairQueue{items: map[string][]item{}} }

// Touch does nothing: asking twice does not move an item forward.
func (q *fairQueue) Touch(item) {}

// Push adds an item behind those of its requester.
func (q *fairQueue) Push(i item) {
	if len(q.items[i.requester]) == 0 {
		q.turns = append(q.turns, i.requester)
	}
	q.items[i.requester] = append(q.items[i.requester], i)
	q.count++
}

// Len counts the items.
func (q *fairQueue) Len() int { return q.count }

// Pop takes the first item of the requester whose turn it is. The workqueue calls it only if there is one.
func (q *fairQueue) Pop() item {
	who := q.turns[0]
	q.turns = q.turns[1:]
	next := q.items[who][0]
	if rest := q.items[who][1:]; len(rest) > 0 {
		q.items[who] = rest
		q.turns = append(q.turns, who)
	} else {
		delete(q.items, who)
	}
	q.count--
	return next
}
