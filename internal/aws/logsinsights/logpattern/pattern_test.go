// SPDX-License-Identifier: Apache-2.0

package logpattern_test

import (
	"slices"
	"testing"

	"muster.dev/muster/internal/aws/logsinsights/logpattern"
)

func TestPatterns(t *testing.T) {
	for line, want := range map[string]string{
		"plain words only": "plain words only",
		"I1129 20:40:04.874157   31584 options.go:263] external host was not specified, using 172.31.0.4": "I<Number-1> <Time-2>   <Number-3> options.go:<Number-4>] external host was not specified, using <IPAddress-5>",
		"2026-11-29T20:40:11.617464Z id=1afffbc4-1c04-4643-994f-e8a66198fa97 n=-1.5":                      "<Time-1> id=<UUID-2> n=-<Number-3>",
		"pod web-7d9f of node2": "pod web-<Hex-1> of <Token-2>",
		"":                      "",
	} {
		if got := logpattern.Of(line); got != want {
			t.Errorf("%s\n%s\nwant\n%s", line, got, want)
		}
	}
}

func TestCounter(t *testing.T) {
	var c logpattern.Counter
	fresh := 0
	for _, line := range []string{"E1129 20:40:04.8 1 a.go:1] x", "request 1 failed", "request 22 failed", "E1130 20:40:04.8 2 a.go:7] x", "request 3 failed", "warning: 9"} {
		if c.Add(line) {
			fresh++
		}
	}
	want := []logpattern.Pattern{
		{"request <Number-1> failed", 3, "ERROR"},
		{"E<Number-1> <Time-2> <Number-3> a.go:<Number-4>] x", 2, "ERROR"},
		{"warning: <Number-1>", 1, "WARN"},
	}
	if got := c.Patterns(); !slices.Equal(got, want) || fresh != 3 {
		t.Errorf("%d new, %+v", fresh, got)
	}
}
