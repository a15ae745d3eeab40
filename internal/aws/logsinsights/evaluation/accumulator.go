// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"math"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// accumulator is an aggregate function of one group. Values are never Null.
type accumulator interface {
	add(value logvalue.Value, r *row) error
	value() logvalue.Value
}

func newAccumulator(a *logsinsights.Aggregate, b *budget) accumulator {
	switch a.Name {
	case "count":
		return &count{}
	case "count_distinct":
		return &distinct{seen: map[string]bool{}, budget: b}
	case "sum", "avg", "stddev":
		return &moments{name: a.Name}
	case "median":
		return &percentile{percent: 50, budget: b}
	case "pct":
		return &percentile{percent: a.Percent, budget: b}
	default:
		return &pick{name: a.Name, budget: b}
	}
}

type count struct{ rows float64 }

func (c *count) add(logvalue.Value, *row) error { c.rows++; return nil }
func (c *count) value() logvalue.Value          { return logvalue.Number(c.rows) }

type distinct struct {
	seen   map[string]bool
	budget *budget
}

func (d *distinct) add(value logvalue.Value, _ *row) error {
	text := value.Plain()
	if d.seen[text] {
		return nil
	}
	d.seen[strings.Clone(text)] = true // not a part of a message, which would stay in memory
	return d.budget.value(len(text) + fieldOverhead)
}

func (d *distinct) value() logvalue.Value { return logvalue.Number(float64(len(d.seen))) }

// moments are sum, avg and stddev. The deviation is computed as Welford does, which does not cancel.
type moments struct {
	name                         string
	count, total, mean, distance float64
}

func (m *moments) add(value logvalue.Value, _ *row) error {
	number, ok := value.Number()
	if !ok {
		return nil
	}
	m.count++
	m.total += number
	before := number - m.mean
	m.mean += before / m.count
	m.distance += before * (number - m.mean)
	return nil
}

func (m *moments) value() logvalue.Value {
	switch {
	case m.count == 0:
		return logvalue.Null()
	case m.name == "sum":
		return logvalue.Number(m.total)
	case m.name == "avg":
		return logvalue.Number(m.total / m.count)
	default:
		return logvalue.Number(math.Sqrt(m.distance / m.count))
	}
}

type percentile struct {
	percent float64
	numbers []float64
	budget  *budget
}

func (p *percentile) add(value logvalue.Value, _ *row) error {
	number, ok := value.Number()
	if !ok {
		return nil
	}
	p.numbers = append(p.numbers, number)
	return p.budget.value(8)
}

// value returns the smallest number that so many percent of the numbers are not above.
func (p *percentile) value() logvalue.Value {
	if len(p.numbers) == 0 {
		return logvalue.Null()
	}
	slices.Sort(p.numbers)
	rank := int(math.Ceil(p.percent / 100 * float64(len(p.numbers))))
	return logvalue.Number(p.numbers[max(rank, 1)-1])
}

// pick keeps one of the values: the smallest, largest, earliest, latest, or what sorts first or last.
type pick struct {
	name   string
	kept   logvalue.Value
	by     row // timestamp, pointer and order of the row of the kept value
	budget *budget
}

func (p *pick) add(value logvalue.Value, r *row) error {
	if !p.kept.IsNull() && !p.better(value, r) {
		return nil
	}
	before := p.kept.Size()
	p.kept, p.by = value.Clone(), row{order: r.order}
	if r.event != nil { // without its message
		p.by.event = &Event{Timestamp: r.event.Timestamp, Pointer: r.event.Pointer}
	}
	return p.budget.spend(p.kept.Size() - before)
}

func (p *pick) better(value logvalue.Value, r *row) bool {
	switch p.name {
	case "min", "sortsfirst":
		return logvalue.Order(value, p.kept) < 0
	case "max", "sortslast":
		return logvalue.Order(value, p.kept) > 0
	case "earliest":
		return age(r, &p.by) > 0
	default:
		return age(r, &p.by) < 0
	}
}

// age returns -1 if a is newer than b, and 1 if it is older. Rows without an event have their order as time.
func age(a, b *row) int {
	return order{byTime: a.event != nil}.compare(a, b)
}

// value returns timestamps as milliseconds, as CloudWatch does.
func (p *pick) value() logvalue.Value {
	if number, ok := p.kept.Number(); ok && p.kept.Kind() == logvalue.KindTime {
		return logvalue.Number(number)
	}
	return p.kept
}
