// SPDX-License-Identifier: Apache-2.0

package logquery_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/evaluation"
	"muster.dev/muster/internal/plane/logevent"
	"muster.dev/muster/internal/plane/logquery"
	"muster.dev/muster/internal/plane/logstore"
	"muster.dev/muster/internal/plane/logstore/logstoretest"
)

const log = "000000000000:/aws/eks/blue/cluster"

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// kept starts a log store that has events: a second apart from noon on, each in pairs of the same time, the later line first.
func kept(t *testing.T) (*logstoretest.Server, *logstore.Store) {
	t.Helper()
	store := &logstore.Store{Socket: filepath.Join(t.TempDir(), "s"), Poll: time.Millisecond}
	server := logstoretest.Start(t, store.Socket)
	var rows []byte
	add := func(log, stream string, offset int64, at time.Time, text string) {
		rows = logevent.Event{Log: log, Stream: stream, File: "f00d", Offset: offset, Time: at, Text: []byte(text)}.Append(rows)
	}
	add(log, "kube-apiserver-1", 100, noon, `FLAG: --authorization-mode="[Node,RBAC]"`)
	add(log, "kube-apiserver-1", 20, noon, "FLAG: --v=\"2\"")
	add(log, "kube-apiserver-audit-1", 3, noon.Add(time.Second+999_999), `{"verb":"create","_time":"theirs","user":{"username":"a"},"responseObject":{"status":{"conditions":[{"message":"said"}]}}}`)
	add(log, "kube-apiserver-audit-1", 2, noon.Add(2*time.Second), `{"verb":"get","user":{"username":"b"}}`)
	add("000000000000:/aws/eks/green/cluster", "kube-apiserver-1", 0, noon, "another's")
	session, err := store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Insert(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	return server, store
}

func question(t *testing.T, text string) logquery.Question {
	t.Helper()
	query, err := logsinsights.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return logquery.Question{Query: query, Logs: []string{log}, Start: noon.Add(-time.Hour), End: noon.Add(time.Hour), Now: noon.Add(time.Hour)}
}

// rowsOf are the rows of an answer without what tells events apart.
func rowsOf(result *evaluation.Result) []string {
	rows := []string{}
	for _, row := range result.Rows {
		rows = append(rows, fmt.Sprint(slices.DeleteFunc(row, func(f evaluation.Field) bool { return f.Name == "@ptr" })))
	}
	return rows
}

func TestAnswers(t *testing.T) {
	server, store := kept(t)
	const from = `"@log":="` + log + `" _time:[2026-11-30T11:00:00.000000000Z, 2026-11-30T13:00:00.000000000Z] `
	for _, c := range []struct {
		query string
		limit int
		rows  []string
		asked string // of the store, after its beginning; empty: nothing
	}{
		{
			`filter @logStream not like /^kube-apiserver-audit/ | filter @logStream like /^kube-apiserver-/ | fields @timestamp, @message | sort @timestamp asc | filter @message like "--authorization-mode" | limit 10000`, 0,
			[]string{`[{@timestamp 2026-11-30 12:00:00.000} {@message FLAG: --authorization-mode="[Node,RBAC]"}]`},
			`(!"@logStream":="kube-apiserver-audit"* "@logStream":="kube-apiserver-"* "_msg":~"--authorization-mode") | fields "@file", "@logStream", "@offset", "_msg", "_time"`,
		},
		{`display responseObject.status.conditions.0.message, @ingestionTime, @log, _time | filter verb = "create"`, 0, []string{"[{responseObject.status.conditions.0.message said} {@ingestionTime 2026-11-30 12:00:01.000} {@log " + log + "} {_time theirs}]"}, `"verb":="create" | len("_msg") as "_msg" | fields "@_time", "@file", "@log", "@offset", "_msg", "_time", "responseObject.status.conditions.0.message", "verb"`},
		{"display @offset", 0, []string{"[{@offset 2}]", "[{@offset 3}]", "[{@offset 100}]", "[{@offset 20}]"}, `* | len("_msg") as "_msg" | fields "@file", "@offset", "_msg", "_time"`},
		{"display @offset | sort @timestamp asc", 3, []string{"[{@offset 100}]", "[{@offset 20}]", "[{@offset 3}]"}, `* | len("_msg") as "_msg" | fields "@file", "@offset", "_msg", "_time"`},
		{"display @offset | limit 1", 3, []string{"[{@offset 2}]"}, `* | len("_msg") as "_msg" | fields "@file", "@offset", "_msg", "_time"`},
		{"stats count(*) as n by ispresent(verb) as v | sort n asc, v asc", 1, []string{"[{v 0} {n 2}]"}, `* | len("_msg") as "_msg" | fields "@file", "@offset", "_msg", "_time", "n", "v", "verb"`},
		{`filter verb = ""`, 0, []string{}, ""},
	} {
		asked := len(server.Queries())
		q := question(t, c.query)
		q.Limit = c.limit
		result, err := q.Answer(t.Context(), store)
		if err != nil {
			t.Errorf("%s: %v", c.query, err)
			continue
		}
		if got := rowsOf(result); !slices.Equal(got, c.rows) {
			t.Errorf("%s:\n%q, want\n%q", c.query, got, c.rows)
		}
		var want []string
		if c.asked != "" {
			want = []string{from + c.asked}
		}
		if got := server.Queries()[asked:]; !slices.Equal(got, want) {
			t.Errorf("%s asks\n%q, want\n%q", c.query, got, want)
		}
	}
}

// Both ends of the range belong to it, to the nanosecond.
func TestTheRangeOfTime(t *testing.T) {
	_, store := kept(t)
	at := noon.Add(time.Second + 999_999)
	for _, c := range []struct {
		start, end time.Time
		rows       int
	}{{at, at, 1}, {noon, at, 3}, {noon, at.Add(-1), 2}, {at.Add(1), at.Add(time.Minute), 1}} {
		q := question(t, "display @message")
		q.Start, q.End = c.start.In(time.FixedZone("", 3600)), c.end
		result, err := q.Answer(t.Context(), store)
		if err != nil || len(result.Rows) != c.rows {
			t.Errorf("%v, %v, want %d rows", result, err, c.rows)
		}
	}
}

// A query that fails has no rows.
func TestFailures(t *testing.T) {
	server, store := kept(t)
	server.Fail(func(path string) logstoretest.Fault {
		if path == "/health" {
			return logstoretest.None
		}
		return logstoretest.GivesUp
	})
	if result, err := question(t, "limit 1").Answer(t.Context(), store); err == nil || result != nil || !strings.Contains(err.Error(), "took too long") {
		t.Errorf("%v %v", result, err)
	}
	server.Fail(nil)
	session, err := store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Insert(t.Context(), []byte(`{"_time":"2026-11-30T12:00:00Z","_msg":"","@log":"`+log+`"}`+"\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := question(t, "limit 1").Answer(t.Context(), store); err == nil || !strings.Contains(err.Error(), "not those of a line") {
		t.Error(err)
	}
	if _, err := question(t, "limit 1").Answer(t.Context(), &logstore.Store{Socket: filepath.Join(t.TempDir(), "s")}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
