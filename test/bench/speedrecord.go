// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// speedHeader is the first line of the file that keeps ratios.
const speedHeader = "date\tcommit\tbeside\tmeasure\tratio\n"

// record returns the file that keeps ratios with those of a commit, in place of what it had of that commit. The date is
// the commit's.
func record(kept, date, commit string, ratios []speedRatio) (string, error) {
	rest, ok := strings.CutPrefix(kept, speedHeader)
	if !ok {
		return "", fmt.Errorf("it does not begin with the line %q", speedHeader)
	}
	commit = commit[:12]
	var b strings.Builder
	b.WriteString(speedHeader)
	for line := range strings.Lines(rest) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 5 {
			return "", fmt.Errorf("the line %q has %d cells, not 5", line, len(cells))
		}
		if cells[1] != commit {
			b.WriteString(line)
		}
	}
	for _, r := range ratios {
		fmt.Fprintf(&b, "%s\t%s\t%.12s\t%s\t%.2f\n", date, commit, earlierCommit, r.measure, r.ratio())
	}
	return b.String(), nil
}
