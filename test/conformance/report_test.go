// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// testdata/report.json is what ginkgo v2.28.1 wrote, run by two processes, for a suite with a spec of each kind.
func TestReport(t *testing.T) {
	text, err := os.ReadFile("testdata/report.json")
	if err != nil {
		t.Fatal(err)
	}
	o, err := parseReport(text)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/report.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := o.text(90*time.Second+time.Millisecond, false) + "\n"; got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestReportOfAnotherForm(t *testing.T) {
	if _, err := parseReport([]byte(`{"SpecReports": []}`)); err == nil {
		t.Error("a report that is no list of suites was taken")
	}
	if _, err := readReport("testdata/nothing.json"); err == nil {
		t.Error("a report that is not there was taken")
	}
}

func TestProblem(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want string // "" is none
	}{
		"passed":                  {`{"LeafNodeType": "It", "State": "passed"}`, ""},
		"failed":                  {`{"LeafNodeType": "It", "State": "failed"}`, "specs that failed: 1"},
		"timed out":               {`{"LeafNodeType": "It", "State": "timedout"}`, "specs that failed: 1"},
		"interrupted":             {`{"LeafNodeType": "It", "State": "interrupted"}`, "specs that failed: 1"},
		"set-up failed":           {`{"LeafNodeType": "SynchronizedBeforeSuite", "State": "failed"}`, "specs that failed: 1"},
		"skipped itself":          {`{"LeafNodeType": "It", "State": "skipped", "Failure": {"Message": "needs a provider"}}`, "specs that skipped themselves: 1"},
		"not chosen":              {`{"LeafNodeType": "It", "State": "skipped"}`, "no spec ran"},
		"pending":                 {`{"LeafNodeType": "It", "State": "pending"}`, "no spec ran"},
		"set-up alone":            {`{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"}`, "no spec ran"},
		"set-up that did nothing": {`{"LeafNodeType": "AfterSuite"}`, "no spec ran"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseReport([]byte(`[{"SpecReports": [` + c.spec + `]}]`))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := o.problem(false); err != nil {
				got = err.Error()
			}
			if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("problem %q, want %q", got, c.want)
			}
		})
	}
}
