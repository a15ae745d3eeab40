// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// commandLine returns the arguments of the muster program that answer a call, or an error of one line.
func (t tool) commandLine(raw json.RawMessage) ([]string, error) {
	given := map[string]json.RawMessage{}
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 {
		if err := json.Unmarshal(trimmed, &given); err != nil {
			return nil, errors.New("the arguments are not a JSON object")
		}
	}
	for name := range given {
		if !slices.ContainsFunc(t.arguments, func(a argument) bool { return a.name == name }) {
			return nil, fmt.Errorf("%s takes no argument %.60q; it takes: %s", t.name, name, t.names())
		}
	}
	line := append(slices.Clone(t.command), "--output=json")
	var words []string
	for _, a := range t.arguments {
		value, err := a.read(given[a.name])
		switch {
		case err != nil:
			return nil, err
		case value == "" && a.required:
			return nil, fmt.Errorf("the argument %s is missing: %s", a.name, a.description)
		case value == "":
		case a.flag == "":
			words = append(words, value)
		default:
			line = append(line, a.flag+"="+value)
		}
	}
	if t.name == "explain" && len(words) == 1 {
		return nil, errors.New("kind and name go together: give both, or neither for all that is wrong")
	}
	if t.name == "log_query" && len(given["limit"]) == 0 {
		line = append(line, "--limit="+usualRows)
	}
	if len(words) > 0 {
		line = append(append(line, "--"), words...)
	}
	return line, nil
}

// names are those of the arguments.
func (t tool) names() string {
	names := make([]string, len(t.arguments))
	for i, a := range t.arguments {
		names[i] = a.name
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// read returns the value of an argument; empty for one that is not given.
func (a argument) read(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	if a.number {
		var n int
		if json.Unmarshal(raw, &n) != nil || n < 1 || n > a.most {
			return "", fmt.Errorf("invalid %s %.60q: must be a whole number from 1 to %d", a.name, raw, a.most)
		}
		return strconv.Itoa(n), nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", fmt.Errorf("invalid %s %.60q: must be a string", a.name, raw)
	}
	switch {
	case len(a.values) > 0 && text != "" && !slices.Contains(a.values, text):
		return "", fmt.Errorf("invalid %s %.60q: must be one of %s", a.name, text, strings.Join(a.values, ", "))
	case len(a.values) == 0 && len(text) > a.most:
		return "", fmt.Errorf("invalid %s: it has %d bytes, and may have %d", a.name, len(text), a.most)
	case !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError):
		return "", fmt.Errorf("invalid %s %.60q: must be UTF-8", a.name, text)
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && (!a.lines || r != '\n' && r != '\t') }):
		return "", fmt.Errorf("invalid %s %.60q: must not have control characters", a.name, text)
	}
	return text, nil
}
