// SPDX-License-Identifier: Apache-2.0

package evaluation_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file anew")

// question is a query, and the same in plain Go. All are the recorded lines, the newest first.
type question struct {
	query string
	want  func(all []line) []string
}

// Each answer is compared with a plain recomputation and with a golden file. Events come in any order.
func TestQuestions(t *testing.T) {
	events := recorded(t)
	all := plainly(events)
	rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	questions := slices.Concat(filterQuestions, fieldQuestions, parseQuestions, statsQuestions, rowQuestions)
	if len(questions) < 80 {
		t.Errorf("%d questions: want at least 80", len(questions))
	}
	var golden strings.Builder
	for _, q := range questions {
		got, want := ask(t, q.query, events), q.want(all)
		fmt.Fprintf(&golden, "> %s\n", q.query)
		for _, row := range got {
			fmt.Fprintf(&golden, "%.200s\n", row)
		}
		if strings.Contains(q.query, "stats") && !strings.Contains(q.query, "sort") { // the order of groups is not the question
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\n%d rows: %.1500q\nwant %d: %.1500q", q.query, len(got), got, len(want), want)
		}
	}
	const path = "testdata/answers.golden"
	if *update {
		if err := os.WriteFile(path, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != golden.String() {
		t.Errorf("%s differs: look at what go test -update writes", path)
	}
}
