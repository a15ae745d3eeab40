// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/internal/platform/atomicfile"
)

// columns are the names of the columns, which the table begins with. Each spec has a row.
const columns = "suite\tspec\tresult\tseconds\tdate\tKarpenter\twords"

// The table says these of specs that have no result.
const (
	notApplicable = "not applicable"
	notRun        = "not run"
)

// readTable reads the specs and the latest results that the table has; neither, if there is none.
func readTable(path string) (suites []suite, results map[string]map[string]result, err error) {
	results = map[string]map[string]result{}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, results, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading earlier results: %w", err)
	}
	head, rest, _ := strings.Cut(string(raw), "\n")
	if head != columns {
		return nil, nil, fmt.Errorf("reading earlier results: line 1 of %s is not the names of its columns", path)
	}
	n := 1
	for line := range strings.Lines(rest) {
		n++
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != strings.Count(columns, "\t")+1 {
			return nil, nil, fmt.Errorf("reading earlier results: line %d of %s has %d columns", n, path, len(cells))
		}
		if len(suites) == 0 || suites[len(suites)-1].name != cells[0] {
			suites = append(suites, suite{name: cells[0]})
			results[cells[0]] = map[string]result{}
		}
		of := &suites[len(suites)-1]
		of.specs = append(of.specs, cells[1])
		if cells[2] == notApplicable || cells[2] == notRun {
			continue
		}
		seconds, err := strconv.ParseFloat(cells[3], 64)
		if err != nil {
			return nil, nil, fmt.Errorf("reading earlier results: the seconds in line %d of %s: %w", n, path, err)
		}
		results[cells[0]][cells[1]] = result{State: cells[2], Seconds: seconds, Date: cells[4], Karpenter: cells[5], Message: cells[6]}
	}
	return suites, results, nil
}

// table has a row for each spec, by suite and text.
func table(suites []suite, all []limit, results map[string]map[string]result) []byte {
	var out bytes.Buffer
	fmt.Fprintln(&out, columns)
	for _, s := range slices.SortedFunc(slices.Values(suites), func(a, b suite) int { return cmp.Compare(a.name, b.name) }) {
		for _, spec := range slices.Sorted(slices.Values(s.specs)) {
			why := whyNot(all, s.name, spec)
			is, run := results[s.name][spec]
			switch {
			case why != "":
				fmt.Fprintf(&out, "%s\t%s\t%s\t\t\t\t%s\n", s.name, spec, notApplicable, why)
			case !run:
				fmt.Fprintf(&out, "%s\t%s\t%s\t\t\t\t%s\n", s.name, spec, notRun, waits(s.name, spec))
			default:
				fmt.Fprintf(&out, "%s\t%s\t%s\t%.0f\t%s\t%s\t%s\n", s.name, spec, is.State, is.Seconds, is.Date, is.Karpenter, is.Message)
			}
		}
	}
	return out.Bytes()
}

// waits says why a spec has not run yet, if more is known than that nobody ran it.
func waits(suite, spec string) string {
	if gib := memory(suite, spec); gib > 0 {
		return fmt.Sprintf("its machines have %d GiB at once", gib)
	}
	return ""
}

// with are the suites that there are now, and those of the table that are not built.
func with(kept, built []suite) []suite {
	all := slices.Clone(built)
	for _, k := range kept {
		if !slices.ContainsFunc(built, func(b suite) bool { return b.name == k.name }) {
			all = append(all, k)
		}
	}
	return all
}

// keep writes the table.
func (o options) keep(suites []suite, results map[string]map[string]result) error {
	if err := atomicfile.Write(o.table, table(suites, limits(), results), 0o644); err != nil {
		return fmt.Errorf("keeping results: %w", err)
	}
	return nil
}
