// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The table of the tree, as a run would write it again.
const tableFile = "../../docs/karpenter-suites.tsv"

// A run adds to the table: results of earlier runs stay, those of suites that are not built, too, and a later result counts.
func TestTable(t *testing.T) {
	t.Parallel()
	o := options{table: filepath.Join(t.TempDir(), "suites.tsv")}
	kept, results, err := readTable(o.table)
	if err != nil || len(kept) != 0 || results == nil {
		t.Errorf("before the first run: %v, %v, %v", kept, results, err)
	}
	earlier := []suite{{"provider-drift", []string{"Drift b", "Drift a", "Drift gone"}}, {"core-regression", []string{"CRD a"}}, {"provider-ipv6", []string{"IPv6 a"}}}
	results = map[string]map[string]result{
		"provider-drift":  {"Drift a": {"failed", "late", 3.2, "2026-11-30", "v1.15.0"}, "Drift gone": {State: "passed"}},
		"core-regression": {"CRD a": {"passed", "", 7, "2026-11-30", "v1.15.0"}},
	}
	if err := o.keep(earlier, results); err != nil {
		t.Fatal(err)
	}
	kept, results, err = readTable(o.table)
	if err != nil {
		t.Fatal(err)
	}
	results["provider-drift"]["Drift a"] = result{"passed", "", 4, "2026-12-01", "v1.15.1"}
	if err := o.keep(with(kept, []suite{{"provider-drift", []string{"Drift a", "Drift b", "Drift c"}}}), results); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(o.table)
	want := columns + "\n" +
		"core-regression\tCRD a\tpassed\t7\t2026-11-30\tv1.15.0\t\n" +
		"provider-drift\tDrift a\tpassed\t4\t2026-12-01\tv1.15.1\t\n" +
		"provider-drift\tDrift b\tnot run\t\t\t\t\n" +
		"provider-drift\tDrift c\tnot run\t\t\t\t\n" +
		"provider-ipv6\tIPv6 a\tnot applicable\t\t\t\tclusters have IPv4 addresses alone\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	for text, says := range map[string]string{
		"suite\tspec\n": "line 1 of", columns + "\nprovider-drift\tDrift a\n": "line 2 of", columns + "\na\tb\tpassed\tx\t\t\t\n": "the seconds in line 2",
	} {
		if err := os.WriteFile(o.table, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readTable(o.table); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The table of the tree is what the limits and its own results make, and docs/karpenter-suites.md has its counts.
func TestDocsHaveTheCounts(t *testing.T) {
	t.Parallel()
	suites, results, err := readTable(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(tableFile)
	if again := table(suites, limits(), results); err != nil || !bytes.Equal(raw, again) {
		t.Errorf("%s is not as a run would write it, which make karpenter-suites ARGS=-list does: %v", tableFile, err)
	}
	docs, err := os.ReadFile("../../docs/karpenter-suites.md")
	if err != nil {
		t.Fatal(err)
	}
	say := func(line string) {
		if !strings.Contains(string(docs), "\n"+line+"\n") {
			t.Errorf("docs/karpenter-suites.md has not the line\n%s", line)
		}
	}
	row := func(name string, c tally) {
		say(fmt.Sprintf("| %s | %d | %d | %d | %d |", name, c.Passed, c.Failed, c.NotApplicable, c.NotRun))
	}
	for _, s := range suites {
		row(s.name, count([]suite{s}, limits(), results))
	}
	row("all suites", count(suites, limits(), results))
}
