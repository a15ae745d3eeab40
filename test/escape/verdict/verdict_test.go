// SPDX-License-Identifier: Apache-2.0

package verdict_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/test/escape/verdict"
)

func TestWrittenAndRead(t *testing.T) {
	want := []verdict.Verdict{
		{Attack: "a", Rights: "plain", Outcome: verdict.Held, Why: "opening: operation not permitted", Millis: 3},
		{Attack: "b", Rights: "all", Outcome: verdict.Out, Why: "read\nit", Token: "0123"},
		{Attack: "c", Rights: "all", Outcome: verdict.NotHere, Why: "no such device"},
		{Attack: "d", Rights: "all", Outcome: verdict.Unclear, Why: "killed"},
	}
	var lines bytes.Buffer
	if err := verdict.Write(&lines, want...); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(lines.String(), "\n"); n != len(want) {
		t.Errorf("%d lines for %d verdicts", n, len(want))
	}
	got, err := verdict.Read(&lines)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedReports(t *testing.T) {
	const good = `{"attack":"a","rights":"plain","outcome":"held","why":"x","millis":1}` + "\n"
	for name, c := range map[string]struct{ report, want string }{
		"cut short":          {good + good[:20], "verdict 2"},
		"no name":            {`{"rights":"plain","outcome":"held","why":"x"}`, "must have a name"},
		"no rights":          {`{"attack":"a","outcome":"held","why":"x"}`, "must have a name"},
		"an unknown outcome": {`{"attack":"a","rights":"plain","outcome":"fine","why":"x"}`, `outcome "fine"`},
		"no reason":          {`{"attack":"a","rights":"plain","outcome":"held"}`, "without a reason"},
		"an unknown field":   {`{"attack":"a","rights":"plain","outcome":"held","why":"x","ok":true}`, "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			if all, err := verdict.Read(strings.NewReader(c.report)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", all, err, c.want)
			}
		})
	}
	for _, report := range []string{"", good + good} {
		if _, err := verdict.ReadOne([]byte(report)); err == nil {
			t.Errorf("%q passed for one verdict", report)
		}
	}
	if one, err := verdict.ReadOne([]byte(good)); err != nil || one.Attack != "a" {
		t.Errorf("got %v, %v", one, err)
	}
}

func TestSafe(t *testing.T) {
	for outcome, want := range map[verdict.Outcome]bool{verdict.Out: false, verdict.Unclear: false, verdict.Held: true, verdict.NotHere: true, "": false} {
		if outcome.Safe() != want {
			t.Errorf("%q is safe: %v", outcome, !want)
		}
	}
}
