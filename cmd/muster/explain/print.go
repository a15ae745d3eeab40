// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/platform/termsafe"
)

// overview is all that is wrong, with what could not be looked at.
func (q *question) overview(reports []diagnosis.Report) diagnosis.Overview {
	all := diagnosis.Overview{Reports: reports}
	if all.Reports == nil {
		all.Reports = []diagnosis.Report{}
	}
	for _, name := range q.clusters() {
		all.Unseen = slices.Concat(all.Unseen, q.snapshot.Of[name].Unseen, q.snapshot.Of[name].Blind)
	}
	return all
}

// print prints all that is wrong.
func (e *explainCommand) print(q *question, reports []diagnosis.Report) error {
	all := q.overview(reports)
	if e.output != terminal.FormatTable {
		return terminal.PrintData(e.Out, e.output, all)
	}
	for i, r := range reports {
		if i > 0 {
			if _, err := fmt.Fprintln(e.Out); err != nil {
				return err
			}
		}
		if err := Tell(e.Out, r); err != nil {
			return err
		}
	}
	var b strings.Builder
	if len(reports) == 0 {
		b.WriteString("Nothing is wrong that muster can see.\n")
	}
	unseen(&b, slices.DeleteFunc(all.Unseen, func(u diagnosis.Unseen) bool { // a report has told it
		return slices.ContainsFunc(reports, func(r diagnosis.Report) bool { return slices.Contains(r.Unseen, u) })
	}))
	_, err := io.WriteString(e.Out, b.String())
	return err
}

// Tell prints a report for people.
func Tell(out io.Writer, r diagnosis.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s\n", r.Kind, termsafe.Line(r.Name), inWords(r))
	for _, f := range r.Causes {
		fmt.Fprintf(&b, "\n%s  %s\n  %s\n", f.Cause, f.Title, f.Sentence)
		fmt.Fprintf(&b, "  Fix: %s\n  Evidence:\n", f.Fix)
		evidenceOf(&b, f.Evidence)
		for _, id := range f.Consequences {
			fmt.Fprintf(&b, "  It has %s as a consequence.\n", id)
		}
	}
	if len(r.Other) > 0 {
		b.WriteString("\nNo cause of the catalogue explains this:\n")
		evidenceOf(&b, r.Other)
	}
	if len(r.Standing) > 0 {
		b.WriteString("\nWhat waits, or is left:\n")
		evidenceOf(&b, r.Standing)
	}
	if len(r.Steps) > 0 {
		b.WriteString("\nSteps:\n")
	}
	for _, s := range r.Steps {
		at := ""
		if !s.Time.IsZero() {
			at = "  " + s.Time.UTC().Format("15:04:05.000Z")
		}
		fmt.Fprintf(&b, "  %-20s%s%s\n", s.Step, s.State, at)
	}
	unseen(&b, r.Unseen)
	_, err := io.WriteString(out, b.String())
	return err
}

// inWords is the verdict of a report.
func inWords(r diagnosis.Report) string {
	switch r.Verdict {
	case diagnosis.Healthy:
		return "nothing is wrong"
	case diagnosis.OnItsWay:
		return "it is on its way, and nothing is wrong so far"
	case diagnosis.NotKnown:
		return "something is wrong, and the cause is not known"
	case diagnosis.Found:
		if len(r.Causes) > 1 {
			return fmt.Sprintf("%d causes are known", len(r.Causes))
		}
		return "the cause is known"
	}
	return string(r.Verdict)
}

// evidenceOf prints evidence: where and when, what, and how to see it.
func evidenceOf(b *strings.Builder, evidence []diagnosis.Evidence) {
	for _, e := range evidence {
		when := ""
		if !e.Time.IsZero() {
			when = e.Time.UTC().Format(time.TimeOnly+"Z") + " "
		}
		fmt.Fprintf(b, "    %s%s %s", when, e.Source, termsafe.Line(e.Object))
		if e.Code != "" {
			fmt.Fprintf(b, " %s", termsafe.Line(e.Code))
		}
		if e.Text != "" {
			fmt.Fprintf(b, ": %s", termsafe.Line(strings.TrimSpace(e.Text)))
		}
		b.WriteString("\n")
		if e.Look != "" {
			fmt.Fprintf(b, "      see: %s\n", termsafe.Line(e.Look))
		}
	}
}

// unseen prints what could not be looked at.
func unseen(b *strings.Builder, all []diagnosis.Unseen) {
	if len(all) > 0 {
		b.WriteString("\nNot seen:\n")
	}
	for _, u := range all {
		fmt.Fprintf(b, "  %s: %s\n", termsafe.Line(u.What), termsafe.Line(u.Why))
	}
}
