// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Measurements beside an earlier commit, with their units. A lower figure is better.
const (
	joinsCPU    = "joins: CPU seconds"
	joinsWall   = "joins: seconds"
	upWall      = "up: seconds"
	planeMemory = "plane: MiB"
)

// speedMeasures are in the order in which they are printed.
var speedMeasures = []string{joinsCPU, joinsWall, upWall, planeMemory}

// highestRatio is what every measure may have without an explanation.
const highestRatio = 1.25

// figures are those of one turn, by measure.
type figures map[string]float64

// speedRatio is what a measure has become beside an earlier commit.
type speedRatio struct {
	measure      string
	earlier, now float64
}

// ratio is rounded as it is printed, so that what is printed is what is judged.
func (r speedRatio) ratio() float64 { return math.Round(100*r.now/r.earlier) / 100 }

// compare compares the least of the turns of each measure.
func compare(earlier, now []figures, measures []string) []speedRatio {
	least := func(turns []figures, measure string) float64 {
		low := math.Inf(1)
		for _, turn := range turns {
			low = min(low, turn[measure])
		}
		return low
	}
	var all []speedRatio
	for _, measure := range measures {
		all = append(all, speedRatio{measure, least(earlier, measure), least(now, measure)})
	}
	return all
}

// allowance is a higher ratio that a measure may have for a while.
type allowance struct {
	ratio float64
	since time.Time
	why   string
}

const (
	allowedHeading = "### Allowed ratios"
	allowedHeader  = "| measure | ratio | since | why |"
)

// parseAllowed reads the table of allowed ratios from a page. Anything in it that is not understood is an error: a
// limit that nobody knows limits nothing.
func parseAllowed(page string) (map[string]allowance, error) {
	_, section, ok := strings.Cut(page, "\n"+allowedHeading+"\n")
	if !ok {
		return nil, fmt.Errorf("%s has no section %q", allowedPage, allowedHeading)
	}
	var rows []string
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || len(rows) > 0 && !strings.HasPrefix(line, "|") {
			break
		}
		if strings.HasPrefix(line, "|") {
			rows = append(rows, line)
		}
	}
	if len(rows) < 2 || rows[0] != allowedHeader || rows[1] != "|---|---|---|---|" {
		return nil, fmt.Errorf("%s: the table of %q must begin with the lines %q and %q", allowedPage, allowedHeading, allowedHeader, "|---|---|---|---|")
	}
	allowed := map[string]allowance{}
	var problems []error
	for _, row := range rows[2:] {
		measure, a, err := parseAllowance(row)
		if _, again := allowed[measure]; err == nil && again {
			err = errors.New("the measure has a line already")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: allowed ratio %q: %w", allowedPage, row, err))
		}
		allowed[measure] = a
	}
	return allowed, errors.Join(problems...)
}

func parseAllowance(row string) (measure string, a allowance, err error) {
	cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(row, "|"), "|"), "|")
	if len(cells) != 4 || !strings.HasSuffix(row, "|") {
		return "", allowance{}, fmt.Errorf("it has %d cells, not 4", len(cells))
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	measure = cells[0]
	if !slices.Contains(speedMeasures, measure) {
		return measure, a, fmt.Errorf("unknown measure %q: must be one of %q", measure, speedMeasures)
	}
	if a.ratio, err = strconv.ParseFloat(cells[1], 64); err != nil || !(a.ratio > highestRatio) || math.IsInf(a.ratio, 0) {
		return measure, a, fmt.Errorf("invalid ratio %q: must be a number above %.2f, which every measure may have", cells[1], highestRatio)
	}
	if a.since, err = time.Parse(time.DateOnly, cells[2]); err != nil {
		return measure, a, fmt.Errorf("invalid date %q: must be like 2026-11-24", cells[2])
	}
	if a.why = cells[3]; a.why == "" {
		return measure, a, errors.New("it has no reason")
	}
	return measure, a, nil
}

// limit is the highest ratio that a measure may have.
func limit(measure string, allowed map[string]allowance) float64 {
	if a, ok := allowed[measure]; ok {
		return a.ratio
	}
	return highestRatio
}

// judge returns an error for each measure whose ratio is too high, or is no ratio.
func judge(ratios []speedRatio, allowed map[string]allowance) error {
	var problems []error
	for _, r := range ratios {
		switch highest := limit(r.measure, allowed); {
		case !(r.ratio() > 0) || math.IsInf(r.ratio(), 0): // also if it is no number
			problems = append(problems, fmt.Errorf("%s: measured %v and %v, which give no ratio", r.measure, r.earlier, r.now))
		case r.ratio() > highest:
			problems = append(problems, fmt.Errorf("%s: %.2f times %.7s, more than %.2f: take it back, or allow and explain it under %q of %s",
				r.measure, r.ratio(), earlierCommit, highest, allowedHeading, allowedPage))
		}
	}
	return errors.Join(problems...)
}

// printRatios prints a table of what was measured and what it may be.
func printRatios(stdout io.Writer, ratios []speedRatio, allowed map[string]allowance) error {
	w := tabwriter.NewWriter(stdout, 0, 8, 3, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "least of %d turns\t%.7s\tnow\tratio\tat most\t\n", speedTurns, earlierCommit)
	for _, r := range ratios {
		_, _ = fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t\n", r.measure, r.earlier, r.now, r.ratio(), limit(r.measure, allowed))
	}
	return w.Flush()
}
