// SPDX-License-Identifier: Apache-2.0

package ec2filter

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var instance = Resource{
	Values: func(name string) []string {
		return map[string][]string{
			"instance-state-name": {"running"}, "vpc-id": {"vpc-1"}, "group-id": {"sg-1", "sg-2"}, "name": {`a*b\c`}, "empty": {""},
		}[name]
	},
	Tags: map[string]string{"Name": "web-1", "team": "Ünïcode", "blank": "", "aws:eks:cluster-name": "prod"},
}

var rules = Rules{Names: []string{"instance-state-name", "vpc-id", "group-id", "name", "empty", "absent"}, Tags: true}

func TestFilters(t *testing.T) {
	for name, c := range map[string]struct {
		filters []Filter
		want    bool
	}{
		"none":                         {nil, true},
		"a value":                      {[]Filter{{"vpc-id", []string{"vpc-1"}}}, true},
		"another value":                {[]Filter{{"vpc-id", []string{"vpc-2"}}}, false},
		"one of several values":        {[]Filter{{"vpc-id", []string{"vpc-2", "vpc-1"}}}, true},
		"one of the resource's values": {[]Filter{{"group-id", []string{"sg-2"}}}, true},
		"all filters":                  {[]Filter{{"vpc-id", []string{"vpc-1"}}, {"group-id", []string{"sg-1"}}}, true},
		"one filter is not enough":     {[]Filter{{"vpc-id", []string{"vpc-1"}}, {"group-id", []string{"sg-3"}}}, false},
		"the same name twice":          {[]Filter{{"group-id", []string{"sg-1"}}, {"group-id", []string{"sg-2"}}}, true},
		"case":                         {[]Filter{{"instance-state-name", []string{"Running"}}}, false},
		"nothing there":                {[]Filter{{"absent", []string{"*"}}}, false},
		"an empty value":               {[]Filter{{"empty", []string{""}}}, true},
		"star":                         {[]Filter{{"vpc-id", []string{"vpc-*"}}}, true},
		"star is none, too":            {[]Filter{{"vpc-id", []string{"vpc-1*"}}}, true},
		"star alone":                   {[]Filter{{"empty", []string{"*"}}}, true},
		"stars":                        {[]Filter{{"instance-state-name", []string{"*n*n*"}}}, true},
		"too many letters":             {[]Filter{{"instance-state-name", []string{"*n*n*n*n*"}}}, false},
		"question mark":                {[]Filter{{"vpc-id", []string{"vpc-?"}}}, true},
		"question mark is one":         {[]Filter{{"vpc-id", []string{"vpc-1?"}}}, false},
		"a character is not a byte":    {[]Filter{{"tag:team", []string{"?n?code"}}}, true},
		"escaped star":                 {[]Filter{{"name", []string{`a\*b*`}}}, true},
		"escaped star is no wildcard":  {[]Filter{{"vpc-id", []string{`vpc\*`}}}, false},
		"escaped backslash":            {[]Filter{{"name", []string{`a*\\c`}}}, true},
		"a backslash before a letter":  {[]Filter{{"name", []string{`a*b\c`}}}, true},
		"a tag":                        {[]Filter{{"tag:Name", []string{"web-1"}}}, true},
		"a tag with a colon":           {[]Filter{{"tag:aws:eks:cluster-name", []string{"prod"}}}, true},
		"a tag without a value":        {[]Filter{{"tag:blank", []string{""}}}, true},
		"a tag that is not there":      {[]Filter{{"tag:nowhere", []string{""}}}, false},
		"a tag's key has no wildcard":  {[]Filter{{"tag:Na*", []string{"web-1"}}}, false},
		"tag-key":                      {[]Filter{{"tag-key", []string{"Na*"}}}, true},
		"tag-value":                    {[]Filter{{"tag-value", []string{"web-?"}}}, true},
		"tag and tag-key":              {[]Filter{{"tag-key", []string{"Name"}}, {"tag:team", []string{"x"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := rules.Compile(c.filters)
			if err != nil {
				t.Fatal(err)
			}
			if got := set.Match(instance); got != c.want {
				t.Errorf("%v: %v, want %v", c.filters, got, c.want)
			}
		})
	}
}

func TestRefusedFilters(t *testing.T) {
	many := make([]string, maxValues+1)
	for name, c := range map[string]struct {
		rules   Rules
		filters []Filter
		want    string
	}{
		"unknown":             {rules, []Filter{{"colour", []string{"red"}}}, "InvalidParameterValue: The filter 'colour' is invalid"},
		"case of the name":    {rules, []Filter{{"VPC-ID", []string{"vpc-1"}}}, "The filter 'VPC-ID' is invalid"},
		"without a name":      {rules, []Filter{{"", []string{"x"}}}, "The filter '' is invalid"},
		"a tag without a key": {rules, []Filter{{"tag:", []string{"x"}}}, "The filter 'tag:' is invalid"},
		"no tags":             {Rules{Names: []string{"vpc-id"}}, []Filter{{"tag:Name", []string{"x"}}}, "The filter 'tag:Name' is invalid"},
		"no values":           {rules, []Filter{{"vpc-id", nil}}, "InvalidParameterValue: The filter 'vpc-id' has no values"},
		"too many values":     {rules, []Filter{{"vpc-id", many}}, "FilterLimitExceeded"},
		"too many filters":    {rules, slices.Repeat([]Filter{{"vpc-id", []string{"x"}}}, maxFilters+1), "FilterLimitExceeded"},
		"a long value":        {rules, []Filter{{"vpc-id", []string{strings.Repeat("x", maxBytes+1)}}}, "InvalidParameterValue: A value"},
		"a long name":         {rules, []Filter{{strings.Repeat("x", 1000), []string{"x"}}}, "xxx…' is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.rules.Compile(c.filters)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// Auto Scaling takes stars as they are.
func TestExactFilters(t *testing.T) {
	set, err := Rules{Tags: true, Exact: true}.Compile([]Filter{{"tag:k", []string{`a*\?`}}})
	if err != nil {
		t.Fatal(err)
	}
	if set.Match(Resource{Tags: map[string]string{"k": "abc?"}}) || !set.Match(Resource{Tags: map[string]string{"k": `a*\?`}}) {
		t.Error("a star is a wildcard")
	}
}

func TestLookUp(t *testing.T) {
	set, err := rules.Compile([]Filter{{"vpc-id", []string{"vpc-1", `v\*`}}, {"group-id", []string{"sg-*"}}, {"tag:name", []string{"x"}}})
	if err != nil {
		t.Fatal(err)
	}
	if values, ok := set.Exact("vpc-id"); !ok || !slices.Equal(values, []string{"vpc-1", "v*"}) {
		t.Errorf("vpc-id: %q, %v", values, ok)
	}
	for _, name := range []string{"group-id", "name", "tag:"} {
		if values, ok := set.Exact(name); ok {
			t.Errorf("%s: %q", name, values)
		}
	}
}

// A pattern means what the regular expression means.
func FuzzPattern(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Add(`\*\?\\`, `*?\`)
	f.Add("*a*a*a*a*a*a*b", strings.Repeat("a", 60))
	f.Fuzz(func(t *testing.T, value, text string) {
		if len(value) > 200 || len(text) > 200 {
			return
		}
		value, text = strings.ToValidUTF8(value, "."), strings.ToValidUTF8(text, ".")
		var expression strings.Builder
		expression.WriteString(`(?s)\A`)
		for runes := []rune(value); len(runes) > 0; runes = runes[1:] {
			switch {
			case runes[0] == '\\' && len(runes) > 1 && strings.ContainsRune(`*?\`, runes[1]):
				runes = runes[1:]
				expression.WriteString(regexp.QuoteMeta(string(runes[0])))
			case runes[0] == '*':
				expression.WriteString(`.*`)
			case runes[0] == '?':
				expression.WriteString(`.`)
			default:
				expression.WriteString(regexp.QuoteMeta(string(runes[0])))
			}
		}
		expression.WriteString(`\z`)
		want := regexp.MustCompile(expression.String()).MatchString(text)
		if got := read(value, false).match(text); got != want {
			t.Errorf("%q on %q: %v, want %v", value, text, got, want)
		}
		if !read(text, true).match(text) {
			t.Errorf("%q is not itself", text)
		}
	})
}
