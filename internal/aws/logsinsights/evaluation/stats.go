// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// stats aggregates rows in groups.
type stats struct {
	command    *logsinsights.Stats
	aggregates []*logsinsights.Aggregate // of all items
	now        time.Time
	budget     *budget
	groups     map[string]*group
}

type group struct {
	by           []logvalue.Value
	accumulators []accumulator // as the aggregates
}

func newStats(c *logsinsights.Stats, now time.Time, b *budget) *stats {
	s := &stats{command: c, now: now, budget: b, groups: map[string]*group{}}
	for _, item := range c.Items {
		logsinsights.Walk(item.Value, func(e logsinsights.Expression) bool {
			aggregate, ok := e.(*logsinsights.Aggregate)
			if ok {
				s.aggregates = append(s.aggregates, aggregate)
			}
			return !ok
		})
	}
	return s
}

func (s *stats) add(r *row) error {
	at := scope{row: r, now: s.now}
	by := make([]logvalue.Value, len(s.command.By))
	var key []byte
	for i, item := range s.command.By {
		by[i] = at.compute(item.Value)
		if by[i].IsNull() {
			key = append(key, '-') // no text: other than the empty text
			continue
		}
		key = appendKey(key, by[i].Plain())
	}
	g := s.groups[string(key)]
	if g == nil {
		if err := s.budget.group(2*len(key) + rowOverhead*len(s.aggregates)); err != nil {
			return err
		}
		for i := range by {
			by[i] = by[i].Clone()
		}
		g = &group{by: by}
		for _, aggregate := range s.aggregates {
			g.accumulators = append(g.accumulators, newAccumulator(aggregate, s.budget))
		}
		s.groups[string(key)] = g
	}
	for i, aggregate := range s.aggregates {
		value := logvalue.Bool(true) // count of rows
		if aggregate.Argument != nil {
			value = at.compute(aggregate.Argument)
		}
		if value.IsNull() {
			continue
		}
		if err := g.accumulators[i].add(value, r); err != nil {
			return err
		}
	}
	return nil
}

func (s *stats) rows() []*row {
	groups := make([]*group, 0, len(s.groups))
	for _, g := range s.groups {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *group) int { return compareGroups(a.by, b.by) })
	rows := make([]*row, len(groups))
	for i, g := range groups {
		rows[i] = s.row(g)
	}
	return rows
}

func (s *stats) row(g *group) *row {
	r := &row{made: map[string]logvalue.Value{}}
	for i, item := range s.command.By {
		r.set(item.Name, g.by[i])
	}
	at := scope{row: r, now: s.now, aggregates: map[*logsinsights.Aggregate]logvalue.Value{}}
	for i, aggregate := range s.aggregates {
		at.aggregates[aggregate] = g.accumulators[i].value()
	}
	for _, item := range s.command.Items {
		r.set(item.Name, at.compute(item.Value))
	}
	return r
}

func compareGroups(a, b []logvalue.Value) int {
	for i := range a {
		c := logvalue.Order(a[i], b[i])
		if a[i].Kind() == logvalue.KindTime {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return strings.Compare(texts(a), texts(b))
}

func texts(values []logvalue.Value) string {
	var key []byte
	for _, value := range values {
		key = appendKey(key, value.Plain())
	}
	return string(key)
}
