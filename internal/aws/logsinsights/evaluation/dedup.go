// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"strconv"
	"time"

	"muster.dev/muster/internal/aws/logsinsights"
)

// dedup keeps the first row of an order for each combination of values, and rows that lack one of the fields.
type dedup struct {
	fields []logsinsights.Expression
	now    time.Time
	first  map[string]*row
	others top
}

func newDedup(c *logsinsights.Dedup, now time.Time, o order, b *budget) *dedup {
	return &dedup{fields: c.Fields, now: now, first: map[string]*row{}, others: top{order: o, count: logsinsights.MaxRows, budget: b}}
}

func (d *dedup) add(r *row) error {
	s := scope{row: r, now: d.now}
	var key []byte
	for _, field := range d.fields {
		value := s.compute(field)
		if value.IsNull() {
			return d.others.add(r)
		}
		key = appendKey(key, value.Plain())
	}
	before, found := d.first[string(key)]
	switch {
	case !found:
		if err := d.others.budget.group(len(key)); err != nil {
			return err
		}
	case d.others.order.compare(r, before) >= 0:
		return nil
	default:
		d.others.budget.drop(before)
	}
	d.first[string(key)] = r
	return d.others.budget.keep(r)
}

// rows returns the first rows of the order: only limit may follow dedup.
func (d *dedup) rows() ([]*row, error) {
	for _, r := range d.first {
		d.others.budget.drop(r)
		if err := d.others.add(r); err != nil {
			return nil, err
		}
	}
	return d.others.rows(), nil
}

// appendKey appends a text so that different lists of texts have different keys.
func appendKey(key []byte, text string) []byte {
	key = strconv.AppendInt(key, int64(len(text)), 10)
	return append(append(key, ':'), text...)
}
