// SPDX-License-Identifier: Apache-2.0

package fluentbit

import (
	"regexp"
	"strconv"
	"strings"
)

// accessor finds a value in a record: KEY, $KEY, or $KEY['key'][0].
type accessor []string

var (
	accessorForm = regexp.MustCompile(`^\$[A-Za-z0-9_.@/-]+(\['[^']+'\]|\[[0-9]{1,4}\])*$`)
	accessorPart = regexp.MustCompile(`\['([^']+)'\]|\[([0-9]+)\]`)
)

// accessor reads one.
func (o *options) accessor(line int, text string) accessor {
	if !strings.HasPrefix(text, "$") {
		return accessor{text}
	}
	if !accessorForm.MatchString(text) {
		o.fail(line, "%.80q names no key: it is like $log or $kubernetes['labels']['app']", text)
		return nil
	}
	key, _, _ := strings.Cut(text[1:], "[")
	path := accessor{key}
	for _, part := range accessorPart.FindAllStringSubmatch(text, -1) {
		path = append(path, part[1]+part[2])
	}
	return path
}

func (a accessor) find(record Map) (any, bool) {
	var value any = record
	for _, key := range a {
		switch of := value.(type) {
		case Map:
			found, ok := of.Get(key)
			if !ok {
				return nil, false
			}
			value = found
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(of) { // ['-1'] is a key
				return nil, false
			}
			value = of[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// text is a value as filters match it; no object or list is text.
func (a accessor) text(record Map) (string, bool) {
	value, ok := a.find(record)
	if !ok {
		return "", false
	}
	switch value.(type) {
	case Map, []any, nil:
		return "", false
	}
	return textOf(value), true
}
