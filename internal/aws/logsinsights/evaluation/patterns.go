// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"math"
	"time"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/logpattern"
	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// patterns groups texts by their structure.
type patterns struct {
	command *logsinsights.Pattern
	now     time.Time
	budget  *budget
	counter logpattern.Counter
}

func newPatterns(c *logsinsights.Pattern, now time.Time, b *budget) *patterns {
	return &patterns{command: c, now: now, budget: b}
}

func (t *patterns) add(r *row) error {
	value := scope{row: r, now: t.now}.compute(t.command.Source)
	if value.IsNull() {
		return nil
	}
	text := value.String()
	if t.counter.Add(text) {
		return t.budget.group(2 * len(text))
	}
	return nil
}

func (t *patterns) rows() []*row {
	found := t.counter.Patterns()
	total := 0
	for _, p := range found {
		total += p.Count
	}
	rows := make([]*row, len(found))
	for i, p := range found {
		r := &row{order: i}
		r.set("@pattern", logvalue.Text(p.Text))
		r.set("@ratio", logvalue.Number(math.Round(float64(p.Count)/float64(total)*10000)/10000))
		r.set("@sampleCount", logvalue.Number(float64(p.Count)))
		r.set("@severityLabel", logvalue.Text(p.Severity))
		rows[i] = r
	}
	return rows
}
