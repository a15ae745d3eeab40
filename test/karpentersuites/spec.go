// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// maxMessage is how many bytes of a failure's words are kept.
const maxMessage = 200

// suiteReport is what is read of a report of ginkgo (types.Report).
type suiteReport struct {
	SpecReports []specReport
}

// specReport is what is read of the report about a spec (types.SpecReport).
type specReport struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	RunTime                 int64 // nanoseconds
	Failure                 struct{ Message, FailureNodeType string }
}

// text is the full text of a spec, as ginkgo's focus matches it.
func (s specReport) text() string {
	return strings.Join(append(slices.Clone(s.ContainerHierarchyTexts), s.LeafNodeText), " ")
}

// ended is the state of the spec itself. The end of the suite's time says nothing of the spec that it interrupts. An AfterAll is its container's, and ginkgo blames the last spec for it: that of the
// scheduling suites asks that specs of all labels were run, and they are in parts here.
func (s specReport) ended() string {
	if s.State == "failed" && s.Failure.FailureNodeType == "AfterAll" {
		return "passed"
	}
	if s.State == "timedout" && strings.HasPrefix(s.Failure.Message, "A suite timeout") {
		return "interrupted"
	}
	return s.State
}

// message is how the words of a failure begin, in one line of some 200 characters: "Expected" alone, gomega's first line, says nothing.
func (s specReport) message() string {
	words := strings.Join(strings.Fields(s.Failure.Message), " ")
	if len(words) > maxMessage {
		words = strings.ToValidUTF8(words[:maxMessage], "") + " ..."
	}
	return words
}

// result is how a spec ended.
type result struct {
	// State is ginkgo's: passed, failed, skipped, pending, timedout, panicked, aborted or interrupted.
	State string
	// Message is how the words of a failure begin, or why the spec skipped itself.
	Message string
	// Seconds are the time that it took.
	Seconds float64
	// Date is the day of the run, and Karpenter the version that was run.
	Date, Karpenter string
}

// readReports reads a file that ginkgo's flag json-report made. It returns the specs in their order, and the results of those
// that were run to their ends.
func readReports(path string) (specs []string, results map[string]result, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a report of ginkgo: %w", err)
	}
	var suites []suiteReport
	if err := json.Unmarshal(raw, &suites); err != nil {
		return nil, nil, fmt.Errorf("reading the report of ginkgo %s: %w", path, err)
	}
	results = map[string]result{}
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			if s.LeafNodeType != "It" {
				continue
			}
			specs = append(specs, s.text())
			if s.ended() == "interrupted" {
				continue
			}
			if s.RunTime > 0 || s.State != "skipped" && s.State != "pending" {
				results[s.text()] = result{State: s.ended(), Message: s.message(), Seconds: float64(s.RunTime) / 1e9}
			}
		}
	}
	if len(specs) == 0 {
		return nil, nil, fmt.Errorf("the report of ginkgo %s has no spec", path)
	}
	return specs, results, nil
}
