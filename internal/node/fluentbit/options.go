// SPDX-License-Identifier: Apache-2.0

package fluentbit

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/internal/platform/regexpsize"
)

// mostSteps bounds a regular expression, in instructions: a match takes that times the bytes of a line.
const mostSteps = 1000

// options are the entries of a section while they are read. The first problem counts.
type options struct {
	*section

	left    []entry
	problem error
}

func optionsOf(s *section) *options { return &options{section: s, left: slices.Clone(s.entries)} }

func (o *options) fail(line int, format string, args ...any) {
	if o.problem == nil {
		o.problem = o.errorf(line, format, args...)
	}
}

// take takes all entries of a key, whose capitals do not matter.
func (o *options) take(key string) (taken []entry) {
	o.left = slices.DeleteFunc(o.left, func(e entry) bool {
		if !strings.EqualFold(e.key, key) {
			return false
		}
		taken = append(taken, e)
		return true
	})
	return taken
}

// single takes the entry of a key that may be there once.
func (o *options) single(key string) (entry, bool) {
	taken := o.take(key)
	if len(taken) > 1 {
		o.fail(taken[1].line, "%s is there twice", key)
	}
	if len(taken) == 0 {
		return entry{line: o.line}, false
	}
	return taken[0], true
}

func (o *options) text(key string) string {
	e, _ := o.single(key)
	return e.value
}

// required is the value of a key that must be there.
func (o *options) required(key string) string {
	e, ok := o.single(key)
	if !ok {
		o.fail(o.line, "[%s] has no %s", o.name, key)
	}
	return e.value
}

func (o *options) boolean(key string, otherwise bool) bool {
	e, ok := o.single(key)
	if !ok {
		return otherwise
	}
	switch strings.ToLower(e.value) {
	case "on", "true", "yes":
		return true
	case "off", "false", "no":
		return false
	}
	o.fail(e.line, "%s is %.40q: it is On or Off", key, e.value)
	return otherwise
}

// number is a whole number from least up to most.
func (o *options) number(key string, otherwise, least, most int) int {
	e, ok := o.single(key)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(e.value)
	if err != nil || n < least || n > most {
		o.fail(e.line, "%s is %.40q: it is a number from %d to %d", key, e.value, least, most)
		return otherwise
	}
	return n
}

// words splits the value of an entry into so many words, the last of which is the rest.
func (o *options) words(e entry, n int) []string {
	var words []string
	rest := e.value
	for len(words) < n-1 {
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			break
		}
		words, rest = append(words, rest[:end]), strings.TrimSpace(rest[end:])
	}
	if words = append(words, rest); len(words) < n || rest == "" {
		o.fail(e.line, "%s needs %d words", e.key, n)
		return make([]string, n)
	}
	return words
}

// expression compiles a regular expression. Fluent Bit has Ruby's: syntax that Go's lack is refused.
func (o *options) expression(line int, text string) *regexp.Regexp {
	if len(text) > 1 && text[0] == '/' && text[len(text)-1] == '/' {
		text = text[1 : len(text)-1]
	}
	steps, err := regexpsize.Of(text)
	if err == nil && steps > mostSteps {
		o.fail(line, "the regular expression has %d steps, its repetitions written out: at most %d are allowed", steps, mostSteps)
		return nil
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		o.fail(line, "the regular expression is not one of those that are here, which are Go's: %v", err)
		return nil
	}
	return compiled
}

// accept takes keys that are right and change nothing here.
func (o *options) accept(keys ...string) {
	for _, key := range keys {
		o.take(key)
	}
}

// owned refuses keys that are the router's own.
func (o *options) owned(keys ...string) {
	for _, key := range keys {
		if taken := o.take(key); len(taken) > 0 {
			o.fail(taken[0].line, "%s must not be specified: it is the log router's own", key)
		}
	}
}

// end refuses what is left.
func (o *options) end(plugin string) error {
	if len(o.left) > 0 {
		o.fail(o.left[0].line, "the key %.60q of %s is not supported", o.left[0].key, plugin)
	}
	return o.problem
}
