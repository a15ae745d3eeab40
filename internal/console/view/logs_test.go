// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/evaluation"
	"muster.dev/muster/internal/console/pageserver/pageservertest"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/redaction"
)

// answered is a query and what it answers about the events of an hour.
func answered(t *testing.T, text string) (*logsinsights.Query, *view.LogAnswer) {
	t.Helper()
	query, err := logsinsights.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	result, err := evaluation.Run(query, func(yield func(*evaluation.Event, error) bool) {
		for _, e := range pageservertest.Requests() {
			if !yield(e, nil) {
				return
			}
		}
	}, evaluation.Options{Now: pageservertest.Noon})
	if err != nil {
		t.Fatal(err)
	}
	a := &view.LogAnswer{Start: pageservertest.Noon.Add(-time.Hour), End: pageservertest.Noon}
	a.SetResult(result, 1000)
	return query, a
}

// A chart has the values of stats by time, and no other answer has a chart.
func TestCharts(t *testing.T) {
	for _, c := range []struct {
		query string
		want  []string // the name, group, number of bars and scale of each series; nil without a chart
	}{
		{"stats count(*) as n by bin(20m)", []string{"n  4 0-20"}}, // the fourth period begins with the last event
		{"stats count(*) as n, max(n) by bin(30m), verb", []string{"n verb=get 2 0-10", "n verb=list 2 0-10", "n verb=watch 3 0-10", "max(n) verb=watch 3 0-59", "max(n) verb=list 2 0-59", "max(n) verb=get 2 0-59"}},
		{"stats sum(0 - n) as less by bin(1h) as t", []string{"less  2 -1711-0"}},
		{"stats count(*) as n by datefloor(@timestamp, 30m) as t | sort t asc | limit 1", []string{"n  1 0-29"}},
		{"stats count(*) as n by bin(10m) as t, verb | display t, n", nil},
		{"stats count(*) as n by bin(10m) as t | display n", nil},
		{"stats count(*) as n by verb", nil},
		{"fields @message", nil},
		{"stats latest(verb) as v by bin(10m)", nil},
		{"stats count(*) as n by bin(1m) as t, verb | stats sum(n) as all by verb", nil},
	} {
		query, a := answered(t, c.query)
		chart := view.NewChart(query, a)
		var got []string
		if chart != nil {
			for _, s := range chart.Series {
				got = append(got, fmt.Sprintf("%s %s %d %g-%g", s.Name, s.Of, len(s.Bars), s.Least, s.Most))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.query, diff)
		}
	}
}

// Bars are where their time is on the axis, and as high as their value is.
func TestBarsOfCharts(t *testing.T) {
	query, a := answered(t, "filter n = 0 or n >= 30 | stats count(*) as n by bin(30m)")
	at := pageservertest.Noon
	want := []view.Bar{
		{At: at.Add(-time.Hour), Value: 1, X: 0, Y: 96.6, Width: 450, Height: 3.4},
		{At: at.Add(-30 * time.Minute), Value: 29, X: 500, Y: 0, Width: 450, Height: 100},
		{At: at, Value: 1, X: 999, Y: 96.6, Width: 1, Height: 3.4},
	}
	if diff := cmp.Diff(want, view.NewChart(query, a).Series[0].Bars); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	a.End = a.Start
	if view.NewChart(query, a) != nil {
		t.Error("a moment has a chart")
	}
	query, a = answered(t, "stats count(*) as c by bin(1m), n")
	if chart := view.NewChart(query, a); len(chart.Series) != 8 || chart.Left != 52 {
		t.Errorf("of 60 series it has %d, and leaves %d out", len(chart.Series), chart.Left)
	}
}

// Bars stay on their sheet, however large values are.
func TestBarsOfHugeValues(t *testing.T) {
	query, a := answered(t, "stats max(n) as n by bin(30m)")
	for _, values := range [][2]string{{"1e307", "5e306"}, {"1e308", "-1e308"}, {"-1.7e308", "1.7e308"}, {"5e-324", "-5e-324"}} {
		for i, value := range values {
			a.Rows[i]["n"] = value
		}
		for _, b := range view.NewChart(query, a).Series[0].Bars {
			if b.Y < 0 || b.Height < 0 || b.Y+b.Height > 100.1 {
				t.Errorf("%v: %+v", values, b)
			}
		}
	}
}

// An answer that nobody waits for any more is not read through for secrets to its end: rows are read one by one.
func TestRedactionEndsBetweenRows(t *testing.T) {
	a := &view.LogAnswer{Rows: []map[string]string{{"n": "1"}, {"n": "2"}, {"n": "3"}}}
	var read []any
	err := a.Redact(func(row any) ([]byte, error) {
		if read = append(read, row); len(read) == 2 {
			return nil, context.Canceled
		}
		return []byte(`{"n":"clean"}`), nil
	})
	if want := []any{map[string]string{"n": "1"}, map[string]string{"n": "2"}}; !errors.Is(err, context.Canceled) || !cmp.Equal(read, want) || a.Rows[0]["n"] != "clean" {
		t.Errorf("%v after %v: %v", err, read, a.Rows)
	}
}

// A row that looks like a Secret is shown without its data, and with it the rows beside it.
func TestRowsAboutSecrets(t *testing.T) {
	a := &view.LogAnswer{Rows: []map[string]string{{"kind": "Secret", "name": "db", "data": `{"a":"Yg=="}`, "stringData": "b"}, {"kind": "Pod", "data": "c"}}}
	err := a.Redact(func(row any) ([]byte, error) {
		text, _, err := redaction.JSON(row)
		return text, err
	})
	if want := []map[string]string{{"kind": "Secret", "name": "db", "data": "[left out: data of a Secret]"}, {"kind": "Pod", "data": "c"}}; err != nil || !cmp.Equal(a.Rows, want) {
		t.Errorf("%v: %v", err, a.Rows)
	}
}

// The page shows a bounded part of an answer.
func TestRowsOfThePage(t *testing.T) {
	row := func(text string) []evaluation.Field { return []evaluation.Field{{Name: "@message", Value: text}} }
	large := &evaluation.Result{Columns: []string{"@timestamp", "@message"}}
	for range 2000 {
		large.Rows = append(large.Rows, row("é"+strings.Repeat("é", 5000)))
	}
	a := &view.LogAnswer{}
	a.SetResult(large, 1000)
	page := view.NewLogs(pageservertest.World(), view.LogForm{}, nil, a)
	if !a.More || len(a.Rows) != 1000 || len(page.Rows) < 200 || len(page.Rows) > 300 || len(page.Rows[0][1]) != 4096+len("…") || page.Rows[0][0] != "" {
		t.Errorf("more: %t, %d rows, of which %d are shown, the first of %d bytes", a.More, len(a.Rows), len(page.Rows), len(page.Rows[0][1]))
	}
	small := &evaluation.Result{Columns: []string{"@message"}, Rows: [][]evaluation.Field{row("a"), row("b")}}
	a.SetResult(small, 2)
	if page = view.NewLogs(view.Facts{}, view.LogForm{Cluster: "gone"}, nil, a); a.More || len(page.Rows) != 2 || !cmp.Equal(page.Clusters, []string{"gone"}) {
		t.Errorf("more: %t, %d rows, clusters %q", a.More, len(page.Rows), page.Clusters)
	}
}

// An answer of very many columns has fewer rows on the page, also if they are empty.
func TestRowsOfManyColumns(t *testing.T) {
	wide := &evaluation.Result{Columns: make([]string, 2000), Rows: make([][]evaluation.Field, 500)}
	a := &view.LogAnswer{}
	a.SetResult(wide, 1000)
	if n := len(view.NewLogs(view.Facts{}, view.LogForm{}, nil, a).Rows); n < 1 || n > 30 {
		t.Errorf("%d rows of 2,000 columns", n)
	}
}

func TestExamplesCanBeRead(t *testing.T) {
	for _, e := range view.LogExamples() {
		if _, err := logsinsights.Parse(e.Query); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
		if _, err := time.ParseDuration(e.Since); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
}

func TestMistakesPointAtTheCharacter(t *testing.T) {
	const text = "fields @timestamp\n| filtre x"
	_, err := logsinsights.Parse(text)
	p := view.NewMistake(text, err)
	if want := (&view.Mistake{Line: 2, Position: 3, Start: 20, End: 26}); !cmp.Equal(want, p.Mistake) || p.Pointed != "| filtre x\n  ^" {
		t.Errorf("%+v, pointed\n%s", p.Mistake, p.Pointed)
	}
}
