// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
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
