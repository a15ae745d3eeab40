// SPDX-License-Identifier: Apache-2.0

package prefilter

import (
	"regexp"
	"strconv"
	"strings"
)

// Kind is what a Filter does.
type Kind int

// Kinds of filters. Field is compared with Text in the last four.
const (
	All Kind = iota
	Nothing
	And
	Or
	Not
	Present  // the text is not empty
	Equal    // the text is Text, which is not empty
	Prefix   // the text begins with Text
	Contains // Text, which is not empty, is a part of the text
)

// Filter is a condition of one event in the log store.
type Filter struct {
	Kind        Kind
	Parts       []Filter // of And and Or at least two, of Not one
	Field, Text string
}

// String returns the filter in LogsQL.
func (f Filter) String() string {
	field := strconv.Quote(f.Field) + ":"
	switch f.Kind {
	case Nothing:
		return "!*"
	case And:
		return join(f.Parts, " ")
	case Or:
		return join(f.Parts, " or ")
	case Not:
		return "!" + f.Parts[0].String()
	case Present:
		return field + "*"
	case Equal:
		return field + "=" + strconv.Quote(f.Text)
	case Prefix:
		return field + "=" + strconv.Quote(f.Text) + "*"
	case Contains:
		return field + "~" + strconv.Quote(regexp.QuoteMeta(f.Text))
	default:
		return "*"
	}
}

// spend returns how many of some bytes are left after the filter in LogsQL; it is negative if they do not suffice.
func (f Filter) spend(left int) int {
	const around = 4 // bytes between two parts, or before a part
	if len(f.Parts) == 0 {
		return left - len(f.String()) - around
	}
	left -= around
	for i := 0; i < len(f.Parts) && left >= 0; i++ {
		left = f.Parts[i].spend(left)
	}
	return left
}

func join(parts []Filter, between string) string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.String()
	}
	return "(" + strings.Join(texts, between) + ")"
}

func and(parts ...Filter) Filter { return combine(And, All, Nothing, parts) }

func or(parts ...Filter) Filter { return combine(Or, Nothing, All, parts) }

// combine leaves out parts that change nothing, and is the part that decides alone if there is such a part.
func combine(kind, neutral, decisive Kind, parts []Filter) Filter {
	var all []Filter
	for _, part := range parts {
		switch part.Kind {
		case neutral:
		case decisive:
			return part
		case kind:
			all = append(all, part.Parts...)
		default:
			all = append(all, part)
		}
	}
	switch len(all) {
	case 0:
		return Filter{Kind: neutral}
	case 1:
		return all[0]
	default:
		return Filter{Kind: kind, Parts: all}
	}
}

func not(part Filter) Filter {
	switch part.Kind {
	case All:
		return Filter{Kind: Nothing}
	case Nothing:
		return Filter{Kind: All}
	case Not:
		return part.Parts[0]
	default:
		return Filter{Kind: Not, Parts: []Filter{part}}
	}
}
