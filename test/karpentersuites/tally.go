// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
)

// tally counts specs. All is the sum of the others.
type tally struct {
	All, Passed, Failed, NotApplicable, NotRun int
	// Failures are the failed specs, each with its suite and message.
	Failures []string
	// Reasons counts the specs that are not applicable by their reasons.
	Reasons map[string]int
}

// suite is one suite: its name, such as provider-drift, and its specs in their order.
type suite struct {
	name  string
	specs []string
}

// count counts the specs of suites, by the results that are there: suite, spec, result.
func count(suites []suite, all []limit, results map[string]map[string]result) tally {
	t := tally{Reasons: map[string]int{}}
	for _, s := range suites {
		for _, spec := range s.specs {
			t.All++
			why := whyNot(all, s.name, spec)
			is, run := results[s.name][spec]
			switch {
			case why == "" && run && is.State == "skipped": // the spec itself says that it is not about this cluster
				t.NotApplicable++
				t.Reasons["it skips itself: "+cmp.Or(is.Message, "no reason given")]++
			case why != "":
				t.NotApplicable++
				t.Reasons[why]++
			case !run:
				t.NotRun++
			case is.State == "passed":
				t.Passed++
			default:
				t.Failed++
				t.Failures = append(t.Failures, fmt.Sprintf("%s: %s: %s: %s", s.name, spec, is.State, is.Message))
			}
		}
	}
	return t
}

// print prints a tally.
func (t tally) print(out io.Writer) {
	for _, failure := range t.Failures {
		_, _ = fmt.Fprintln(out, "failed:", failure)
	}
	reasons := slices.SortedFunc(maps.Keys(t.Reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.Reasons[b], t.Reasons[a]), cmp.Compare(a, b))
	})
	for _, why := range reasons {
		_, _ = fmt.Fprintf(out, "not applicable: %3d, as %s\n", t.Reasons[why], why)
	}
	_, _ = fmt.Fprintf(out, "%d specs: %d passed, %d failed, %d not applicable, %d not run yet\n", t.All, t.Passed, t.Failed, t.NotApplicable, t.NotRun)
}

// part returns those of the specs of a suite that belong to a part of all: each spec belongs to one part.
func part(suites []suite, number, of int) []suite {
	chosen, n := make([]suite, 0, len(suites)), 0
	for _, s := range suites {
		c := suite{name: s.name}
		for _, spec := range s.specs {
			if n%of == number-1 {
				c.specs = append(c.specs, spec)
			}
			n++
		}
		chosen = append(chosen, c)
	}
	return chosen
}

// left returns the specs that have not ended, in their order.
func left(specs []string, ended map[string]result) (rest []string) {
	for _, spec := range specs {
		if _, ok := ended[spec]; !ok {
			rest = append(rest, spec)
		}
	}
	return rest
}
