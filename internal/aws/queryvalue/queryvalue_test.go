// SPDX-License-Identifier: Apache-2.0

package queryvalue

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
)

const table = `service test query 1
operation Do All -
structure All
 Name string
 Count integer
 Flag boolean
 Raw blob
 At timestamp
 Tags TagList
 Flat Texts flatin flatout in=Flt out=flt
 Deep Texts out=deepSet
 Attributes Pairs
 Self All
structure Tag
 Key string
 Value string
list TagList Tag
list Texts string in=item out=item
map Pairs string
`

func shape(tb testing.TB) *awsshape.Shape {
	tb.Helper()
	service, err := awsshape.Parse(table)
	if err != nil {
		tb.Fatal(err)
	}
	return service.Shape("All")
}

var codes = Codes{Malformed: "Malformed", Value: "Value"}

func limits() awsshape.Limits { return awsshape.Limits{Depth: 5, Items: 3, Params: 6, Value: 30} }

func read(s *awsshape.Shape, body string) (awsshape.Object, []string, error) {
	form, err := Parse([]byte(body), limits(), codes)
	if err != nil {
		return nil, nil, err
	}
	return form.Read(s)
}

func TestRead(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_500).UTC()
	for name, c := range map[string]struct {
		body    string
		want    awsshape.Object
		unknown []string
		problem string
	}{
		"nothing":             {body: "", want: awsshape.Object{}},
		"action alone":        {body: "Action=Do&Version=1", want: awsshape.Object{}},
		"scalars":             {body: "Name=a+b%2B&Count=-1&Flag=true&Raw=aGk%3D", want: awsshape.Object{"Name": "a b+", "Count": int64(-1), "Flag": true, "Raw": []byte("hi")}},
		"empty text":          {body: "Name=", want: awsshape.Object{"Name": ""}},
		"no equals sign":      {body: "Name", want: awsshape.Object{"Name": ""}},
		"time":                {body: "At=2023-11-14T22:13:20.5Z", want: awsshape.Object{"At": at}},
		"list":                {body: "Tags.member.1.Key=a&Tags.member.1.Value=b&Tags.member.2.Key=c", want: awsshape.Object{"Tags": []any{awsshape.Object{"Key": "a", "Value": "b"}, awsshape.Object{"Key": "c"}}}},
		"list with gaps":      {body: "Deep.item.10=c&Deep.item.2=b", want: awsshape.Object{"Deep": []any{"b", "c"}}},
		"flat list":           {body: "Flt.1=a&Flt.2=b", want: awsshape.Object{"Flat": []any{"a", "b"}}},
		"empty list":          {body: "Deep=&Flt=", want: awsshape.Object{"Deep": []any{}, "Flat": []any{}}},
		"map":                 {body: "Attributes.entry.1.key=a&Attributes.entry.1.value=b", want: awsshape.Object{"Attributes": awsshape.Object{"a": "b"}}},
		"below":               {body: "Self.Self.Name=a", want: awsshape.Object{"Self": awsshape.Object{"Self": awsshape.Object{"Name": "a"}}}},
		"unknown":             {body: "Nme=a&Self.X.1=b&Self.X.2=&Flat.1=a", want: awsshape.Object{"Self": awsshape.Object{}}, unknown: []string{"Flat.1", "Nme", "Self.X.1", "Self.X.2"}},
		"parts of an action":  {body: "Action.1=Do", want: awsshape.Object{}, unknown: []string{"Action.1"}},
		"number":              {body: "Count=many", problem: `Value: the parameter Count: "many" is not a whole number of 32 bits`},
		"flag":                {body: "Flag=1", problem: "Value: the parameter Flag"},
		"parts of a scalar":   {body: "Name.1=a", problem: "Value: the parameter Name is one value"},
		"both":                {body: "Name=a&Name.1=a", problem: "Value: the parameter Name is one value"},
		"value of a struct":   {body: "Self=a", problem: "Value: the parameter Self is a structure"},
		"value of a list":     {body: "Deep=a", problem: "Value: the parameter Deep is a list: its items are Deep.item.1"},
		"flat, and has level": {body: "Flt.item.1=a", problem: "Value: the parameter Flt.item: items of a list are numbered from 1"},
		"level is missing":    {body: "Deep.1=a", problem: "Value: the parameter Deep is a list: its items are Deep.item.1"},
		"zero":                {body: "Flt.0=a", problem: "numbered from 1"},
		"leading zero":        {body: "Flt.01=a", problem: "numbered from 1"},
		"map without value":   {body: "Attributes.entry.1.key=a", problem: "has a key and a value"},
		"map's key twice":     {body: "Attributes.entry.1.key=a&Attributes.entry.1.value=&Attributes.entry.2.key=a&Attributes.entry.2.value=", problem: "a second time"},
		"twice":               {body: "Name=a&Name=b", problem: `Malformed: the parameter "Name" comes twice`},
		"twice by escapes":    {body: "Name=a&N%61me=b", problem: "comes twice"},
		"empty name":          {body: "=a", problem: "Malformed"},
		"empty part":          {body: "Self..Name=a", problem: "is not the name of a parameter"},
		"escape":              {body: "Name=%4", problem: "Malformed"},
		"not UTF-8":           {body: "Name=%ff", problem: "is not UTF-8"},
		"many":                {body: strings.Repeat("a=&", 7), problem: "there are 8 parameters"},
		"long":                {body: "Name=" + strings.Repeat("a", 31), problem: "is 31 bytes long"},
		"deep":                {body: strings.Repeat("Self.", 11) + "Name=a", problem: "more than 10 parts"},
		"wide":                {body: "a.1.2.3.4=&b.1.2.3.4=&c.1.2.3.4=&d.1.2.3.4=&e.1.2.3.4=&f.1.2.3.4=", problem: "more than 24 different parts"},
		"items":               {body: "Flt.1=&Flt.2=&Flt.3=&Flt.4=", problem: "more than 3 items"},
	} {
		t.Run(name, func(t *testing.T) {
			got, unknown, err := read(shape(t), c.body)
			if c.problem != "" {
				var refused *awsfault.Error
				if !errors.As(err, &refused) || !strings.Contains(refused.Error(), c.problem) {
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
			if !slices.Equal(c.unknown, unknown) {
				t.Errorf("unknown are %q, want %q", unknown, c.unknown)
			}
		})
	}
}

func TestAppend(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_500).UTC()
	got, err := Append(nil, shape(t), awsshape.ValueOf(awsshape.Object{
		"Name": "a<b>&\"'\r\n\x00\xffé\uffff", "Raw": []byte("hi"), "At": at, "Tags": []any{awsshape.Object{"Key": "k", "Value": ""}},
		"Flat": []any{"x", "y"}, "Deep": []any{}, "Attributes": awsshape.Object{"b": "2", "a": "1"}, "Self": awsshape.Object{"Flag": false},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := "<Name>a&lt;b&gt;&amp;&quot;&apos;&#xD;\n\ufffd\ufffdé\ufffd</Name><Raw>aGk=</Raw><At>2023-11-14T22:13:20.500Z</At>" +
		"<Tags><member><Key>k</Key><Value></Value></member></Tags><flt>x</flt><flt>y</flt><deepSet></deepSet>" +
		"<Attributes><entry><key>a</key><value>1</value></entry><entry><key>b</key><value>2</value></entry></Attributes><Self><Flag>false</Flag></Self>"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	for _, wrong := range []awsshape.Object{{"Count": "1"}, {"Deep": "a"}, {"Attributes": []any{}}, {"Self": 3}, {"Nme": ""}} {
		if got, err := Append(nil, shape(t), awsshape.ValueOf(wrong)); err == nil {
			t.Errorf("%v was written as %s", wrong, got)
		}
	}
}

// Whatever a form says, it is read or refused, and what is read is written as XML that can be read.
func FuzzForm(f *testing.F) {
	f.Add("Action=Do&Version=1&Name=a&Tags.member.1.Key=%3C&Flt.1=a&Deep.item.2=b")
	f.Add("Attributes.entry.1.key=a&Attributes.entry.1.value=b&Self.At=2023-11-14T22:13:20Z&Raw=aGk%3D")
	s := shape(f)
	f.Fuzz(func(t *testing.T, body string) {
		object, _, err := read(s, body)
		if err != nil {
			var refused *awsfault.Error
			if !errors.As(err, &refused) || refused.Message == "" {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		written, err := Append(nil, s, awsshape.ValueOf(object))
		if err != nil {
			t.Fatalf("%q: cannot be written: %v", body, err)
		}
		for decoder := xml.NewDecoder(strings.NewReader(string(written))); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%q was written as %q: %v", body, written, err)
			}
		}
	})
}
