// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"iter"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/logsinsights"
)

// Options are what a query depends on besides its events.
type Options struct {
	Now    time.Time // of the start of the query
	Limits Limits    // DefaultLimits, if it is the zero Limits
	// Check is called now and then, even where one event makes many rows. Its error ends the query. It may be nil.
	Check func() error
}

// Run computes the answer of a query. Events may come in any order; an event is not changed and may be kept until Run returns.
// An error of events or of Check ends the query.
func Run(q *logsinsights.Query, events iter.Seq2[*Event, error], options Options) (*Result, error) {
	if options.Limits == (Limits{}) {
		options.Limits = DefaultLimits()
	}
	result := &Result{Columns: Columns(q)}
	b := &budget{limits: options.Limits}
	parts := split(q)
	u := &runner{now: options.Now, check: options.Check, budget: b}
	c := newCollector(parts[0], true, options.Now, b)
	for event, err := range events {
		if err != nil {
			return nil, err
		}
		result.Scanned++
		result.Bytes += len(event.Message) + event.Unread
		err = u.pass(parts[0].steps, &row{event: event}, func(r *row) error {
			result.Matched++
			return c.add(r)
		})
		if err != nil {
			return nil, err
		}
	}
	rows, err := c.rows()
	for _, p := range parts[1:] {
		if err != nil {
			return nil, err
		}
		rows, err = u.again(p, rows)
	}
	if err != nil {
		return nil, err
	}
	result.Rows = make([][]Field, len(rows))
	wanted := namesOf(result.Columns)
	for i, r := range rows {
		result.Rows[i] = fieldsOf(r, wanted)
	}
	return result, nil
}

// again takes the rows of one part through the next.
func (u *runner) again(p part, rows []*row) ([]*row, error) {
	c := newCollector(p, false, u.now, u.budget)
	order := 0
	for _, r := range rows {
		r.keys = nil
		err := u.pass(p.steps, r, func(r *row) error {
			r.order = order
			order++
			return c.add(r)
		})
		if err != nil {
			return nil, err
		}
	}
	return c.rows()
}

// collector sees all rows of a part and returns those of the next.
type collector struct {
	add  func(*row) error
	rows func() ([]*row, error)
}

func newCollector(p part, first bool, now time.Time, b *budget) collector {
	o := newOrder(p, first)
	count := logsinsights.MaxRows
	switch c := p.end.(type) {
	case *logsinsights.Dedup:
		d := newDedup(c, now, o, b)
		return collector{d.add, d.rows}
	case *logsinsights.Stats:
		s := newStats(c, now, b)
		return collector{s.add, func() ([]*row, error) { return s.rows(), nil }}
	case *logsinsights.Pattern:
		t := newPatterns(c, now, b)
		return collector{t.add, func() ([]*row, error) { return t.rows(), nil }}
	case *logsinsights.Limit:
		count = c.Count
	}
	t := &top{order: o, count: count, budget: b}
	return collector{t.add, func() ([]*row, error) { return t.rows(), nil }}
}

func namesOf(columns []string) []*logsinsights.Name {
	names := make([]*logsinsights.Name, len(columns))
	for i, column := range columns {
		names[i] = &logsinsights.Name{Flat: column, Segments: strings.Split(column, ".")}
	}
	return names
}
