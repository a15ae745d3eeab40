// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// longest is how many of the stories that took longest are named.
const longest = 10

// summary prints what ran and for how long, what did not and why, and what took longest.
func summary(out io.Writer, outcomes []outcome, took time.Duration) {
	var ran, not []outcome
	for _, o := range outcomes {
		if o.notRun == "" {
			ran = append(ran, o)
		} else {
			not = append(not, o)
		}
	}
	fmt.Fprintf(out, "%d stories ran in %s, %d did not\n", len(ran), took.Round(time.Second), len(not))
	for _, o := range ran {
		result := ""
		if o.failed {
			result = "  FAILED"
		}
		fmt.Fprintf(out, "  ran      %-44s %4d s  %s%s\n", o.name, seconds(o.took), o.why, result)
	}
	for _, o := range not {
		fmt.Fprintf(out, "  not run  %-44s %s\n", o.name, o.notRun)
	}
	slices.SortFunc(ran, func(a, b outcome) int { return cmp.Compare(b.took, a.took) })
	if len(ran) > longest {
		fmt.Fprintln(out, "The longest:")
		for _, o := range ran[:longest] {
			fmt.Fprintf(out, "  %4d s  %s\n", seconds(o.took), o.name)
		}
	}
}

func seconds(d time.Duration) int { return int(d.Round(time.Second).Seconds()) }
