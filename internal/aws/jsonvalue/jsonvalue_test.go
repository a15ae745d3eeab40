// SPDX-License-Identifier: Apache-2.0

package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
)

const table = `service test awsjson1.1 1
operation Do All -
structure All
 text string
 flag boolean
 small integer
 big long
 ratio double
 raw blob
 at timestamp
 day timestamp time=date-time
 any document
 list Texts
 tags Tags
 self All name=Self
 either Either
 path string label
list Texts string
map Tags string
union Either
 left string
 right integer
`

func shape(tb testing.TB) *awsshape.Shape {
	tb.Helper()
	service, err := awsshape.Parse(table)
	if err != nil {
		tb.Fatal(err)
	}
	return service.Shape("All")
}

func limits() awsshape.Limits { return awsshape.Limits{Depth: 4, Items: 3, Value: 30} }

func TestRead(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_500).UTC()
	for name, c := range map[string]struct {
		document string
		want     awsshape.Object
		problem  string
	}{
		"nothing":            {document: " \n", want: awsshape.Object{}},
		"empty":              {document: "{}", want: awsshape.Object{}},
		"scalars":            {document: `{"text":"é\u0041","flag":false,"small":-1,"big":3000000000,"ratio":1.5,"raw":"aGk="}`, want: awsshape.Object{"text": "éA", "flag": false, "small": int64(-1), "big": int64(3000000000), "ratio": 1.5, "raw": []byte("hi")}},
		"times":              {document: `{"at":1700000000.5,"day":"2023-11-14T22:13:20.500Z"}`, want: awsshape.Object{"at": at, "day": at}},
		"words for numbers":  {document: `{"ratio":"-Infinity"}`, want: awsshape.Object{"ratio": math.Inf(-1)}},
		"collections":        {document: `{"list":["a","b"],"tags":{"a":"1","":"2"}}`, want: awsshape.Object{"list": []any{"a", "b"}, "tags": awsshape.Object{"a": "1", "": "2"}}},
		"empty collections":  {document: `{"list":[],"tags":{}}`, want: awsshape.Object{"list": []any{}, "tags": awsshape.Object{}}},
		"a name of its own":  {document: `{"Self":{"text":"x"}}`, want: awsshape.Object{"self": awsshape.Object{"text": "x"}}},
		"null":               {document: `{"text":null,"list":null}`, want: awsshape.Object{}},
		"unknown members":    {document: `{"self":{"x":[{"y":1}]},"Text":3,"text":"a"}`, want: awsshape.Object{"text": "a"}},
		"not of the body":    {document: `{"path":"x"}`, want: awsshape.Object{}},
		"union":              {document: `{"either":{"right":3}}`, want: awsshape.Object{"either": awsshape.Object{"right": int64(3)}}},
		"document":           {document: `{"any":{"a":[1,null,"x"]}}`, want: awsshape.Object{"any": map[string]any{"a": []any{json.Number("1"), nil, "x"}}}},
		"both of a union":    {document: `{"either":{"right":3,"left":"x"}}`, problem: "either: exactly one member may be set, not 2"},
		"string for number":  {document: `{"self":1,"Self":{"small":"1"}}`, problem: "self.small: STRING_VALUE cannot be converted to a integer"},
		"number for string":  {document: `{"list":["a",2]}`, problem: "list.2: NUMBER_VALUE cannot be converted to a string"},
		"object for list":    {document: `{"list":{}}`, problem: "list: START_OBJECT cannot be converted to a list"},
		"list for structure": {document: `{"Self":[]}`, problem: "self: START_ARRAY cannot be converted to a structure"},
		"flag for string":    {document: `{"text":true}`, problem: "text: TRUE_VALUE"},
		"fraction":           {document: `{"small":1.5}`, problem: `small: "1.5" is not a whole number`},
		"too large":          {document: `{"small":2147483648}`, problem: "not a whole number of 32 bits"},
		"text for a time":    {document: `{"at":"2023-11-14T22:13:20Z"}`, problem: "at: STRING_VALUE cannot be converted to a timestamp"},
		"number for a day":   {document: `{"day":1}`, problem: "day: NUMBER_VALUE"},
		"not base64":         {document: `{"raw":"*"}`, problem: "raw: the string is not base64"},
		"null in a list":     {document: `{"list":[null]}`, problem: "list: item 1 is null"},
		"null in a map":      {document: `{"tags":{"a":null}}`, problem: `tags: the value of "a" is null`},
		"twice":              {document: `{"text":"a","text":"b"}`, problem: `the name "text" comes twice`},
		"key twice":          {document: `{"tags":{"a":"1","a":"2"}}`, problem: `tags: the name "a" comes twice`},
		"unknown twice":      {document: `{"x":{"a":1,"a":2}}`, problem: `comes twice`},
		"root is a list":     {document: `[]`, problem: "START_ARRAY cannot be converted to a structure"},
		"root is null":       {document: `null`, problem: "not a JSON object"},
		"something behind":   {document: `{} {}`, problem: "behind the end"},
		"ends early":         {document: `{"text":"a"`, problem: "not JSON, or it ends early"},
		"not JSON":           {document: `{text:1}`, problem: "not JSON"},
		"not UTF-8":          {document: "{\"text\":\"\xff\"}", problem: "not UTF-8"},
		"long string":        {document: `{"text":"` + strings.Repeat("a", 31) + `"}`, problem: "text: the string has more than 30 bytes"},
		"long list":          {document: `{"list":["1","2","3","4"]}`, problem: "list: more than 3 items"},
		"large map":          {document: `{"tags":{"1":"","2":"","3":"","4":""}}`, problem: "tags: more than 3 entries"},
		"deep":               {document: strings.Repeat(`{"Self":`, 5) + "{}" + strings.Repeat("}", 5), problem: "more than 4 levels"},
		"deep and unknown":   {document: `{"x":` + strings.Repeat("[", 6) + strings.Repeat("]", 6) + "}", problem: "more than 4 levels"},
		"deep and free":      {document: `{"any":` + strings.Repeat("[", 6) + strings.Repeat("]", 6) + "}", problem: "any: more than 4 levels"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(shape(t), []byte(c.document), limits())
			if c.problem != "" {
				var refused *awsfault.Error
				if !errors.As(err, &refused) || refused.Code != SerializationException || !strings.Contains(refused.Message, c.problem) {
					t.Fatalf("got %v, %v; want %q", got, err, c.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAppend(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_500).UTC()
	got, err := Append(nil, shape(t), awsshape.ValueOf(awsshape.Object{
		"text": "a\"\\\n\x01\u2028<é\xff", "small": int64(1), "ratio": math.NaN(), "raw": []byte("hi"), "at": at, "day": at,
		"any": map[string]any{"x": []any{1.5}}, "tags": awsshape.Object{"b": "2", "a": "1"}, "list": []any{}, "self": awsshape.Object{}, "path": "not here",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"text":"a\"\\\n\u0001` + "\u2028" + `<é` + "\ufffd" + `","small":1,"ratio":"NaN","raw":"aGk=","at":1700000000.5,"day":"2023-11-14T22:13:20.500Z",` +
		`"any":{"x":[1.5]},"list":[],"tags":{"a":"1","b":"2"},"Self":{}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	for _, wrong := range []awsshape.Object{{"small": "1"}, {"list": "a"}, {"tags": []any{}}, {"self": 3}, {"list": []any{nil}}, {"tags": awsshape.Object{"a": nil}}, {"txet": ""}} {
		if got, err := Append(nil, shape(t), awsshape.ValueOf(wrong)); err == nil {
			t.Errorf("%v was written as %s", wrong, got)
		}
	}
}

// A document that is read is written again as the same value, and a refusal has a message.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"text":"a","list":["x"],"tags":{"a":"b"},"Self":{"at":1.5,"ratio":2},"either":{"left":""},"any":[{}]}`))
	f.Add([]byte(`{"small":1e3,"big":-0,"raw":"","day":"2023-11-14T22:13:20.5+01:00"}`))
	s := shape(f)
	f.Fuzz(func(t *testing.T, document []byte) {
		object, err := Read(s, document, limits())
		if err != nil {
			var refused *awsfault.Error
			if !errors.As(err, &refused) || refused.Message == "" {
				t.Fatalf("%q: %v", document, err)
			}
			return
		}
		if len(bytes.TrimSpace(document)) > 0 && !json.Valid(document) {
			t.Fatalf("%q is not JSON and was read", document)
		}
		written, err := Append(nil, s, awsshape.ValueOf(object))
		if err != nil {
			t.Fatalf("%q: cannot be written again: %v", document, err)
		}
		again, err := Read(s, written, awsshape.Limits{Depth: 4, Items: 3, Value: 40})
		if err != nil {
			t.Fatalf("%q was written as %q: %v", document, written, err)
		}
		if diff := cmp.Diff(object, again, cmpopts.EquateNaNs(), cmpopts.EquateApproxTime(time.Millisecond)); diff != "" {
			t.Fatalf("%q was written as %q:\n%s", document, written, diff)
		}
	})
}
