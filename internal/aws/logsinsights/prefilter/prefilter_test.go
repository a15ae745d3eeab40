// SPDX-License-Identifier: Apache-2.0

package prefilter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/evaluation"
	"muster.dev/muster/internal/aws/logsinsights/prefilter"
)

func parse(t interface {
	Helper()
	Fatalf(format string, arguments ...any)
}, query string,
) *logsinsights.Query {
	t.Helper()
	parsed, err := logsinsights.Parse(query)
	if err != nil {
		t.Fatalf("%s\n%v", query, err)
	}
	return parsed
}

func TestFilters(t *testing.T) {
	for query, want := range map[string]string{
		"limit 5": `*`,
		`filter @logStream like /^kube-apiserver-audit/ | fields @timestamp, @message | sort @timestamp asc | filter @message like 'csr-kdkll' | limit 10000`: `("@logStream":="kube-apiserver-audit"* "_msg":~"csr-kdkll")`,
		`filter @logStream not like /^kube-controller-manager/ | filter @message like "--controller"`:                                                         `(!"@logStream":="kube-controller-manager"* "_msg":~"--controller")`,
		`filter verb = "create"`:                        `"verb":="create"`,
		`filter "create" = verb`:                        `"verb":="create"`,
		`filter verb != "create"`:                       `!"verb":="create"`,
		`filter a = 200`:                                `("a":="200" or "a":="0"* or "a":~"\\." or "a":~"e" or "a":~"E" or "a":~"\\+" or "a":~"-")`,
		`filter a != 200`:                               `!"a":="200"`,
		`filter a > 5`:                                  `"a":*`,
		`filter not a > 5`:                              `*`,
		`filter verb in ["a", "b"] and not b like "x"`:  `(("verb":="a" or "verb":="b") !"b":~"x")`,
		`filter verb = "a" or strlen(b) > 5`:            `*`,
		`filter verb = "a" and strlen(b) > 5`:           `"verb":="a"`,
		`filter not (verb = "a" and strlen(b) > 5)`:     `*`,
		`filter not (verb = "a" or strlen(b) > 5)`:      `!"verb":="a"`,
		`filter ispresent(a) and not ispresent(b)`:      `("a":* !"b":*)`,
		`filter a =~ /x(foo|bar)+y?z/`:                  `("a":~"x" ("a":~"foo" or "a":~"bar") "a":~"z")`,
		`filter a =~ /(?i)foo/`:                         `*`,
		`filter a =~ /a"b\\c/`:                          `"a":~"a\"b\\\\c"`,
		`filter a not like /fo+/`:                       `*`,
		`filter @timestamp = 5 or @ptr = "x"`:           `*`,
		`filter _msg = "x" and @@message = "y"`:         `("@_msg":="x" "@@message":="y")`,
		`fields b as a | filter a = "x" and b = "y"`:    `"b":="y"`,
		`parse "*" as a | filter a = "x" and a.b = "y"`: `*`,
		`limit 5 | filter a = "x"`:                      `*`,
		"filter `a*` != 'x' and b = 'y'":                `"b":="y"`,
		"filter `*` not like 'x'":                       `*`,
		`filter a = ""`:                                 `!*`,
		`filter a like ""`:                              `"a":*`,
		`filter @message like "" and @message != ""`:    `*`,
		`filter a = true`:                               `("a":="true" or "a":="1" or "a":="0"* or "a":~"\\." or "a":~"e" or "a":~"E" or "a":~"\\+" or "a":~"-")`,
	} {
		if got := prefilter.Of(parse(t, query)).String(); got != want {
			t.Errorf("%s\n%s\nwant\n%s", query, got, want)
		}
	}
}

// VictoriaLogs refuses a query of more than 16 KiB. A part that makes a filter too long is left out, and the rest still counts.
func TestLongFilters(t *testing.T) {
	numbers := "[" + strings.TrimSuffix(strings.Repeat("1, ", 3000), ", ") + "]"
	for query, want := range map[string]string{
		"filter a in " + numbers + ` | filter b = "y"`:             `"b":="y"`,
		"filter a in " + numbers + ` and b = "y"`:                  `"b":="y"`,
		"filter a in " + numbers:                                   `*`,
		"filter a not in " + numbers:                               `*`,
		`filter a like "` + strings.Repeat("x.", 4000) + `"`:       `*`,
		"filter not (" + strings.Repeat(`a > 1 or `, 900) + "b)":   `*`,
		"filter not (" + strings.Repeat(`a = "1" or `, 700) + "b)": `*`,
	} {
		filter := prefilter.Of(parse(t, query))
		if got := filter.String(); got != want || len(got) > 8<<10 {
			t.Errorf("%.80s…: %d bytes, %.200s, want %s", query, len(got), got, want)
		}
	}
}

func TestFields(t *testing.T) {
	got := prefilter.Fields(parse(t, "fields a.b, @logStream, _time | filter concat(c, d) in [e] | stats count_distinct(f) as g by bin(5m), h | sort g"))
	if want := []string{"@_time", "@logStream", "a.b", "c", "d", "e", "f", "g", "h"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// passes computes what a filter means, from the comments of its kinds alone.
func passes(f prefilter.Filter, stored map[string]string) bool {
	text := stored[f.Field]
	switch f.Kind {
	case prefilter.All:
		return true
	case prefilter.And:
		return !slices.ContainsFunc(f.Parts, func(part prefilter.Filter) bool { return !passes(part, stored) })
	case prefilter.Or:
		return slices.ContainsFunc(f.Parts, func(part prefilter.Filter) bool { return passes(part, stored) })
	case prefilter.Not:
		return !passes(f.Parts[0], stored)
	case prefilter.Present:
		return text != ""
	case prefilter.Equal:
		return text == f.Text
	case prefilter.Prefix:
		return strings.HasPrefix(text, f.Text)
	case prefilter.Contains:
		return strings.Contains(text, f.Text)
	default:
		return false
	}
}

var (
	fieldNames = []string{"a", "b", "a.b", "_msg", "@message", "@logStream"}
	texts      = []string{"", "a", "ab", "b", "aba", "1", "01", "1.0", "1e0", "+1", "10e-1", "-1", "2", "true", "false", "a.b", "9007199254740993", "9007199254740992", "x\ny"}
	literals   = []string{`"a"`, `"ab"`, `""`, `"1"`, `1`, `1.0`, `2`, `-1`, `true`, `false`, `"true"`, `9007199254740993`, `"9007199254740993"`, `"a.b"`}
	patterns   = []string{`a`, `^a`, `^a$`, `b$`, `a|b`, `(a|1)+`, `a.b`, `a*`, `^`, `(?i)A`, `ab?`, `[ab]`, `x.y`, `(?s)x.y`, `a{2}`, `a{0,2}b`, `\.`, `(?m)^y`, `^(a|b)`, `^^a`}
)

func condition(t *rapid.T, depth int) string {
	name := rapid.SampledFrom(fieldNames).Draw(t, "field")
	literal := func() string { return rapid.SampledFrom(literals).Draw(t, "literal") }
	negation := rapid.SampledFrom([]string{"", "not "}).Draw(t, "negation")
	kinds := 8
	if depth > 0 {
		kinds = 11
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return name + rapid.SampledFrom([]string{" = ", " != ", " < ", " <= ", " > ", " >= "}).Draw(t, "operator") + literal()
	case 1:
		return literal() + rapid.SampledFrom([]string{" = ", " != ", " < "}).Draw(t, "operator") + name
	case 2:
		return name + " " + negation + `like "` + rapid.SampledFrom([]string{"", "a", "1", ".", "ab"}).Draw(t, "text") + `"`
	case 3, 4:
		return name + " " + negation + "like /" + rapid.SampledFrom(patterns).Draw(t, "pattern") + "/"
	case 5:
		return name + " " + negation + "in [" + literal() + ", " + literal() + "]"
	case 6:
		return "ispresent(" + name + ")"
	case 7:
		return "strlen(" + name + ") > 1"
	case 8:
		return name
	case 9:
		return "not " + condition(t, depth-1)
	default:
		return "(" + condition(t, depth-1) + rapid.SampledFrom([]string{" and ", " or "}).Draw(t, "both") + condition(t, depth-1) + ")"
	}
}

func event(t *rapid.T, number int) *evaluation.Event {
	text := func(label string) string { return rapid.SampledFrom(texts).Draw(t, label) }
	return &evaluation.Event{
		Timestamp: int64(number), Pointer: fmt.Sprint(number), Message: text("message"), Stream: text("stream"),
		Fields: map[string]string{"a": text("a"), "b": text("b"), "a.b": text("a.b"), "_msg": text("_msg")},
	}
}

func stored(e *evaluation.Event) map[string]string {
	return map[string]string{"_msg": e.Message, "@logStream": e.Stream, "a": e.Fields["a"], "b": e.Fields["b"], "a.b": e.Fields["a.b"], "@_msg": e.Fields["_msg"]}
}

// Whatever the query and the events, the answer from the events that the store passes is the answer from all events.
func TestPrefilterChangesNoAnswer(t *testing.T) {
	dropped := 0
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SampledFrom([]string{"", "fields b as a | ", "parse @message /(?<b>.)$/ | ", "fields jsonParse('{\"b\":1}') as a | ", "limit 3 | ", "sort a desc | "}).Draw(t, "before")
		after := rapid.SampledFrom([]string{"", " | stats count(*) by a", " | dedup a", " | limit 2", " | fields concat(a, b) as b | filter b = \"ab\""}).Draw(t, "after")
		query := parse(t, before+"filter "+condition(t, 3)+" | fields a, b"+after)
		filter := prefilter.Of(query)
		var all, passed []*evaluation.Event
		for i := range rapid.IntRange(1, 8).Draw(t, "events") {
			e := event(t, i)
			all = append(all, e)
			if passes(filter, stored(e)) {
				passed = append(passed, e)
			}
		}
		dropped += len(all) - len(passed)
		if got, want := answer(t, query, passed), answer(t, query, all); got != want {
			t.Errorf("%s\n%s\nwant\n%s", filter, got, want)
		}
	})
	if dropped == 0 {
		t.Error("no filter dropped an event: the test shows nothing")
	}
}

func answer(t *rapid.T, query *logsinsights.Query, events []*evaluation.Event) string {
	result, err := evaluation.Run(query, func(yield func(*evaluation.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}, evaluation.Options{Now: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(result.Rows)
}

func TestQueryFieldIsTheInverseOfStoreField(t *testing.T) {
	for _, name := range []string{"_time", "_msg", "_stream", "_stream_id", "verb", "user.username", "@@message", "@file", "@logStream", "a._msg"} {
		store, found := prefilter.StoreField(name)
		if got := prefilter.QueryField(store); !found || got != name {
			t.Errorf("%s is %s in the store, and that is %s", name, store, got)
		}
	}
}
