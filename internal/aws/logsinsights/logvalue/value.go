// SPDX-License-Identifier: Apache-2.0

package logvalue

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Kind is what a Value is.
type Kind int

// Kinds of values. A Null is a field that the event lacks.
const (
	KindNull Kind = iota
	KindText
	KindNumber
	KindBool
	KindTime
	KindList
	KindMap
)

// TimeFormat is how timestamps are printed, in UTC, as GetQueryResults of CloudWatch Logs prints them.
const TimeFormat = "2006-01-02 15:04:05.000"

// exactIntegers is the first integer whose successor float64 cannot represent.
const exactIntegers = 1 << 53

// Value is a value of the query language. The zero Value is Null. Values are immutable.
type Value struct {
	kind   Kind
	text   string  // of a KindText, and of a KindNumber as the log or the query spells it; else empty
	number float64 // of a KindNumber; 1 or 0 of a KindBool; milliseconds since the epoch of a KindTime
	list   []Value
	fields map[string]Value
}

// Null returns the value of a missing field.
func Null() Value { return Value{} }

// Text returns a string.
func Text(s string) Value { return Value{kind: KindText, text: s} }

// Number returns a number, or Null for infinities and for what is not a number.
func Number(f float64) Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Null()
	}
	return Value{kind: KindNumber, number: f}
}

// Spelled returns a number that is printed as text spells it, or the text itself if it is not a decimal number.
func Spelled(text string) Value {
	f, ok := ParseNumber(text)
	if !ok {
		return Text(text)
	}
	return Value{kind: KindNumber, text: text, number: f}
}

// Bool returns a boolean.
func Bool(b bool) Value {
	if b {
		return Value{kind: KindBool, number: 1}
	}
	return Value{kind: KindBool}
}

// Time returns a timestamp of milliseconds since the epoch.
func Time(milliseconds int64) Value { return Value{kind: KindTime, number: float64(milliseconds)} }

// List returns a list. The caller leaves the slice to it.
func List(elements []Value) Value { return Value{kind: KindList, list: elements} }

// Map returns a map. The caller leaves the map to it.
func Map(fields map[string]Value) Value { return Value{kind: KindMap, fields: fields} }

// Kind returns what the value is.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether the value is that of a missing field.
func (v Value) IsNull() bool { return v.kind == KindNull }

// Number returns the number that the value is or spells. A boolean is 1 or 0, a timestamp its milliseconds since the epoch.
func (v Value) Number() (float64, bool) {
	switch v.kind {
	case KindNumber, KindBool, KindTime:
		return v.number, true
	case KindText:
		return ParseNumber(v.text)
	default:
		return 0, false
	}
}

// Truth reports whether the value satisfies a condition: true, a number other than 0, or the text true.
func (v Value) Truth() bool {
	if number, ok := v.Number(); ok {
		return number != 0
	}
	return v.kind == KindText && strings.EqualFold(v.text, "true")
}

// String returns the value as results print it: Null as the empty string, booleans as 1 and 0, timestamps by TimeFormat,
// lists and maps as JSON.
func (v Value) String() string {
	switch v.kind {
	case KindText:
		return v.text
	case KindNumber:
		if v.text != "" {
			return v.text
		}
		return formatNumber(v.number)
	case KindBool:
		return formatNumber(v.number)
	case KindTime:
		return time.UnixMilli(int64(v.number)).UTC().Format(TimeFormat)
	case KindList, KindMap:
		return string(appendJSON(nil, v))
	default:
		return ""
	}
}

// Elements returns the elements of a list, and the value itself as the only element if it is not a list.
func (v Value) Elements() []Value {
	if v.kind == KindList {
		return v.list
	}
	return []Value{v}
}

// Child returns the member of a map by its name, or of a list by its index from 0; Null if there is no such member.
func (v Value) Child(name string) Value {
	switch v.kind {
	case KindMap:
		return v.fields[name]
	case KindList:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v.list) {
			return v.list[i]
		}
	default:
	}
	return Null()
}

// Clone returns a value that shares no memory with the text that it was cut out of. Lists and maps are returned as they are.
func (v Value) Clone() Value {
	v.text = strings.Clone(v.text)
	return v
}

// valueSize is about what a Value takes besides its text.
const valueSize = 72

// Size returns about how many bytes of memory the value takes, with all that is in it.
func (v Value) Size() int {
	size := valueSize + len(v.text)
	for _, element := range v.list {
		size += element.Size()
	}
	for name, member := range v.fields {
		size += len(name) + member.Size()
	}
	return size
}

// Plain returns the text that comparisons of texts see. It differs from String for booleans, which are true and false.
func (v Value) Plain() string {
	if v.kind == KindBool {
		return strconv.FormatBool(v.number != 0)
	}
	return v.String()
}

// Equal reports whether two values are equal: as numbers if both are or spell numbers, else as texts. Null equals nothing.
func Equal(a, b Value) bool {
	if a.IsNull() || b.IsNull() {
		return false
	}
	x, isNumber := a.Number()
	y, bothNumbers := b.Number()
	if isNumber && bothNumbers {
		return x == y && (math.Abs(x) < exactIntegers || a.Plain() == b.Plain())
	}
	return a.Plain() == b.Plain()
}

// Compare returns -1, 0 or 1 as a is less than, equal to or greater than b: as numbers if both are or spell numbers, else as
// texts by their code points. The second result is false if either is Null: then no comparison holds.
func Compare(a, b Value) (int, bool) {
	if a.IsNull() || b.IsNull() {
		return 0, false
	}
	x, isNumber := a.Number()
	y, bothNumbers := b.Number()
	if !isNumber || !bothNumbers {
		return strings.Compare(a.Plain(), b.Plain()), true
	}
	switch {
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	default:
		return 0, true
	}
}

// ParseNumber reads a decimal number with an optional sign, fraction and exponent. Other spellings that Go knows, such as
// Inf and 0x10, are not numbers of the query language.
func ParseNumber(text string) (float64, bool) {
	if text == "" || len(text) > 400 || strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

func formatNumber(f float64) string {
	return strconv.FormatFloat(f, 'f', -1, 64)
}
