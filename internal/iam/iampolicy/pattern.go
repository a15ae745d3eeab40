// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The wildcards of a glob. They are not characters, so text that came in by a variable can never be one of them.
const (
	star rune = -1 - iota
	single
)

// piece is text, with its wildcards already told apart, or a variable.
type piece struct {
	runes    []rune
	variable string  // the condition key, in small letters
	instead  *string // the text for a variable without a value: ${aws:PrincipalTag/team, 'none'}
}

// glob is a pattern for a text.
type glob []piece

// lookup finds the value of a variable.
type lookup func(key string) (string, bool)

// parseGlob reads a pattern. With wild, * and ? are wildcards. With variables, ${key} is replaced at each request, and
// ${*}, ${?} and ${$} are those characters themselves; without, which is the language of before 2012, ${ is text like
// any other.
func parseGlob(text string, wild, variables bool) (glob, error) {
	var g glob
	var runes []rune
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "${"); ok && variables {
			name, after, closed := strings.Cut(rest, "}")
			switch {
			case !closed:
				return nil, errors.New("the variable ${ has no closing brace")
			case name == "*" || name == "?" || name == "$":
				runes = append(runes, []rune(name)...)
			default:
				p, err := parseVariable(name)
				if err != nil {
					return nil, err
				}
				g = append(g, piece{runes: runes}, p)
				runes = nil
			}
			text = after
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		switch {
		case wild && r == '*':
			r = star
		case wild && r == '?':
			r = single
		}
		runes = append(runes, r)
	}
	return append(g, piece{runes: runes}), nil
}

// parseVariable reads what is in ${key} or ${key, 'default'}.
func parseVariable(text string) (piece, error) {
	name, rest, has := strings.Cut(text, ",")
	name = strings.TrimSpace(name)
	if err := CheckKey(name); err != nil {
		return piece{}, fmt.Errorf("the variable ${%.100s}: %w", text, err)
	}
	if t, _ := keyOf(name); t.many {
		return piece{}, fmt.Errorf("the variable ${%s} may have many values, so it cannot stand in a text", name)
	}
	p := piece{variable: strings.ToLower(name)}
	if has {
		rest = strings.TrimSpace(rest)
		if len(rest) < 2 || rest[0] != '\'' || rest[len(rest)-1] != '\'' {
			return piece{}, fmt.Errorf("the variable ${%.100s}: its default is written in single quotes", text)
		}
		instead := rest[1 : len(rest)-1]
		p.instead = &instead
	}
	return p, nil
}

// match reports whether the whole text fits; known is false if a variable has no value.
func (g glob) match(text string, find lookup) (fits, known bool) {
	pattern := g[0].runes
	if len(g) > 1 {
		pattern = nil
		for _, p := range g {
			pattern = append(pattern, p.runes...)
			if p.variable != "" {
				value, ok := find(p.variable)
				switch {
				case !ok && p.instead == nil:
					return false, false
				case !ok:
					value = *p.instead
				}
				pattern = append(pattern, []rune(value)...)
			}
		}
	}
	return matchRunes(pattern, []rune(text)), true
}

// matchRunes goes back to the last star only, so it takes len(pattern)*len(text) steps at most.
func matchRunes(pattern, text []rune) bool {
	p, t, lastStar, resume := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == star:
			lastStar, resume = p, t
			p++
		case p < len(pattern) && (pattern[p] == single || pattern[p] == text[t]):
			p++
			t++
		case lastStar >= 0:
			resume++
			p, t = lastStar+1, resume
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == star {
		p++
	}
	return p == len(pattern)
}

// pattern matches actions (one glob, of small letters) or ARNs (a glob for each of the six parts). Without globs it
// matches everything.
type pattern []glob

// parseAction reads "*" or "iam:Get*". The service is written out.
func parseAction(text string) (pattern, error) {
	if text == "*" {
		return nil, nil
	}
	service, action, ok := strings.Cut(text, ":")
	if !ok || service == "" || action == "" || strings.Trim(strings.ToLower(service), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return nil, errors.New(`an action is * or has the form service:Name, such as iam:GetUser or iam:Get*`)
	}
	if strings.ContainsFunc(action, func(r rune) bool { return r >= 0x80 || !letterOrDigit(r) && !strings.ContainsRune("*?-", r) }) {
		return nil, errors.New("the name of an action has letters, digits and dashes, * and ?")
	}
	g, err := parseGlob(strings.ToLower(text), true, false)
	return pattern{g}, err
}

func letterOrDigit(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// parseARNPattern reads "*" or six parts. Each part may have wildcards; only the last part may have colons.
func parseARNPattern(text string, variables bool) (pattern, error) {
	if text == "*" {
		return nil, nil
	}
	parts, err := splitARN(text, variables)
	if err != nil {
		return nil, err
	}
	p := make(pattern, 0, len(parts))
	for _, part := range parts {
		g, err := parseGlob(part, true, variables)
		if err != nil {
			return nil, err
		}
		p = append(p, g)
	}
	return p, nil
}

// splitARN cuts at the first five colons that are not inside a variable.
func splitARN(text string, variables bool) ([]string, error) {
	var parts []string
	rest, from := text, 0
	for len(parts) < 5 {
		i := strings.IndexAny(rest[from:], ":$")
		if i < 0 {
			break
		}
		i += from
		if variables && strings.HasPrefix(rest[i:], "${") {
			end := strings.IndexByte(rest[i:], '}')
			if end < 0 {
				return nil, errors.New("the variable ${ has no closing brace")
			}
			from = i + end + 1
			continue
		}
		if rest[i] == '$' {
			from = i + 1
			continue
		}
		parts, rest, from = append(parts, rest[:i]), rest[i+1:], 0
	}
	parts = append(parts, rest)
	if len(parts) != 6 || parts[0] != "arn" || parts[2] == "" || rest == "" {
		return nil, errors.New(`it must be * or an ARN, arn:aws:SERVICE:REGION:ACCOUNT:RESOURCE, in which each part may have * and ?`)
	}
	return parts, nil
}

// matchARN reports whether the ARN fits. The resource "*", of actions that have none, fits only a pattern for
// everything.
func (p pattern) matchARN(text string, find lookup) (fits, known bool) {
	if p == nil {
		return true, true
	}
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != len(p) {
		return false, true
	}
	for i, g := range p {
		if fits, known = g.match(parts[i], find); !fits || !known {
			return false, known
		}
	}
	return true, true
}

func (p pattern) matchAction(action string) bool {
	if p == nil {
		return true
	}
	fits, _ := p[0].match(strings.ToLower(action), nil)
	return fits
}
