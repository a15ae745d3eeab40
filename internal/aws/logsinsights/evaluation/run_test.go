// SPDX-License-Identifier: Apache-2.0

package evaluation_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/evaluation"
)

// numbered returns events with the numbers from 0 on as messages, a second apart, whose field f is the number.
func numbered(n int) []*evaluation.Event {
	events := make([]*evaluation.Event, n)
	for i := range events {
		text := strconv.Itoa(i)
		events[i] = &evaluation.Event{Timestamp: int64(i) * 1000, Message: text, Pointer: fmt.Sprintf("p%09d", i), Fields: map[string]string{"f": text}}
	}
	return events
}

func TestDefaultLimitAndOrder(t *testing.T) {
	result := run(t, "filter f >= 0", numbered(logsinsights.MaxRows+5))
	if len(result.Rows) != logsinsights.MaxRows || result.Scanned != logsinsights.MaxRows+5 || result.Matched != result.Scanned || result.Bytes == 0 {
		t.Errorf("%d rows of %d", len(result.Rows), result.Scanned)
	}
	if got := lines(result.Rows[:1]); got[0] != "@timestamp=1970-01-01 02:46:44.000 @message=10004" {
		t.Errorf("%q", got)
	}
}

func TestRowsOfEventsEndWithThePointer(t *testing.T) {
	for query, want := range map[string]string{
		"fields f":                    "[{f 0} {@ptr p000000000}]",
		"stats count(*) as n":         "[{n 1}]",
		"pattern @message":            "[{@pattern <Number-1>} {@ratio 1} {@sampleCount 1} {@severityLabel }]",
		"fields f, nonsense":          "[{f 0} {@ptr p000000000}]",
		"fields f, f + 1 as g, f":     "[{f 0} {g 1} {@ptr p000000000}]",
		"display f | fields @message": "[{f 0} {@ptr p000000000}]",
		"parse '*' as a | limit 1":    "[{@timestamp 1970-01-01 00:00:00.000} {@message 0} {a 0} {@ptr p000000000}]",
	} {
		if got := fmt.Sprint(run(t, query, numbered(1)).Rows[0]); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
}

func TestPatternCommand(t *testing.T) {
	events := numbered(4)
	for i, message := range []string{"request 1 failed", "request 2 failed", "done", "request 3 failed"} {
		events[i].Message = message
	}
	got := ask(t, "pattern @message", events)
	want := []string{"@pattern=request <Number-1> failed @ratio=0.75 @sampleCount=3 @severityLabel=ERROR", "@pattern=done @ratio=0.25 @sampleCount=1 @severityLabel="}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// An empty text is a value, and a missing field is none.
func TestGroupsTellMissingFromEmpty(t *testing.T) {
	events := numbered(3)
	events[0].Message, events[1].Message = "a=", "a=1"
	got := ask(t, "parse 'a=*' as a | stats count(*) as n, count(a) as m by a", events)
	if want := []string{"n=1 m=0", "a= n=1 m=1", "a=1 n=1 m=1"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestPercentilesAreNearestRank(t *testing.T) {
	got := ask(t, "stats pct(f, 0) as a, pct(f, 31) as b, pct(f, 90) as c, pct(f, 91) as d, pct(f, 100) as e, median(f) as m", numbered(10))
	if want := []string{"a=0 b=3 c=8 d=9 e=9 m=4"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Rows that lack a field are no duplicates of each other.
func TestDedupKeepsRowsWithoutTheField(t *testing.T) {
	events := numbered(6)
	for i, e := range events {
		e.Fields = map[string]string{"g": []string{"a", "", "b"}[i%3]}
	}
	got := ask(t, "fields @message, g | dedup g", events)
	if want := []string{"@message=5 g=b", "@message=4", "@message=3 g=a", "@message=1"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestLimits(t *testing.T) {
	events := numbered(1000)
	for _, c := range []struct {
		query  string
		limits evaluation.Limits
		what   string // empty: the query has an answer
	}{
		{"limit 1000", evaluation.Limits{Bytes: 100_000, Groups: 1, Values: 1}, "bytes"},
		{"limit 100", evaluation.Limits{Bytes: 100_000, Groups: 1, Values: 1}, ""},
		{"sort f desc | limit 100", evaluation.Limits{Bytes: 100_000, Groups: 1, Values: 1}, ""},
		{"stats count(*) by f", evaluation.Limits{Bytes: 10_000_000, Groups: 999, Values: 1}, "groups"},
		{"stats count(*) by f | limit 1", evaluation.Limits{Bytes: 10_000_000, Groups: 1000, Values: 1}, ""},
		{"stats max(@message) by f", evaluation.Limits{Bytes: 100_000, Groups: 1000, Values: 1}, "bytes"},
		{"dedup f", evaluation.Limits{Bytes: 10_000_000, Groups: 999, Values: 1}, "groups"},
		{"dedup f", evaluation.Limits{Bytes: 100_000, Groups: 1000, Values: 1}, "bytes"},
		{"stats count_distinct(f)", evaluation.Limits{Bytes: 10_000_000, Groups: 1, Values: 999}, "values"},
		{"stats pct(f, 50)", evaluation.Limits{Bytes: 10_000_000, Groups: 1, Values: 999}, "values"},
		{"stats pct(f, 50), count_distinct(f)", evaluation.Limits{Bytes: 10_000_000, Groups: 1, Values: 2000}, ""},
		{"fields split(f, '') as l | limit 100", evaluation.Limits{Bytes: 100_000, Groups: 1, Values: 1}, ""},
		{"fields split(concat(" + strings.Repeat("f, ", 500) + "f), '') as l | stats count(*)", evaluation.Limits{Bytes: 100_000, Groups: 1, Values: 1}, "bytes"},
		{"fields concat('a', replace(@message, @message, 'b'), f) as x | stats count(*) by x | stats count(*)", evaluation.Limits{Bytes: 10_000_000, Groups: 2000, Values: 1}, ""},
	} {
		query, err := logsinsights.Parse(c.query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = evaluation.Run(query, sequence(events), evaluation.Options{Now: now, Limits: c.limits})
		var limit *evaluation.LimitError
		if errors.As(err, &limit) != (c.what != "") || c.what != "" && !strings.HasPrefix(limit.What, c.what) {
			t.Errorf("%s with %+v: %v", c.query, c.limits, err)
		}
	}
}

func TestErrorOfEvents(t *testing.T) {
	query, err := logsinsights.Parse("limit 1")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	_, err = evaluation.Run(query, func(yield func(*evaluation.Event, error) bool) {
		if yield(numbered(1)[0], nil) {
			yield(nil, broken)
		}
	}, evaluation.Options{Now: now})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

// A query that makes many rows of one event can be ended.
func TestCheckEndsAQuery(t *testing.T) {
	events := numbered(1)
	events[0].Message = "[" + strings.Repeat("1,", 9_999) + "1]"
	query, err := logsinsights.Parse("fields jsonParse(@message) as j | unnest j into a | unnest j into b | unnest j into c | stats count(*)")
	if err != nil {
		t.Fatal(err)
	}
	enough, calls := errors.New("enough"), 0
	_, err = evaluation.Run(query, sequence(events), evaluation.Options{Now: now, Check: func() error {
		if calls++; calls == 3 {
			return enough
		}
		return nil
	}})
	if !errors.Is(err, enough) || calls != 3 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// The order in which the store returns events changes no answer.
func TestOrderOfEventsDoesNotMatter(t *testing.T) {
	queries := []string{
		"limit 7", "sort g | limit 5", "sort g desc, f | limit 6", "fields g | dedup g | limit 4", "sort f | dedup g, h", "stats count(*), earliest(f), latest(f), sum(f), min(g), max(h) by g",
		"stats count(*) as n by bin(10s), h | sort n desc | limit 3", "limit 9 | stats latest(f), count(*) by g", "pattern @message", "stats count_distinct(g), pct(f, 30), median(f) by h",
	}
	rapid.Check(t, func(t *rapid.T) {
		events := numbered(rapid.IntRange(0, 40).Draw(t, "events"))
		for _, e := range events {
			e.Timestamp = rapid.Int64Range(0, 20_000).Draw(t, "timestamp")
			e.Fields["g"] = rapid.SampledFrom([]string{"", "a", "b", "1", "01"}).Draw(t, "g")
			e.Fields["h"] = rapid.SampledFrom([]string{"", "x", "2"}).Draw(t, "h")
		}
		query, err := logsinsights.Parse(rapid.SampledFrom(queries).Draw(t, "query"))
		if err != nil {
			t.Fatal(err)
		}
		answers := [2]string{}
		for i := range answers {
			result, err := evaluation.Run(query, sequence(events), evaluation.Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			answers[i] = fmt.Sprint(result.Rows)
			events = rapid.Permutation(events).Draw(t, "order")
		}
		if answers[0] != answers[1] {
			t.Errorf("%s\n%s", answers[0], answers[1])
		}
	})
}
