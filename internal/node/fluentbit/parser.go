// SPDX-License-Identifier: Apache-2.0

package fluentbit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// parser makes a record of a text.
type parser struct {
	expression *regexp.Regexp // nil for JSON
	timeKey    string
	timeFormat timeFormat
	keepTime   bool
	keepEmpty  bool
	types      map[string]string
}

// readParsers reads the parsers, by name.
func readParsers(text string) (map[string]*parser, error) {
	found, err := sections(ParsersKey, text, "PARSER")
	if err != nil {
		return nil, err
	}
	parsers := map[string]*parser{}
	for i := range found {
		name, p, err := readParser(&found[i])
		if err != nil {
			return nil, err
		}
		if parsers[name] != nil {
			return nil, found[i].errorf(found[i].line, "there is a parser %.60q already", name)
		}
		parsers[name] = p
	}
	return parsers, nil
}

func readParser(s *section) (string, *parser, error) {
	o := optionsOf(s)
	name, format, p := o.required("Name"), o.required("Format"), &parser{}
	if o.problem != nil {
		return "", nil, o.problem
	}
	switch strings.ToLower(format) {
	case "regex":
		if e, ok := o.single("Regex"); ok {
			p.expression = o.expression(e.line, e.value)
		} else {
			o.fail(s.line, "[PARSER] of the format regex has no Regex")
		}
		p.keepEmpty = !o.boolean("Skip_Empty_Values", true)
	case "json":
	default:
		o.fail(s.line, "the format %.40q is not supported: regex and json are", format)
	}
	p.timeKey, p.keepTime = o.text("Time_Key"), o.boolean("Time_Keep", false)
	if e, ok := o.single("Time_Format"); ok {
		var err error
		if p.timeFormat, err = readTimeFormat(e.value); err != nil {
			o.fail(e.line, "%v", err)
		}
	}
	p.types = readTypes(o)
	return name, p, o.end("the parser " + name)
}

// readTypes reads types of fields: KEY:TYPE KEY:TYPE.
func readTypes(o *options) map[string]string {
	types := map[string]string{}
	e, _ := o.single("Types")
	for word := range strings.FieldsSeq(e.value) {
		key, kind, _ := strings.Cut(word, ":")
		switch kind {
		case "integer", "float", "bool", "string", "hex":
			types[key] = kind
		default:
			o.fail(e.line, "the type of %.60q must be integer, float, bool, hex or string", word)
		}
	}
	return types
}

// parse makes a record of a text, with the time that it says, or the one that is given.
func (p *parser) parse(text string, at time.Time) (Map, time.Time, bool) {
	var fields Map
	if p.expression == nil {
		object, ok := readObject(text)
		if !ok {
			return nil, at, false
		}
		fields = object
	} else {
		found := p.expression.FindStringSubmatchIndex(text)
		if found == nil {
			return nil, at, false
		}
		for i, name := range p.expression.SubexpNames() {
			if name == "" || found[2*i] < 0 || found[2*i] == found[2*i+1] && !p.keepEmpty {
				continue
			}
			value := text[found[2*i]:found[2*i+1]]
			fields = append(fields, Pair{name, typed(value, p.types[name])})
		}
	}
	if p.timeKey == "" || p.timeFormat.layouts == nil && !p.timeFormat.epoch {
		return fields, at, true
	}
	said, ok := fields.Get(p.timeKey)
	if ok {
		if t, ok := p.timeFormat.parse(textOf(said), at); ok {
			at = t
		}
		if !p.keepTime {
			fields = fields.without(func(f Pair) bool { return f.Key == p.timeKey })
		}
	}
	return fields, at, true
}

func typed(text, kind string) any {
	switch kind {
	case "integer":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return json.Number(strconv.FormatInt(n, 10))
		}
	case "hex":
		if n, err := strconv.ParseInt(strings.TrimPrefix(text, "0x"), 16, 64); err == nil {
			return json.Number(strconv.FormatInt(n, 10))
		}
	case "float":
		var n json.Number
		if _, err := strconv.ParseFloat(text, 64); err == nil && json.Unmarshal([]byte(text), &n) == nil {
			return n
		}
	case "bool":
		if text == "true" || text == "false" {
			return text == "true"
		}
	}
	return text
}

// timeFormat is a format of strptime.
type timeFormat struct {
	layouts []string // of package time, with each way to write a zone
	epoch   bool     // seconds since 1970
	yearly  bool     // it says a year
}

// conversions are those of strptime as package time writes them.
var conversions = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'b': "Jan", 'h': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday",
	'T': "15:04:05", 'F': "2006-01-02", 'D': "01/02/06", 'R': "15:04", 'Z': "MST", 'n': " ", 't': " ", '%': "%",
}

// zones are the ways to write a zone that %z reads.
var zones = []string{"-0700", "Z07:00", "Z0700"}

func readTimeFormat(text string) (timeFormat, error) {
	if text == "%s" || text == "%s.%L" {
		return timeFormat{epoch: true}, nil
	}
	var layout strings.Builder
	zone := false
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			if text[i] >= '0' && text[i] <= '9' || text[i] == '_' {
				return timeFormat{}, fmt.Errorf("Time_Format %.60q has a digit or _ of its own, which is not supported", text)
			}
			_ = layout.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			return timeFormat{}, fmt.Errorf("Time_Format %.60q ends with %%", text)
		}
		said := layout.String()
		switch c := text[i]; {
		case c == 'z':
			zone = true
			_ = layout.WriteByte('\x00')
		case c == 'L' && (strings.HasSuffix(said, ".") || strings.HasSuffix(said, ",")):
			// Package time reads a fraction after seconds by itself.
			layout.Reset()
			_, _ = layout.WriteString(said[:len(said)-1])
		case conversions[c] != "":
			_, _ = layout.WriteString(conversions[c])
		default:
			return timeFormat{}, fmt.Errorf("%%%c of Time_Format %.60q is not supported", c, text)
		}
	}
	f := timeFormat{layouts: []string{layout.String()}, yearly: strings.ContainsAny(layout.String(), "6")}
	if zone {
		f.layouts = nil
		for _, z := range zones {
			f.layouts = append(f.layouts, strings.ReplaceAll(layout.String(), "\x00", z))
		}
	}
	return f, nil
}

// parse reads a time. Without a zone it is of UTC, and without a year of that of another time.
func (f timeFormat) parse(text string, near time.Time) (time.Time, bool) {
	if f.epoch {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !(seconds >= 0 && seconds <= 1<<33) { // nor NaN
			return near, false
		}
		return time.UnixMilli(int64(seconds * 1000)), true
	}
	for _, layout := range f.layouts {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		if !f.yearly {
			t = t.AddDate(near.UTC().Year()-t.Year(), 0, 0)
		}
		return t, true
	}
	return near, false
}
