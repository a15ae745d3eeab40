// SPDX-License-Identifier: Apache-2.0

// Causetable prints a line for each cause of docs/causes.md: whether muster explain names it, after how many seconds
// a story saw it named that had it happen for real, and from where the evidence came:
//
//	causetable LOG
//
// The log is that of make stories, or what go test -v prints of TestExplain. It fails if a cause has a story that did not
// see it named in the log.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"muster.dev/muster/internal/explain/cause"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "causetable:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("want one argument: the log of the stories")
	}
	log, err := os.ReadFile(args[0]) //nolint:gosec // G703: the caller names the log
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	catalogue, err := cause.Default()
	if err != nil {
		return err
	}
	return table(out, catalogue.All(), rows(string(log)))
}

// row is one time that a story saw a cause named.
type row struct {
	kind    string // of the object that was explained
	seconds float64
	sources string // of the evidence, by commas
}

// said is what TestExplain logs.
var said = regexp.MustCompile(`explained (M-[A-Z]+-[0-9]{2,3}) of a ([a-z]+) after ([0-9.]+) s from ([a-z,-]+)`)

// rows are those of a log, by the cause.
func rows(log string) map[cause.ID][]row {
	all := map[cause.ID][]row{}
	for _, found := range said.FindAllStringSubmatch(log, -1) {
		seconds, err := strconv.ParseFloat(found[3], 64)
		if err != nil {
			continue
		}
		all[cause.ID(found[1])] = append(all[cause.ID(found[1])], row{found[2], seconds, found[4]})
	}
	return all
}

// table prints the causes. The error names those that a story was to have, and that the log has not.
func table(out io.Writer, causes []cause.Cause, rows map[cause.ID][]row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "CAUSE\tNAMED\tSECONDS\tOF\tFROM\tWHAT IT IS") // the error comes with Flush
	seen := 0
	var missing []string
	for _, c := range causes {
		state := map[cause.State]string{cause.Named: "yes", cause.Impossible: "cannot be here", cause.Later: "not yet"}[c.State]
		found := rows[c.ID]
		if len(found) == 0 {
			from := "-"
			if c.State == cause.Named {
				from = sources(c)
			}
			if c.InStory() {
				missing = append(missing, string(c.ID))
				state = "not seen"
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\t-\t-\t%s\t%s\n", c.ID, state, from, c.Title)
			continue
		}
		seen++
		for _, r := range found {
			_, _ = fmt.Fprintf(w, "%s\tinjected\t%.1f\t%s\t%s\t%s\n", c.ID, r.seconds, r.kind, r.sources, c.Title)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%d of %d causes happened for real and were named\n", seen, len(causes))
	if len(missing) > 0 {
		err = errors.Join(err, fmt.Errorf("the log does not have %s", strings.Join(missing, ", ")))
	}
	return err
}

// sources are those of a cause's signals.
func sources(c cause.Cause) string {
	var all []string
	if c.Writer != "" {
		all = append(all, "identifier")
	}
	for _, s := range c.Signals {
		all = append(all, string(s.Source))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ",")
}
