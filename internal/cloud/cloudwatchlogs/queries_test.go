// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/logstore/logstoretest"
)

// query starts a query, waits for its end, and returns its id.
func (w *world) query(body string) string {
	w.t.Helper()
	var begun struct{ QueryID string }
	if err := json.Unmarshal([]byte(w.ask("StartQuery", body, 200)), &begun); err != nil {
		w.t.Fatal(err)
	}
	w.await(begun.QueryID)
	return begun.QueryID
}

// await waits for the end of a query.
func (w *world) await(id string) {
	w.t.Helper()
	for range 30_000 {
		if answer := w.ask("GetQueryResults", `{"queryId":"`+id+`"}`, 200); !strings.Contains(answer, scheduled) && !strings.Contains(answer, running) {
			return
		}
		<-time.After(time.Millisecond)
	}
	w.t.Fatal("the query does not end")
}

// asked is a query about the hour before and after the world's time.
func (w *world) asked(text string, more ...string) string {
	quoted, _ := json.Marshal(text) //nolint:errchkjson // a text
	return "{" + strings.Join(append([]string{`"queryString":` + string(quoted), fmt.Sprintf(`"startTime":%d`, w.now.Unix()-3600), fmt.Sprintf(`"endTime":%d`, w.now.Unix()+3600)}, more...), ",") + "}"
}

func TestQueries(t *testing.T) {
	w := streamed(t, 5)
	w.ask("CreateLogGroup", `{"logGroupName":"other"}`, 200)
	w.ask("CreateLogStream", `{"logGroupName":"other","logStreamName":"c"}`, 200)
	w.ask("PutLogEvents", `{"logGroupName":"other","logStreamName":"c",`+logEvents(event(w.at(100), `{"n":{"m":["x"]}}`))+`}`, 200)

	id := w.query(w.asked("fields @message | sort @timestamp asc", `"logGroupName":"`+blue+`"`, `"limit":3`))
	result := func(more ...string) string {
		return w.ask("GetQueryResults", `{"queryId":"`+id+`"`+strings.Join(append([]string{""}, more...), ",")+`}`, 200)
	}
	whole := result()
	for _, part := range []string{`"status":"Complete"`, `"queryLanguage":"CWLI"`, `[{"field":"@message","value":"0"},{"field":"@ptr","value":"`, `"value":"2"`, `"recordsScanned":5`, `"resultCount":3`, `"logGroupsScanned":1`} {
		if !strings.Contains(whole, part) {
			t.Errorf("%s lacks %s", whole, part)
		}
	}
	var page struct {
		Results   [][]any
		NextToken string
	}
	if err := json.Unmarshal([]byte(result(`"maxItems":2`)), &page); err != nil || len(page.Results) != 2 || page.NextToken == "" {
		t.Errorf("%v %v", page, err)
	}
	if last := result(`"maxItems":2`, `"nextToken":"`+page.NextToken+`"`); strings.Count(last, "@ptr") != 1 || strings.Contains(last, "nextToken") {
		t.Errorf("%s", last)
	}
	w.ask("DescribeQueries", `{"status":"Complete"}`, 200, `"queryId":"`+id+`"`, `"logGroupName":"`+blue+`"`, `"userIdentity":"arn:aws:iam::000000000000:user/admin"`, `"queryDuration":`, `"createTime":1800000000000`)
	w.ask("DescribeQueries", `{"status":"Failed"}`, 200, `{"queries":[]}`)
	w.ask("DescribeQueries", `{"logGroupName":"other"}`, 200, `{"queries":[]}`)
	w.ask("StopQuery", `{"queryId":"`+id+`"}`, 400, invalidParameter, "has ended")

	id = w.query(w.asked("display @log, n.m.0 | filter ispresent(n.m.0)", `"logGroupIdentifiers":["`+blueARN+`","other"]`))
	if got := result(); !strings.Contains(got, `{"field":"@log","value":"000000000000:other"},{"field":"n.m.0","value":"x"}`) || !strings.Contains(got, `"logGroupsScanned":2`) {
		t.Errorf("two log groups: %s", got)
	}

	w.server.Fail(func(string) logstoretest.Fault { return logstoretest.Refuses })
	id = w.query(w.asked("limit 1", `"logGroupName":"other"`))
	if got := result(); !strings.Contains(got, `"status":"Failed"`) || !strings.Contains(got, `"results":[]`) {
		t.Errorf("%s", got)
	}
}

func TestRefusalsOfQueries(t *testing.T) {
	w := streamed(t, 1)
	w.ask("StartQuery", w.asked("fields @message | filtre x", `"logGroupName":"`+blue+`"`), 400, malformed, `"queryCompileError":{`, `"location":{"startCharOffset":18,"endCharOffset":24}`)
	w.ask("StartQuery", w.asked("limit 1", `"logGroupName":"none"`), 400, notFound, "Log group 'none' does not exist for account ID '000000000000'")
	for name, body := range map[string]string{
		"no group":       w.asked("limit 1"),
		"two ways":       w.asked("limit 1", `"logGroupName":"`+blue+`"`, `"logGroupNames":["`+blue+`"]`),
		"too many":       w.asked("limit 1", `"logGroupNames":[`+strings.TrimSuffix(strings.Repeat(`"g",`, 51), ",")+`]`),
		"too long":       w.asked(strings.Repeat("x", 10_001), `"logGroupName":"`+blue+`"`),
		"other language": w.asked("limit 1", `"logGroupName":"`+blue+`"`, `"queryLanguage":"SQL"`),
		"limit":          w.asked("limit 1", `"logGroupName":"`+blue+`"`, `"limit":10001`),
		"range":          named(`"queryString":"limit 1"`, `"startTime":2`, `"endTime":1`),
		"no range":       named(`"queryString":"limit 1"`),
	} {
		t.Log(name)
		w.ask("StartQuery", body, 400, invalidParameter)
	}
	w.ask("GetQueryResults", `{"queryId":"x"}`, 400, invalidParameter)
	w.ask("GetQueryResults", `{"queryId":"00000000-0000-4000-8000-000000000000"}`, 400, notFound)
	w.ask("StopQuery", `{"queryId":"00000000-0000-4000-8000-000000000000"}`, 400, notFound)
	w.ask("DescribeQueries", `{"status":"Good"}`, 400, invalidParameter)
	w.ask("PutRetentionPolicy", named(`"retentionInDays":1`), 200)
	w.ask("StartQuery", named(`"queryString":"limit 1"`, `"startTime":1`, `"endTime":2`), 400, malformed, "retention settings")
}

// A query that is stopped while it runs, or before, has no answer; more than may wait are refused.
func TestStopAndLimit(t *testing.T) {
	w := streamed(t, 1)
	hold := make(chan struct{})
	w.server.Fail(func(path string) logstoretest.Fault {
		if path == "/select/logsql/query" {
			<-hold
		}
		return logstoretest.None
	})
	var ids []string
	for range atOnce + mostScheduled {
		var begun struct{ QueryID string }
		if err := json.Unmarshal([]byte(w.ask("StartQuery", w.asked("limit 1", `"logGroupName":"`+blue+`"`), 200)), &begun); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, begun.QueryID)
		for len(ids) <= atOnce && !strings.Contains(w.ask("GetQueryResults", `{"queryId":"`+begun.QueryID+`"}`, 200), running) {
			<-time.After(time.Millisecond)
		}
	}
	w.ask("StartQuery", w.asked("limit 1", `"logGroupName":"`+blue+`"`), 400, "LimitExceededException")
	for _, id := range []string{ids[len(ids)-1], ids[0]} {
		w.ask("StopQuery", `{"queryId":"`+id+`"}`, 200, `{"success":true}`)
		w.ask("GetQueryResults", `{"queryId":"`+id+`"}`, 200, `"status":"Cancelled"`, `"results":[]`)
		w.ask("StopQuery", `{"queryId":"`+id+`"}`, 400, invalidParameter)
		w.ask("StartQuery", w.asked("limit 1", `"logGroupName":"`+blue+`"`), 200) // its place is free
	}
	close(hold)
	for _, id := range ids[1 : len(ids)-1] {
		w.await(id)
		w.ask("GetQueryResults", `{"queryId":"`+id+`"}`, 200, `"status":"Complete"`)
	}
}

// Queries that ended are forgotten when they are too many, and never the newest.
func TestForget(t *testing.T) {
	q := newQueries(&api{})
	for n := range mostQueries + 5 {
		q.all = append(q.all, &query{id: fmt.Sprint(n), account: account, status: complete})
	}
	q.all[0].status = running
	q.forget()
	if len(q.all) != mostQueries || q.all[0].id != "0" || q.all[1].id != "6" {
		t.Errorf("%d queries, the first are %s and %s", len(q.all), q.all[0].id, q.all[1].id)
	}
	q.bytes = mostBytes + 1
	q.all[1].bytes, q.all[len(q.all)-1].bytes = 5, 5
	q.forget()
	if q.find(account, "6") != nil || q.find(account, "7") == nil || q.find("other", "7") != nil {
		t.Error("not the oldest one was forgotten")
	}
	q.all, q.bytes = q.all[len(q.all)-1:], mostBytes+1
	if q.forget(); len(q.all) != 1 {
		t.Error("the newest was forgotten")
	}
}
