// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"strings"
	"testing"
	"time"
)

// People are told each time that the log is whole from another moment on, at most once in a quarter of an hour, and as
// it is then.
func TestNotice(t *testing.T) {
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	lost := func(ago time.Duration) State { return State{Whole: noon.Add(-ago), Lost: true} }
	var notice Notice
	for _, step := range []struct {
		what  string
		after time.Duration
		state State
		want  bool
	}{
		{"there are no lines", 0, State{}, false},
		{"the cluster is new", 0, State{Whole: noon.Add(-time.Minute)}, false},
		{"what is lost is two days old", 0, lost(48 * time.Hour), false},
		{"a flood", 0, lost(time.Hour), true},
		{"nothing changed", time.Hour, lost(time.Hour), false},
		{"the flood goes on", time.Hour, lost(30 * time.Minute), true},
		{"and on", time.Hour + 14*time.Minute, lost(20 * time.Minute), false},
		{"and on, a quarter of an hour later", time.Hour + 15*time.Minute, lost(10 * time.Minute), true},
		{"a day later", 25 * time.Hour, lost(10 * time.Minute), false},
	} {
		if got := notice.due(step.state, noon.Add(step.after)); got != step.want {
			t.Errorf("%s: told %t", step.what, got)
		}
	}
	if got := message(lost(time.Hour)); !strings.Contains(got, "whole from 2026-11-24T11:00:00Z on") {
		t.Error(got)
	}
}
