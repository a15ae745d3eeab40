// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/logstore/logstoretest"
)

// at is a time in milliseconds since 1970: so many of them after the world's.
func (w *world) at(ms int64) int64 { return w.now.UnixMilli() + ms }

// of names a log stream of the log group blue, with more members.
func of(stream string, more ...string) string {
	return named(append([]string{`"logStreamName":"` + stream + `"`}, more...)...)
}

// event is a member of logEvents.
func event(at int64, message string) string {
	text, _ := json.Marshal(message) //nolint:errchkjson // a text
	return fmt.Sprintf(`{"timestamp":%d,"message":%s}`, at, text)
}

func logEvents(events ...string) string { return `"logEvents":[` + strings.Join(events, ",") + `]` }

// pageOfEvents is what GetLogEvents and FilterLogEvents answer.
type pageOfEvents struct {
	Events []struct {
		Message, EventID, LogStreamName string
		Timestamp                       int64
	}
	NextToken, NextForwardToken, NextBackwardToken string
}

func (w *world) page(action, body string) (page pageOfEvents) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.ask(action, body, 200)), &page); err != nil {
		w.t.Fatal(err)
	}
	return page
}

func messages(page pageOfEvents) string {
	var all []string
	for _, e := range page.Events {
		all = append(all, e.Message)
	}
	return strings.Join(all, " ")
}

// streamed has a log group with the streams a and b, whose events are numbered in their order of time.
func streamed(t *testing.T, events int) *world {
	t.Helper()
	w := newWorld(t)
	w.ask("CreateLogGroup", named(), 200)
	for _, stream := range []string{"a", "b"} {
		w.ask("CreateLogStream", of(stream), 200)
	}
	for n := range events {
		w.ask("PutLogEvents", of([]string{"a", "b"}[n%2], logEvents(event(w.at(int64(n)), fmt.Sprint(n)))), 200, `"nextSequenceToken":"`)
	}
	return w
}

func TestLifeOfALogStream(t *testing.T) {
	w := newWorld(t)
	w.ask("CreateLogStream", of("a"), 400, notFound, "log group")
	w.ask("CreateLogGroup", named(), 200)
	w.ask("DescribeLogStreams", named(), 200, `{"logStreams":[]}`)
	w.ask("CreateLogStream", of("a"), 200)
	w.ask("CreateLogStream", of("a"), 400, alreadyExists)
	w.ask("PutLogEvents", of("none", logEvents(event(w.at(0), "x"))), 400, notFound, "log stream")
	shown := w.ask("DescribeLogStreams", named(), 200, `"logStreamName":"a"`, `"arn":"`+blueARN+`:log-stream:a"`, `"creationTime":1800000000000`, `"storedBytes":0`)
	if strings.Contains(shown, "EventTimestamp") {
		t.Errorf("it has no event: %s", shown)
	}
	w.ask("PutLogEvents", of("a", logEvents(event(w.at(1), "x"), event(w.at(7), "y"))), 200)
	w.ask("DescribeLogStreams", `{"logGroupIdentifier":"`+blueARN+`"}`, 200, `"firstEventTimestamp":1800000000001`, `"lastEventTimestamp":1800000000007`)

	w.ask("DeleteLogStream", of("a"), 200)
	if n := len(w.server.Disk()); n != 0 {
		t.Errorf("%d events are left of a stream that was deleted", n)
	}
	w.ask("DeleteLogStream", of("a"), 400, notFound)
	w.ask("GetLogEvents", of("a"), 400, notFound)
	w.ask("CreateLogStream", of("a"), 200)
	if page := w.page("GetLogEvents", of("a")); len(page.Events) != 0 {
		t.Errorf("events of a stream that was deleted: %v", page)
	}

	w.ask("CreateLogGroup", `{"logGroupName":"other"}`, 200)
	w.ask("CreateLogStream", `{"logGroupName":"other","logStreamName":"a"}`, 200)
	w.ask("PutLogEvents", `{"logGroupName":"other","logStreamName":"a",`+logEvents(event(w.at(0), "stays"))+`}`, 200)
	w.ask("PutLogEvents", of("a", logEvents(event(w.at(0), "goes"))), 200)
	w.ask("DeleteLogGroup", named(), 200)
	if disk := w.server.Disk(); len(disk) != 1 || disk[0]["_msg"] != "stays" {
		t.Errorf("left: %v", disk)
	}
	w.ask("CreateLogGroup", named(), 200)
	w.ask("DescribeLogStreams", named(), 200, `{"logStreams":[]}`)
}

// A cluster's streams are there with their events, and nobody makes them.
func TestStreamsOfAClusterAreThere(t *testing.T) {
	w := streamed(t, 2)
	for _, name := range []string{"a", "b"} {
		if err := logStreams.Delete(t.Context(), w.api, streamID(blue, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.ask("DescribeLogStreams", named(), 200, `"logStreamName":"a"`, `"logStreamName":"b"`, `"creationTime":1800000000001`)
	w.ask("CreateLogStream", of("a"), 400, alreadyExists)
	if got := messages(w.page("GetLogEvents", of("a"))); got != "0" {
		t.Errorf("%q", got)
	}
	w.ask("DeleteLogStream", of("a"), 200)
	w.ask("GetLogEvents", of("a"), 400, notFound)
}

func TestOrdersOfLogStreams(t *testing.T) {
	w := streamed(t, 0)
	for i, name := range []string{"ab", "z"} {
		w.ask("CreateLogStream", of(name), 200)
		w.ask("PutLogEvents", of(name, logEvents(event(w.at(int64(10-i)), "x"))), 200)
	}
	for body, want := range map[string]string{
		named():                            "a ab b z",
		named(`"descending":true`):         "z b ab a",
		named(`"orderBy":"LogStreamName"`): "a ab b z",
		named(`"orderBy":"LastEventTime"`): "a b z ab",
		named(`"orderBy":"LastEventTime"`, `"descending":true`): "ab z b a",
		named(`"logStreamNamePrefix":"a"`):                      "a ab",
	} {
		var names []string
		token := ""
		for range 5 {
			var page struct {
				LogStreams []struct{ LogStreamName string }
				NextToken  string
			}
			more := `,"limit":2`
			if token != "" {
				more += `,"nextToken":"` + token + `"`
			}
			if err := json.Unmarshal([]byte(w.ask("DescribeLogStreams", strings.TrimSuffix(body, "}")+more+"}", 200)), &page); err != nil {
				t.Fatal(err)
			}
			for _, s := range page.LogStreams {
				names = append(names, s.LogStreamName)
			}
			if token = page.NextToken; token == "" {
				break
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// Pages have each event once, forward and backward, whatever their size, and follow a stream that grows.
func TestPagesOfEvents(t *testing.T) {
	w := streamed(t, 11)
	for limit := 1; limit < 8; limit++ {
		var got []string
		token := ""
		for range 20 {
			page := w.page("FilterLogEvents", named(fmt.Sprintf(`"limit":%d`, limit), `"nextToken":"`+token+`"`))
			got = append(got, strings.Fields(messages(page))...)
			if token = page.NextToken; token == "" {
				break
			}
		}
		if want := "0 1 2 3 4 5 6 7 8 9 10"; strings.Join(got, " ") != want {
			t.Errorf("limit %d: %v", limit, got)
		}
	}
	if got := messages(w.page("FilterLogEvents", named(`"startFromHead":false`, `"limit":3`))); got != "10 9 8" {
		t.Errorf("the latest first: %s", got)
	}
	if got := messages(w.page("GetLogEvents", of("a", `"limit":2`))); got != "8 10" {
		t.Errorf("the latest: %s", got)
	}

	page := w.page("GetLogEvents", of("a", `"limit":4`, `"startFromHead":true`))
	next := w.page("GetLogEvents", of("a", `"startFromHead":true`, `"nextToken":"`+page.NextForwardToken+`"`))
	if messages(page) != "0 2 4 6" || messages(next) != "8 10" {
		t.Errorf("%v, %v", page, next)
	}
	if back := w.page("GetLogEvents", of("a", `"limit":2`, `"nextToken":"`+next.NextBackwardToken+`"`)); messages(back) != "4 6" {
		t.Errorf("back: %v", back)
	}
	end := w.page("GetLogEvents", of("a", `"startFromHead":true`, `"nextToken":"`+next.NextForwardToken+`"`))
	if len(end.Events) != 0 || end.NextForwardToken != next.NextForwardToken {
		t.Errorf("the end is not told by the token: %v", end)
	}
	w.ask("PutLogEvents", of("a", logEvents(event(w.at(50), "later"))), 200)
	if more := w.page("GetLogEvents", of("a", `"startFromHead":true`, `"nextToken":"`+end.NextForwardToken+`"`)); messages(more) != "later" {
		t.Errorf("what came then: %v", more)
	}
}

func TestFilters(t *testing.T) {
	w := streamed(t, 0)
	w.ask("PutLogEvents", of("a", logEvents(event(w.at(0), "ERROR one"), event(w.at(5), `{"verb":"get","code":404}`), event(w.at(5), "fine"))), 200)
	w.ask("PutLogEvents", of("b", logEvents(event(w.at(9), "ERROR two"))), 200)
	for body, want := range map[string]string{
		named(`"filterPattern":"ERROR"`):                         "ERROR one|ERROR two",
		named(`"filterPattern":"ERROR -two"`):                    "ERROR one",
		named(`"filterPattern":"{ $.code > 400 }"`):              `{"verb":"get","code":404}`,
		named(`"filterPattern":"nothing"`):                       "",
		named(`"logStreamNames":["b"]`):                          "ERROR two",
		named(`"logStreamNamePrefix":"b"`, `"interleaved":true`): "ERROR two",
		named(fmt.Sprintf(`"startTime":%d`, w.at(6))):            "ERROR two",
		named(fmt.Sprintf(`"endTime":%d`, w.at(5))):              `ERROR one|{"verb":"get","code":404}|fine`,
		named(fmt.Sprintf(`"endTime":%d`, w.at(4))):              "ERROR one",
	} {
		page := w.page("FilterLogEvents", body)
		if got := strings.ReplaceAll(messages(page), " ", "_"); got != strings.NewReplacer(" ", "_", "|", "_").Replace(want) {
			t.Errorf("%s: %s, want %s", body, messages(page), want)
		}
		for i, e := range page.Events {
			if e.EventID == "" || slices.ContainsFunc(page.Events[:i], func(other struct {
				Message, EventID, LogStreamName string
				Timestamp                       int64
			},
			) bool {
				return other.EventID == e.EventID
			}) {
				t.Errorf("the id of %v", e)
			}
		}
	}
	if got := messages(w.page("GetLogEvents", of("a", fmt.Sprintf(`"endTime":%d`, w.at(5))))); got != "ERROR one" {
		t.Errorf("the end does not belong to GetLogEvents: %s", got)
	}
}

func TestRefusalsOfEvents(t *testing.T) {
	w := streamed(t, 3)
	token := w.page("FilterLogEvents", named(`"limit":1`)).NextToken
	for _, c := range []struct{ action, body, code string }{
		{"CreateLogStream", of("a:b"), invalidParameter},
		{"CreateLogStream", of(""), invalidParameter},
		{"DescribeLogStreams", `{}`, invalidParameter},
		{"DescribeLogStreams", `{"logGroupName":"none"}`, notFound},
		{"DescribeLogStreams", named(`"orderBy":"Size"`), invalidParameter},
		{"DescribeLogStreams", named(`"orderBy":"LastEventTime"`, `"logStreamNamePrefix":"a"`), invalidParameter},
		{"DescribeLogStreams", named(`"limit":51`), invalidParameter},
		{"FilterLogEvents", `{"logGroupName":"none"}`, notFound},
		{"FilterLogEvents", named(`"logStreamNames":["none"]`), notFound},
		{"FilterLogEvents", named(`"logStreamNames":["a"]`, `"logStreamNamePrefix":"a"`), invalidParameter},
		{"FilterLogEvents", named(`"startTime":2`, `"endTime":1`), invalidParameter},
		{"FilterLogEvents", named(`"startTime":-1`), invalidParameter},
		{"FilterLogEvents", named(`"limit":10001`), invalidParameter},
		{"FilterLogEvents", named(`"filterPattern":"a.b"`), invalidParameter},
		{"FilterLogEvents", named(`"filterPattern":"x"`, `"nextToken":"`+token+`"`), invalidParameter},
		{"GetLogEvents", of("a", `"nextToken":"`+token+`"`), invalidParameter},
		{"GetLogEvents", of("none"), notFound},
		{"GetLogEvents", of("a", `"logGroupIdentifier":"`+blueARN+`"`), invalidParameter},
		{"PutLogEvents", of("a", logEvents(event(w.at(1), "x"), event(w.at(0), "y"))), invalidParameter},
		{"PutLogEvents", of("a", logEvents(event(w.at(0), ""))), invalidParameter},
		{"PutLogEvents", of("a", logEvents(event(-1, "x"))), invalidParameter},
		{"PutLogEvents", of("a", logEvents(event(w.at(-25*60*60*1000), "x"), event(w.at(0), "y"))), invalidParameter},
		{"PutLogEvents", of("a", logEvents(event(w.at(0), strings.Repeat("x", mostText+1)))), invalidParameter},
		{"PutLogEvents", of("a", logEvents(event(w.at(0), strings.Repeat("x", mostText)), event(w.at(0), strings.Repeat("x", mostText)))), invalidParameter},
	} {
		w.ask(c.action, c.body, 400, c.code)
	}
	if n := len(w.server.Disk()); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
}

// Events that are too old or too new are told by their index, and the others are kept.
func TestRejectedEvents(t *testing.T) {
	w := streamed(t, 0)
	day := int64(24 * time.Hour / time.Millisecond)
	w.ask("PutLogEvents", of("a", logEvents(event(w.at(-15*day), "old"), event(w.at(0), "now"), event(w.at(day/2), "new"))), 200,
		`"rejectedLogEventsInfo":{"tooNewLogEventStartIndex":2,"tooOldLogEventEndIndex":1}`)
	w.ask("PutRetentionPolicy", named(`"retentionInDays":1`), 200)
	w.ask("PutLogEvents", of("a", logEvents(event(w.at(-15*day), "old"), event(w.at(-2*day), "expired"), event(w.at(1), "then"))), 200,
		`"tooOldLogEventEndIndex":1`, `"expiredLogEventEndIndex":2`)
	w.ask("PutLogEvents", of("a", logEvents(event(w.at(day), "new"))), 200, `"tooNewLogEventStartIndex":0`)
	if got := messages(w.page("GetLogEvents", of("a"))); got != "now then" {
		t.Errorf("%s", got)
	}
}

// A batch that comes again after an error is there once. A batch that comes again after an answer is there twice.
func TestBatchesOnce(t *testing.T) {
	w := streamed(t, 0)
	body := of("a", logEvents(event(w.at(0), "one"), event(w.at(0), "two"), event(w.at(0), "three")))
	for _, fault := range []logstoretest.Fault{logstoretest.DiesWithin, logstoretest.DiesAfter, logstoretest.Refuses, logstoretest.DiesBefore} {
		failed := false
		w.server.Survive(func(row logstoretest.Row) bool { return row["@offset"] != "1" })
		w.server.Fail(func(path string) logstoretest.Fault {
			if path == "/insert/jsonline" && !failed {
				failed = true
				return fault
			}
			return logstoretest.None
		})
		w.ask("PutLogEvents", body, 500, unavailable)
	}
	w.server.Fail(nil)
	w.ask("PutLogEvents", body, 200)
	if got := messages(w.page("GetLogEvents", of("a"))); len(w.server.Disk()) != 3 || len(strings.Fields(got)) != 3 {
		t.Errorf("%s", got)
	}
	w.ask("PutLogEvents", body, 200)
	if n := len(w.server.Disk()); n != 6 {
		t.Errorf("%d events after two answers, want 6", n)
	}
}

// Without the program of the log store nothing is taken, and what is read is empty.
func TestWithoutALogStore(t *testing.T) {
	w := streamed(t, 0)
	w.kept.unbuilt = errors.New("run `make logs`")
	w.ask("PutLogEvents", of("a", logEvents(event(w.at(0), "x"))), 500, unavailable, "run `make logs`")
	w.server.Fail(func(string) logstoretest.Fault { return logstoretest.Refuses })
	w.ask("GetLogEvents", of("a"), 200, `"events":[]`, `"nextForwardToken":"`)
	w.ask("FilterLogEvents", named(), 200, `"events":[]`)
	w.ask("DeleteLogGroup", named(), 200)
}

// A log store that does not answer is told as such, and nothing is deleted then.
func TestTheLogStoreIsAway(t *testing.T) {
	w := streamed(t, 2)
	before := w.everything()
	w.server.Fail(func(string) logstoretest.Fault { return logstoretest.Refuses })
	for action, body := range map[string]string{
		"GetLogEvents": of("a"), "FilterLogEvents": named(), "DescribeLogStreams": named(), "DeleteLogStream": of("a"), "DeleteLogGroup": named(),
	} {
		w.ask(action, body, 500, unavailable)
	}
	if w.everything() != before {
		t.Error("records were deleted, and their events were not")
	}
}

// Events older than the retention of their log group go.
func TestRetention(t *testing.T) {
	w := streamed(t, 3)
	a := &api{Config{Logs: w.kept}}
	a.Management = w.api
	expires := func(after time.Duration) {
		t.Helper()
		if err := a.expire(t.Context(), w.now.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	expires(1000 * time.Hour)
	if n := len(w.server.Disk()); n != 3 {
		t.Errorf("%d events without a retention", n)
	}
	w.ask("PutRetentionPolicy", named(`"retentionInDays":1`), 200)
	expires(24*time.Hour + time.Millisecond)
	if n := len(w.server.Disk()); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}
