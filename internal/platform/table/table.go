// SPDX-License-Identifier: Apache-2.0

// Package table prints rows under headings the way kubectl does, also when rows keep coming.
package table

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"muster.dev/muster/internal/platform/termsafe"
)

// gap is the number of blanks between columns.
const gap = 3

// Table gathers rows and prints them in aligned columns. Columns keep their widths from one Flush to the next, so rows
// that come later stand under the same headings.
type Table struct {
	out    io.Writer
	rows   [][]string
	widths []int
}

// New makes a table with headings. Without headings the table has no heading line. A column may do without a heading
// ("").
func New(out io.Writer, headings ...string) *Table {
	t := &Table{out: out}
	if len(headings) > 0 {
		t.rows = append(t.rows, headings)
	}
	return t
}

// Row adds a row. An empty cell is shown as <none>, and characters that a terminal would act on are escaped.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		if cell == "" {
			cell = "<none>"
		}
		row[i] = termsafe.Line(cell)
	}
	t.rows = append(t.rows, row)
}

// Flush prints the rows added since the last one.
func (t *Table) Flush() error {
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], termsafe.Width(cell))
		}
	}
	out := bufio.NewWriter(t.out)
	for _, row := range t.rows {
		for i, cell := range row {
			pad := 0
			if i < len(row)-1 { // nothing comes after the last column
				pad = t.widths[i] + gap - termsafe.Width(cell)
			}
			_, _ = out.WriteString(cell + strings.Repeat(" ", pad)) // the first error comes from Flush
		}
		_ = out.WriteByte('\n')
	}
	t.rows = t.rows[:0]
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing table: %w", err)
	}
	return nil
}
