// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"time"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// part is a piece of a query: commands that look at one row at a time, and the command that must see all rows. The last part
// may have no such command.
type part struct {
	steps []logsinsights.Command
	end   logsinsights.Command
}

func split(q *logsinsights.Query) []part {
	parts := []part{{}}
	for _, command := range q.Commands {
		last := &parts[len(parts)-1]
		switch command.(type) {
		case *logsinsights.Limit, *logsinsights.Dedup, *logsinsights.Stats, *logsinsights.Pattern:
			last.end = command
			parts = append(parts, part{})
		default:
			last.steps = append(last.steps, command)
		}
	}
	return parts
}

// runner takes rows through steps.
type runner struct {
	now    time.Time
	check  func() error
	budget *budget
	rows   int
}

// checkEach is the number of rows after which a runner asks whether to go on.
const checkEach = 1024

// pass takes a row through steps and hands on what remains.
func (u *runner) pass(steps []logsinsights.Command, r *row, to func(*row) error) error {
	if u.rows++; u.rows%checkEach == 0 && u.check != nil {
		if err := u.check(); err != nil {
			return err
		}
	}
	for i, step := range steps {
		s := scope{row: r, now: u.now}
		switch c := step.(type) {
		case *logsinsights.Filter:
			if !s.compute(c.Condition).Truth() {
				return nil
			}
		case *logsinsights.Fields:
			if err := u.fields(s, c); err != nil {
				return err
			}
		case *logsinsights.Extract:
			parse(s, c)
		case *logsinsights.Sort:
			keys := make([]logvalue.Value, 0, len(c.Keys)+len(r.keys))
			for _, key := range c.Keys {
				keys = append(keys, s.compute(key.Value))
			}
			r.keys = append(keys, r.keys...)
		case *logsinsights.Unnest:
			return unnest(s, c, func(element *row) error { return u.pass(steps[i+1:], element, to) })
		}
	}
	return to(r)
}

// fields computes the items of a command. One row alone must not take all memory.
func (u *runner) fields(s scope, c *logsinsights.Fields) error {
	for _, item := range c.Items {
		if name, ok := item.Value.(*logsinsights.Name); ok && name.Flat == item.Name {
			continue
		}
		s.row.set(item.Name, s.compute(item.Value))
		if err := u.budget.fits(s.row); err != nil {
			return err
		}
	}
	return nil
}

func parse(s scope, c *logsinsights.Extract) {
	source := s.compute(c.Source)
	if source.IsNull() {
		return
	}
	text := source.String()
	groups := c.Pattern.FindStringSubmatchIndex(text)
	if groups == nil {
		return
	}
	for i, name := range c.Names {
		start, end := groups[2*i+2], groups[2*i+3]
		if name != "" && start >= 0 {
			s.row.set(name, logvalue.Text(text[start:end]))
		}
	}
}

// unnest makes a row of each element. A row whose field is missing has no element.
func unnest(s scope, c *logsinsights.Unnest, to func(*row) error) error {
	list := s.compute(c.Source)
	if list.IsNull() {
		return nil
	}
	for i, element := range list.Elements() {
		r := s.row.copy()
		r.order = s.row.order<<20 + i // behind the elements of earlier rows
		r.set(c.As, element)
		if err := to(r); err != nil {
			return err
		}
	}
	return nil
}
