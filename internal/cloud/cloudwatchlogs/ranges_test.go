// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"fmt"
	"strings"
	"testing"
)

// A range may end at any time: programs send the largest number for no end, and the log store has no times after 2262.
func TestRangesWithoutEnd(t *testing.T) {
	w := streamed(t, 3)
	for _, end := range []string{"9223372036854775807", "9223372036854775", "253402300800000"} {
		page := w.page("GetLogEvents", of("a", `"startFromHead":true`, `"limit":1`, `"endTime":`+end))
		if got := messages(page); got != "0" {
			t.Errorf("up to %s: %q", end, got)
		}
		if got := messages(w.page("GetLogEvents", of("a", `"endTime":`+end, `"nextToken":"`+page.NextForwardToken+`"`))); got != "2" {
			t.Errorf("the next page up to %s: %q", end, got)
		}
		if got := messages(w.page("FilterLogEvents", named(`"endTime":`+end))); got != "0 1 2" {
			t.Errorf("up to %s: %q", end, got)
		}
		none := w.page("GetLogEvents", of("a", `"startTime":`+end, `"endTime":`+end))
		if got := messages(w.page("GetLogEvents", of("a", `"nextToken":"`+none.NextBackwardToken+`"`))); got != "0 2" {
			t.Errorf("before the events from %s on, which are none: %q", end, got)
		}
	}
	id := w.query(named(`"queryString":"fields @message"`, `"startTime":0`, `"endTime":253402300799`))
	w.ask("GetQueryResults", `{"queryId":"`+id+`"}`, 200, `"resultCount":3`)
}

// All names that a request may have fit into one query of the log store, however long they are.
func TestLongNames(t *testing.T) {
	w := streamed(t, 3)
	var groups, streams []string
	for n := range 100 {
		// The characters that LogsQL needs the most room for.
		name := fmt.Sprintf("%03d", n) + strings.Repeat("\\u0001", maxName-3)
		streams = append(streams, `"`+name+`"`)
		w.ask("CreateLogStream", of(name), 200)
	}
	for n := range mostIdentifiers {
		name := fmt.Sprintf("%03d", n) + strings.Repeat("g", maxName-3)
		groups = append(groups, `"`+name+`"`)
		w.ask("CreateLogGroup", `{"logGroupName":"`+name+`"}`, 200)
	}
	w.ask("FilterLogEvents", named(`"logStreamNames":[`+strings.Join(streams, ",")+`]`, `"filterPattern":"\"`+strings.Repeat("\U000e0001", 1000)+`\""`), 200, `"events":[]`)
	fields := make([]string, 1000)
	for n := range fields {
		fields[n] = fmt.Sprintf("f%07d", n)
	}
	id := w.query(w.asked("fields "+strings.Join(fields, ","), `"logGroupNames":[`+strings.Join(groups, ",")+`]`))
	w.ask("GetQueryResults", `{"queryId":"`+id+`"}`, 200, `"status":"Complete"`)
	for _, prefix := range []string{"", "a:b", "a*", strings.Repeat("x", maxName+1)} {
		w.ask("FilterLogEvents", named(`"logStreamNamePrefix":"`+prefix+`"`), 400, invalidParameter)
		w.ask("DescribeLogStreams", named(`"logStreamNamePrefix":"`+prefix+`"`), 400, invalidParameter)
	}
}

// Whoever turns round at an end of a log stream gets the event at the end again.
func TestTurningAtTheEnds(t *testing.T) {
	w := streamed(t, 6)
	turned := func(token string, limit int) pageOfEvents {
		t.Helper()
		return w.page("GetLogEvents", of("a", fmt.Sprintf(`"limit":%d`, limit), `"nextToken":"`+token+`"`))
	}
	end := turned(w.page("GetLogEvents", of("a")).NextForwardToken, 2)
	if got := messages(turned(end.NextBackwardToken, 2)); messages(end) != "" || got != "2 4" {
		t.Errorf("from behind the last event: %q, %q, want 2 4", messages(end), got)
	}
	begin := turned(w.page("GetLogEvents", of("a")).NextBackwardToken, 2)
	if got := messages(turned(begin.NextForwardToken, 2)); messages(begin) != "" || got != "0 2" {
		t.Errorf("from before the first event: %q, %q, want 0 2", messages(begin), got)
	}
	for _, token := range []string{end.NextForwardToken, begin.NextBackwardToken} {
		if again := turned(token, 2); token != again.NextForwardToken && token != again.NextBackwardToken {
			t.Error("the token of an end changes")
		}
	}
}
