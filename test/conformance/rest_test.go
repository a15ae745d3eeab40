// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func restOutcome(t *testing.T) outcome {
	t.Helper()
	o, err := parseReport([]byte(`[{"SpecReports": [
		{"LeafNodeType": "It", "LeafNodeText": "listens", "ContainerHierarchyTexts": ["[sig-network]", "dummy"], "State": "failed", "Failure": {"Message": "no such link"}},
		{"LeafNodeType": "It", "LeafNodeText": "mounts", "ContainerHierarchyTexts": ["[sig-storage]"], "State": "timedout", "Failure": {"Message": "late"}},
		{"LeafNodeType": "It", "LeafNodeText": "a", "State": "skipped", "Failure": {"Message": "needs another provider"}},
		{"LeafNodeType": "It", "LeafNodeText": "b", "State": "skipped", "Failure": {"Message": "needs three nodes\nand more"}},
		{"LeafNodeType": "It", "LeafNodeText": "c", "State": "skipped", "Failure": {"Message": "needs another provider"}},
		{"LeafNodeType": "It", "LeafNodeText": "e", "State": "skipped", "Failure": {"Message": "expected an API group, got ` + strings.Repeat("v1.APIGroup{}, ", 20) + `"}},
		{"LeafNodeType": "It", "LeafNodeText": "d", "State": "passed"}
	]}]`))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestKnownLimits(t *testing.T) {
	o := restOutcome(t)
	o.limited([]limit{{regexp.MustCompile(`dummy listens$`), "The kernel has no dummy links."}})
	if err := o.problem(true); err == nil || err.Error() != "specs that failed: 1" {
		t.Errorf("problem %v, want the other spec's", err)
	}
	want, err := os.ReadFile("testdata/rest.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := o.text(time.Minute, true) + "\n"; got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	o.limited([]limit{{regexp.MustCompile(`.`), "all"}})
	if err := o.problem(true); err != nil {
		t.Errorf("problem %v where each failure has its reason", err)
	}
}

func TestSkipsMayBeFailures(t *testing.T) {
	o := outcome{skipped: restOutcome(t).skipped, passed: restOutcome(t).passed}
	if err := o.problem(false); err == nil {
		t.Error("specs that skipped themselves are no problem")
	}
	if err := o.problem(true); err != nil {
		t.Errorf("specs that may skip themselves: %v", err)
	}
}
