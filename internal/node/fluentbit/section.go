// SPDX-License-Identifier: Apache-2.0

package fluentbit

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// entry is a key and its value, which is the rest of the line.
type entry struct {
	key, value string
	line       int
}

// section is a directive such as [OUTPUT] with the entries that are indented below it.
type section struct {
	file, name string
	line       int
	entries    []entry
}

func (s *section) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", s.file, line, fmt.Sprintf(format, args...))
}

// sections reads a text of Fluent Bit's classic format, all of whose sections have one name.
func sections(file, text, name string) ([]section, error) {
	r := reading{file: file, name: name, directives: -1, keys: -1}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if err := r.line(number, strings.TrimRight(line, " \t\r\n")); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, number, err)
		}
	}
	return r.found, nil
}

// reading is how far a text was read.
type reading struct {
	file, name       string
	directives, keys int // their indentation; -1 before the first
	found            []section
}

func (r *reading) line(number int, line string) error {
	trimmed := strings.TrimLeft(line, " \t")
	indentation := len(line) - len(trimmed)
	switch {
	case trimmed == "" || trimmed[0] == '#':
		return nil
	case !utf8.ValidString(line) || strings.ContainsFunc(trimmed, control):
		return fmt.Errorf("it has characters that are no text")
	case strings.Contains(line, "${"):
		return fmt.Errorf("environment variables, ${…}, are not allowed")
	case trimmed[0] == '@':
		return fmt.Errorf("commands such as %.40q are not allowed", trimmed)
	case trimmed[0] == '[':
		return r.directive(number, trimmed, indentation)
	}
	return r.entry(number, trimmed, indentation)
}

func control(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

func (r *reading) directive(number int, text string, indentation int) error {
	name, ok := strings.CutSuffix(text[1:], "]")
	if !ok {
		return fmt.Errorf("the section %.40q has no ] at its end", text)
	}
	if !strings.EqualFold(name, r.name) {
		return fmt.Errorf("the section [%.40s] is not allowed here: %s has [%s] alone", name, r.file, r.name)
	}
	if r.directives < 0 {
		r.directives = indentation
	}
	if indentation != r.directives {
		return fmt.Errorf("the section is indented by %d characters, and the first one by %d: all need the same", indentation, r.directives)
	}
	r.found = append(r.found, section{file: r.file, name: r.name, line: number})
	return nil
}

func (r *reading) entry(number int, text string, indentation int) error {
	if len(r.found) == 0 {
		return fmt.Errorf("it is before the first section: begin with [%s]", r.name)
	}
	if r.keys < 0 {
		r.keys = indentation
	}
	switch {
	case indentation <= r.directives:
		return fmt.Errorf("the key is not indented more than its section")
	case indentation != r.keys:
		return fmt.Errorf("the key is indented by %d characters, and the first one by %d: all need the same", indentation, r.keys)
	}
	end := strings.IndexAny(text, " \t")
	if end < 0 {
		return fmt.Errorf("the key %.60q has no value", text)
	}
	last := &r.found[len(r.found)-1]
	last.entries = append(last.entries, entry{key: text[:end], value: strings.TrimSpace(text[end:]), line: number})
	return nil
}
