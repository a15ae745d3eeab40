// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// variable is what may stand between {{ and }}.
type variable string

const (
	varNone           variable = ""
	varPrivateDNSName variable = "EC2PrivateDNSName"
	varAccountID      variable = "AccountID"
	varSessionName    variable = "SessionName"    // with - in place of @
	varSessionNameRaw variable = "SessionNameRaw" // as it is
	varAccessKeyID    variable = "AccessKeyID"
)

// part of a template is text, or a variable.
type part struct {
	text     string
	variable variable
}

// template is the name of a user or a group in which variables may stand.
type template struct {
	source string
	parts  []part
}

const (
	maxName       = 512
	variablesHint = "the variables are {{EC2PrivateDNSName}}, {{AccountID}}, {{SessionName}}, {{SessionNameRaw}} and {{AccessKeyID}}, written without blanks"
)

// parseTemplate reads a template. The error has the problem and the fix.
func parseTemplate(s string) (template, *fault) {
	t := template{source: s}
	switch {
	case s == "":
		return t, &fault{"is empty", "give a name"}
	case len(s) > maxName:
		return t, &fault{fmt.Sprintf("is %d bytes long", len(s)), fmt.Sprintf("at most %d are allowed", maxName)}
	case !utf8.ValidString(s), strings.ContainsFunc(s, unicode.IsControl):
		return t, &fault{fmt.Sprintf("has characters in it that no name has: %q", s), "write a name in plain text"}
	case strings.TrimSpace(s) != s:
		return t, &fault{fmt.Sprintf("has blanks at its ends: %q", s), "remove them"}
	}
	for rest := s; rest != ""; {
		text, after, found := strings.Cut(rest, "{{")
		if strings.ContainsAny(text, "{}") {
			return t, &fault{fmt.Sprintf("has a brace in it that belongs to no variable: %q", s), variablesHint}
		}
		if text != "" {
			t.parts = append(t.parts, part{text: text})
		}
		if !found {
			break
		}
		name, after, found := strings.Cut(after, "}}")
		v := variable(name)
		switch v {
		case varPrivateDNSName, varAccountID, varSessionName, varSessionNameRaw, varAccessKeyID:
		case varNone:
			found = false
		default:
			found = false
		}
		if !found {
			return t, &fault{fmt.Sprintf("has a variable in it that there is not: %q", s), variablesHint}
		}
		t.parts = append(t.parts, part{variable: v})
		rest = after
	}
	return t, nil
}

// literal reports whether nothing is to be filled in.
func (t template) literal() bool { return len(t.parts) == 1 && t.parts[0].variable == varNone }

func (t template) uses(vs ...variable) bool {
	for _, p := range t.parts {
		if slices.Contains(vs, p.variable) {
			return true
		}
	}
	return false
}

// start is the text it begins with, which no principal has a say in.
func (t template) start() string {
	if len(t.parts) == 0 {
		return ""
	}
	return t.parts[0].text
}

// colonBefore reports whether there is a colon in the text before the first of the variables.
func (t template) colonBefore(vs ...variable) bool {
	for _, p := range t.parts {
		if slices.Contains(vs, p.variable) {
			return false
		}
		if strings.Contains(p.text, ":") {
			return true
		}
	}
	return true
}

// fault is a problem and its fix.
type fault struct{ saw, fix string }
