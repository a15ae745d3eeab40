// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// order sorts the rows of a part.
type order struct {
	descending []bool // for each key of a row
	byTime     bool   // rows that keys do not tell apart are sorted by @timestamp and @ptr, the newest first
}

func newOrder(p part, first bool) order {
	o := order{byTime: first}
	for _, step := range p.steps {
		if c, ok := step.(*logsinsights.Sort); ok {
			directions := make([]bool, 0, len(c.Keys)+len(o.descending))
			for _, key := range c.Keys {
				directions = append(directions, key.Descending)
			}
			o.descending = append(directions, o.descending...)
		}
	}
	return o
}

func (o order) compare(a, b *row) int {
	for i, descending := range o.descending {
		c := logvalue.Order(a.keys[i], b.keys[i])
		if descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	if o.byTime {
		if c := cmp.Compare(b.event.Timestamp, a.event.Timestamp); c != 0 {
			return c
		}
		if c := strings.Compare(b.event.Pointer, a.event.Pointer); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.order, b.order)
}

// top keeps the first rows of an order.
type top struct {
	order  order
	count  int
	budget *budget
	kept   []*row // a heap whose root is the row that sorts last
}

func (t *top) Len() int           { return len(t.kept) }
func (t *top) Less(i, j int) bool { return t.order.compare(t.kept[i], t.kept[j]) > 0 }
func (t *top) Swap(i, j int)      { t.kept[i], t.kept[j] = t.kept[j], t.kept[i] }

// Push and Pop are heap's.
func (t *top) Push(x any) {
	if r, ok := x.(*row); ok {
		t.kept = append(t.kept, r)
	}
}

// Pop removes the last row of the slice.
func (t *top) Pop() any {
	last := t.kept[len(t.kept)-1]
	t.kept = t.kept[:len(t.kept)-1]
	return last
}

func (t *top) add(r *row) error {
	if len(t.kept) == t.count {
		if t.order.compare(r, t.kept[0]) >= 0 {
			return nil
		}
		t.budget.drop(t.kept[0])
		t.kept[0] = r
		heap.Fix(t, 0)
		return t.budget.keep(r)
	}
	heap.Push(t, r)
	return t.budget.keep(r)
}

func (t *top) rows() []*row {
	slices.SortFunc(t.kept, t.order.compare)
	for _, r := range t.kept {
		t.budget.drop(r)
	}
	return t.kept
}
