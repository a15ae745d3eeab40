// SPDX-License-Identifier: Apache-2.0

package fluentbit

import (
	"regexp"
	"strings"
)

// grep keeps records by what their keys match.
type grep struct {
	rules []grepRule
	all   bool // Logical_Op AND
	some  bool // Logical_Op OR
}

type grepRule struct {
	exclude bool
	key     accessor
	matches *regexp.Regexp
}

func readGrep(o *options) filter {
	g := &grep{}
	for _, e := range o.entries { // in their order
		exclude := strings.EqualFold(e.key, "Exclude")
		if !exclude && !strings.EqualFold(e.key, "Regex") {
			continue
		}
		words := o.words(e, 2)
		g.rules = append(g.rules, grepRule{exclude, o.accessor(e.line, words[0]), o.expression(e.line, words[1])})
	}
	o.accept("Regex", "Exclude")
	if e, ok := o.single("Logical_Op"); ok {
		g.all, g.some = strings.EqualFold(e.value, "and"), strings.EqualFold(e.value, "or")
		if !g.all && !g.some && !strings.EqualFold(e.value, "legacy") {
			o.fail(e.line, "Logical_Op is %.40q: it is AND, OR or legacy", e.value)
		}
		for _, rule := range g.rules {
			if (g.all || g.some) && rule.exclude != g.rules[0].exclude {
				o.fail(e.line, "with Logical_Op %s there is either Regex or Exclude", e.value)
			}
		}
	}
	return g
}

func (r grepRule) found(record Map) bool {
	text, ok := r.key.text(record)
	return ok && r.matches.MatchString(text)
}

func (g *grep) apply(_ *run, e Event) (Event, bool) {
	if !g.all && !g.some {
		for _, rule := range g.rules {
			if rule.found(e.Record) == rule.exclude {
				return e, false
			}
		}
		return e, true
	}
	if len(g.rules) == 0 {
		return e, true
	}
	found := g.all
	for _, rule := range g.rules {
		if rule.found(e.Record) != g.all {
			found = !g.all
			break
		}
	}
	return e, found != g.rules[0].exclude
}
