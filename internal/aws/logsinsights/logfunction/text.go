// SPDX-License-Identifier: Apache-2.0

package logfunction

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// maxText is the length in bytes that replace and concat may grow a text to: a log event of CloudWatch has at most as many.
const maxText = 1 << 20

func texts() map[string]Function {
	return map[string]Function{
		"isempty": {Least: 1, Most: 1, Apply: isEmpty},
		"isblank": {Least: 1, Most: 1, Apply: isBlank},
		"concat":  {Least: 1, Most: -1, Apply: concat},
		"ltrim":   trimmer(strings.TrimLeftFunc, strings.TrimLeft),
		"rtrim":   trimmer(strings.TrimRightFunc, strings.TrimRight),
		"trim":    trimmer(strings.TrimFunc, strings.Trim),
		"strlen": plain(1, 1, func(a []logvalue.Value) logvalue.Value {
			return logvalue.Number(float64(utf8.RuneCountInString(a[0].String())))
		}),
		"toupper": mapped(strings.ToUpper),
		"tolower": mapped(strings.ToLower),
		"substr":  plain(2, 3, substring),
		"replace": plain(3, 3, replace),
		"split":   plain(2, 2, split),
		"strcontains": plain(2, 3, func(a []logvalue.Value) logvalue.Value {
			return oneOrZero(contains(a, strings.Contains))
		}),
		"startsWith": plain(2, 2, func(a []logvalue.Value) logvalue.Value { return oneOrZero(contains(a, strings.HasPrefix)) }),
		"endsWith":   plain(2, 2, func(a []logvalue.Value) logvalue.Value { return oneOrZero(contains(a, strings.HasSuffix)) }),
	}
}

func oneOrZero(holds bool) logvalue.Value {
	if holds {
		return logvalue.Number(1)
	}
	return logvalue.Number(0)
}

func isEmpty(_ Context, a []logvalue.Value) logvalue.Value {
	return oneOrZero(a[0].String() == "")
}

func isBlank(_ Context, a []logvalue.Value) logvalue.Value {
	return oneOrZero(strings.TrimSpace(a[0].String()) == "")
}

func concat(_ Context, a []logvalue.Value) logvalue.Value {
	var all strings.Builder
	for _, part := range a {
		if text := part.String(); all.Len()+len(text) <= maxText {
			all.WriteString(text)
		}
	}
	return logvalue.Text(all.String())
}

func trimmer(space func(string, func(rune) bool) string, characters func(s, cut string) string) Function {
	return plain(1, 2, func(a []logvalue.Value) logvalue.Value {
		if len(a) == 2 {
			return logvalue.Text(characters(a[0].String(), a[1].String()))
		}
		return logvalue.Text(space(a[0].String(), unicode.IsSpace))
	})
}

func mapped(change func(string) string) Function {
	return plain(1, 1, func(a []logvalue.Value) logvalue.Value { return logvalue.Text(change(a[0].String())) })
}

// contains looks for the second argument in the first, and ignores case if the third one is true.
func contains(a []logvalue.Value, has func(s, part string) bool) bool {
	if len(a) == 3 && a[2].Truth() {
		return has(strings.ToLower(a[0].String()), strings.ToLower(a[1].String()))
	}
	return has(a[0].String(), a[1].String())
}

// substring returns the code points from a position on, counted from 0, and at most as many as the third argument says.
func substring(a []logvalue.Value) logvalue.Value {
	from, ok := a[1].Number()
	if !ok {
		return logvalue.Null()
	}
	runes := []rune(a[0].String())
	start := int(min(max(from, 0), float64(len(runes))))
	end := len(runes)
	if len(a) == 3 {
		length, ok := a[2].Number()
		if !ok {
			return logvalue.Null()
		}
		end = start + int(min(max(length, 0), float64(len(runes)-start)))
	}
	return logvalue.Text(string(runes[start:end]))
}

// replace replaces each occurrence. An empty text is searched for in vain, and a result that would be longer than a log event
// can be is Null.
func replace(a []logvalue.Value) logvalue.Value {
	text, old, fresh := a[0].String(), a[1].String(), a[2].String()
	if old == "" {
		return logvalue.Text(text)
	}
	if grown := strings.Count(text, old) * (len(fresh) - len(old)); grown > maxText {
		return logvalue.Null()
	}
	return logvalue.Text(strings.ReplaceAll(text, old, fresh))
}

func split(a []logvalue.Value) logvalue.Value {
	var list []logvalue.Value
	for part := range strings.SplitSeq(a[0].String(), a[1].String()) {
		list = append(list, logvalue.Text(part))
	}
	return logvalue.List(list)
}
