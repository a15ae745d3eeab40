// SPDX-License-Identifier: Apache-2.0

// Package cron reads cron expressions of five fields, as scheduled actions of Auto Scaling have them, and says when they are
// due: minute, hour, day, month and weekday, each *, a number or a name, a range, a list, a step. If both days are
// restricted, either of them fits, as in cron(8).
package cron

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Expression is a cron expression. It is made by Parse.
type Expression struct {
	minute, hour, day, month, weekday uint64 // a bit for each value that fits
	anyDay, anyWeekday                bool
}

type field struct {
	name      string
	low, high int
	names     []string // of the values from low on
}

func fields() []field {
	return []field{
		{name: "minute", low: 0, high: 59},
		{name: "hour", low: 0, high: 23},
		{name: "day of month", low: 1, high: 31},
		{name: "month", low: 1, high: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		{name: "day of week", low: 0, high: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

// Parse reads an expression. The error says which field is wrong, and what is right.
func Parse(text string) (Expression, error) {
	parts := strings.Fields(text)
	all := fields()
	if len(parts) != len(all) {
		return Expression{}, fmt.Errorf("cron expression %.100q has %d fields: it must have five, for minute, hour, day, month and weekday", text, len(parts))
	}
	var bits [5]uint64
	for i, part := range parts {
		set, err := all[i].parse(part)
		if err != nil {
			return Expression{}, fmt.Errorf("cron expression %.100q: %s %.40q: %w", text, all[i].name, part, err)
		}
		bits[i] = set
	}
	if bits[4]&(1<<7) != 0 { // Sunday is 0 and 7
		bits[4] |= 1
	}
	return Expression{bits[0], bits[1], bits[2], bits[3], bits[4], strings.HasPrefix(parts[2], "*"), strings.HasPrefix(parts[4], "*")}, nil
}

func (f field) parse(text string) (uint64, error) {
	var set uint64
	for part := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			var err error
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > f.high {
				return 0, fmt.Errorf("the step must be a number from 1 to %d", f.high)
			}
		}
		low, high := f.low, f.high
		if span != "*" {
			from, to, ranged := strings.Cut(span, "-")
			var err error
			if low, err = f.value(from); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if high, err = f.value(to); err != nil {
					return 0, err
				}
			case !stepped:
				high = low
			}
			if low > high {
				return 0, errors.New("the range must not end before it begins")
			}
		}
		for v := low; v <= high; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

func (f field) value(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(name, text) {
			return f.low + i, nil
		}
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < f.low || v > f.high || text[0] == '+' {
		return 0, fmt.Errorf("it must be from %d to %d", f.low, f.high)
	}
	return v, nil
}

// horizon is how far Next looks: 29 February on a given weekday comes back within 40 years.
const horizon = 41

// Next returns the first moment after another one at which the expression is due, in a time zone; the zero time if it never
// is. A time that a change of clocks skips is due when the clock has passed it.
func (e Expression) Next(after time.Time, zone *time.Location) time.Time {
	t := after.In(zone).Truncate(time.Minute).Add(time.Minute)
	for last := t.Year() + horizon; t.Year() <= last; {
		switch {
		case e.month&(1<<int(t.Month())) == 0:
			t = later(t, time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, zone))
		case !e.fits(t):
			t = later(t, time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, zone))
		case e.hour&(1<<t.Hour()) == 0:
			t = later(t, time.Date(t.Year(), t.Month(), t.Day(), t.Hour()+1, 0, 0, 0, zone))
		case e.minute&(1<<t.Minute()) == 0:
			t = t.Add(time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

// later is the other time, or at least a minute more: where clocks change, a date may stand for an earlier moment.
func later(t, other time.Time) time.Time {
	if other.After(t) {
		return other
	}
	return t.Add(time.Minute)
}

// fits reports whether the expression is due on a day.
func (e Expression) fits(t time.Time) bool {
	day, weekday := e.day&(1<<t.Day()) != 0, e.weekday&(1<<int(t.Weekday())) != 0
	if e.anyDay || e.anyWeekday {
		return day && weekday
	}
	return day || weekday
}
