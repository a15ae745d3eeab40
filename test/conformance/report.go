// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// suiteReport is as much of ginkgo's JSON report as is told: github.com/onsi/ginkgo/v2/types.Report. A file holds a
// list of reports.
type suiteReport struct {
	SpecReports []spec
}

// spec is one node of a suite. Specs that nobody chose are in the report, too, as skipped.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	RunTime                 time.Duration
	Failure                 struct {
		Message        string
		ForwardedPanic string
		Location       struct {
			FileName   string
			LineNumber int
		}
	}
}

func (s spec) name() string {
	if s.LeafNodeText == "" { // nodes around the whole suite have no text
		return s.LeafNodeType
	}
	return strings.Join(append(slices.Clone(s.ContainerHierarchyTexts), s.LeafNodeText), " ")
}

// why is the first line of what a spec that did not pass has to say.
func (s spec) why() string {
	message, _, _ := strings.Cut(strings.TrimSpace(s.Failure.Message), "\n")
	if s.Failure.ForwardedPanic != "" {
		message += ": " + s.Failure.ForwardedPanic
	}
	return message
}

// outcome is what came of the specs that were chosen.
type outcome struct {
	passed  []spec
	failed  []spec // whatever else ended them: failed, timed out, panicked, interrupted, aborted
	skipped []spec // by themselves, with a reason
	beyond  []impossible
}

func readReport(path string) (outcome, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return outcome{}, fmt.Errorf("reading ginkgo's report: %w", err)
	}
	o, err := parseReport(text)
	if err != nil {
		return outcome{}, fmt.Errorf("reading ginkgo's report %s: %w", path, err)
	}
	return o, nil
}

func parseReport(text []byte) (outcome, error) {
	var suites []suiteReport
	if err := json.Unmarshal(text, &suites); err != nil {
		return outcome{}, err
	}
	var o outcome
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			o.count(s)
		}
	}
	for _, list := range [][]spec{o.passed, o.failed, o.skipped} {
		slices.SortStableFunc(list, func(a, b spec) int { return cmp.Compare(b.RunTime, a.RunTime) })
	}
	return o, nil
}

func (o *outcome) count(s spec) {
	isSpec := s.LeafNodeType == "It"
	switch {
	case s.State == "passed" && isSpec:
		o.passed = append(o.passed, s)
	case s.State == "skipped" && isSpec && s.Failure.Message != "":
		o.skipped = append(o.skipped, s)
	case s.State == "passed", s.State == "skipped", s.State == "pending", s.State == "":
		// Set-up that went well, and specs that were not chosen.
	default:
		o.failed = append(o.failed, s)
	}
}

// problem is nil if every spec that was chosen passed, or skipped itself where it may.
func (o outcome) problem(maySkip bool) error {
	switch {
	case len(o.failed) > 0:
		return fmt.Errorf("specs that failed: %d", len(o.failed))
	case len(o.skipped) > 0 && !maySkip:
		return fmt.Errorf("specs that skipped themselves: %d", len(o.skipped))
	case len(o.passed) == 0:
		return errors.New("no spec ran: nothing has this name and these labels")
	}
	return nil
}

// text says how many specs came to which end, how long those took that failed and why, and which took longest. Where
// specs may skip themselves, it counts their reasons.
func (o outcome) text(took time.Duration, maySkip bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d specs in %s: %d passed, %d failed, ",
		len(o.passed)+len(o.failed)+len(o.skipped)+len(o.beyond), took.Round(time.Second), len(o.passed), len(o.failed))
	if maySkip {
		fmt.Fprintf(&b, "%d failed for what this kind of host cannot do, ", len(o.beyond))
	}
	fmt.Fprintf(&b, "%d skipped themselves\n", len(o.skipped))
	list(&b, "Failed", o.failed, true)
	listBeyond(&b, o.beyond)
	if maySkip {
		listReasons(&b, o.skipped)
	} else {
		list(&b, "Skipped themselves", o.skipped, true)
	}
	list(&b, "Took longest", o.passed[:min(5, len(o.passed))], false)
	return strings.TrimSuffix(b.String(), "\n")
}

func list(b *strings.Builder, title string, specs []spec, why bool) {
	if len(specs) == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n", title)
	for _, s := range specs {
		fmt.Fprintf(b, "  %s (%s)\n", s.name(), s.RunTime.Round(100*time.Millisecond))
		if reason := s.why(); why && reason != "" {
			fmt.Fprintf(b, "      %s (%s:%d)\n", reason, s.Failure.Location.FileName, s.Failure.Location.LineNumber)
		}
	}
}
