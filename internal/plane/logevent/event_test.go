// SPDX-License-Identifier: Apache-2.0

package logevent

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// row reads what Append made, which must be one object on one line with no name twice.
func row(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, e Event,
) map[string]string {
	t.Helper()
	raw := string(e.Append([]byte("before")))
	raw, ok := strings.CutPrefix(raw, "before")
	if !ok || len(raw) > MaxRow || strings.Count(raw, "\n") != 1 || !strings.HasSuffix(raw, "\n") || !utf8.ValidString(raw) {
		t.Fatalf("not a row of %d bytes: %.200q", len(raw), raw)
	}
	fields := map[string]string{}
	decoder := json.NewDecoder(strings.NewReader(raw))
	if _, err := decoder.Token(); err != nil {
		t.Fatalf("%v in %.200q", err, raw)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			t.Fatalf("%v in %.200q", err, raw)
		}
		value, err := decoder.Token()
		if err != nil {
			t.Fatalf("%v in %.200q", err, raw)
		}
		key, _ := name.(string)
		if _, twice := fields[key]; twice {
			t.Fatalf("%q is there twice in %.200q", key, raw)
		}
		fields[key], _ = value.(string)
	}
	return fields
}

// line is an event with a text.
func line(text string) Event {
	return Event{Log: "000000000000:/aws/eks/blue/cluster", Stream: "kube-scheduler-1", File: "f00d", Offset: 42, Time: time.Unix(1800000000, 5), Text: []byte(text)}
}

func TestRows(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	for _, c := range []struct {
		text string
		want map[string]string // besides the fields of every row
	}{
		{`I1120 12:33:44.123456   1 flags.go:27] FLAG: --authorization-mode="[Node,RBAC]"`, nil},
		{`{"kind":"Event","code":201,"ok":true,"none":null,"empty":"","user":{"groups":["a","b"]}}`, map[string]string{
			"kind": "Event", "code": "201", "ok": "true", "user.groups.0": "a", "user.groups.1": "b",
		}},
		{`{"responseObject":{"status":{"conditions":[{"type":"Approved","message":"said"}]}}}`, map[string]string{
			"responseObject.status.conditions.0.type": "Approved", "responseObject.status.conditions.0.message": "said",
		}},
		{`{"n":1e400,"m":0.10,"big":12345678901234567890123}`, map[string]string{"n": "1e400", "m": "0.10", "big": "12345678901234567890123"}},
		{`{"@message":"a","_msg":"b","_time":"c","_stream":"d","_stream_id":"e","":"f","@file":"g","x":{"_msg":"h","@log":"i","":"j"}}`, map[string]string{
			"@@message": "a", "@_msg": "b", "@_time": "c", "@_stream": "d", "@_stream_id": "e", "@": "f", "@@file": "g", "x._msg": "h", "x.@log": "i", "x.": "j",
		}},
		{`{"a.b":"first","a":{"b":"second"}}`, map[string]string{"a.b": "first"}},
		{`{"` + strings.Repeat("n", 129) + `":"1","` + strings.Repeat("m", 128) + `":"2"}`, map[string]string{strings.Repeat("m", 128): "2"}},
		{`{"deep":` + deep + `,"after":"it"}`, map[string]string{"after": "it"}},
		{` {"a":"b"} `, map[string]string{"a": "b"}},
		{`{"a":"b"} {"c":"d"}`, nil},
		{`{"a":"b"`, nil},
		{`{"a":"b",}`, nil},
		{`["a"]`, nil},
		{"tab\tquote\"slash\\nul\x00escape\x1b[0m <&>", nil},
	} {
		want := map[string]string{
			Time: "2027-01-15T08:00:00.000000005Z", Message: c.text, Log: "000000000000:/aws/eks/blue/cluster", Stream: "kube-scheduler-1", File: "f00d", Offset: "42",
		}
		maps.Copy(want, c.want)
		if got := row(t, line(c.text)); !maps.Equal(got, want) {
			t.Errorf("%.100s:\n%v\nwant\n%v", c.text, got, want)
		}
	}
}

func TestInvalidTextAndCutLines(t *testing.T) {
	e := line("\xffab\xc3")
	e.Cut = true
	if got := row(t, e); got[Message] != "\ufffdab\ufffd" || got[Truncated] != "true" {
		t.Errorf("%v", got)
	}
}

// The fields that come first are kept; the line has all of them.
func TestManyFields(t *testing.T) {
	fields := make([]string, 2000)
	for i := range fields {
		fields[i] = `"f` + strconv.Itoa(i) + `":"v"`
	}
	text := "{" + strings.Join(fields, ",") + "}"
	got := row(t, line(text))
	if len(got) != maxFields+6 || got["f899"] != "v" || got["f900"] != "" || got[Message] != text {
		t.Errorf("%d fields", len(got))
	}
}

func TestLongRows(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", MaxText-10) + `","b":"` + strings.Repeat("\\u0001", 1000) + `"}`
	got := row(t, line(long))
	if got["a"] != "" || got[Message] != long || got[Truncated] != "" {
		t.Errorf("fields %v, %d bytes", slices.Sorted(maps.Keys(got)), len(got[Message]))
	}
	got = row(t, line(strings.Repeat("\x01", MaxText))) // six times as long in JSON
	if n := len(got[Message]); n != MaxText/4 || got[Truncated] != "true" {
		t.Errorf("%d bytes, truncated %q", n, got[Truncated])
	}
}

// Whatever a line is, it is one row with the line's identity, and the row's own fields are nobody else's.
func TestAnyLineIsARow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.SliceOf(rapid.Byte()),
			rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{`{`, `}`, `[`, `]`, `"a"`, `"@log"`, `"_time"`, `:`, `,`, `1`, `null`, `true`, `"\u0000"`}), 0, 40), func(parts []string) []byte {
				return []byte("{" + strings.Join(parts, ""))
			}),
		).Draw(t, "text")
		e := line("")
		e.Text = text
		got := row(t, e)
		if got[File] != "f00d" || got[Offset] != "42" || got[Log] != e.Log || got[Stream] != e.Stream || got[Time] == "" {
			t.Fatalf("%v", got)
		}
		if want := strings.ToValidUTF8(string(text), "\ufffd"); utf8.Valid(text) && got[Message] != want {
			t.Fatalf("%q, want %q", got[Message], want)
		}
	})
}

func FuzzAppend(f *testing.F) {
	f.Add([]byte(`{"a":{"b":["c",1,null,true]}}`))
	f.Add([]byte("I1120 12:33:44.123456 1 x.go:1] \xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		e := line("")
		e.Text = text
		if got := row(t, e); got[File] != "f00d" || got[Offset] != "42" {
			t.Errorf("%v", got)
		}
	})
}
