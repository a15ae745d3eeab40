// SPDX-License-Identifier: Apache-2.0

package fluentbit

import (
	"slices"
	"strings"
)

// modify changes keys by rules, one after the other.
type modify []func(Map) Map

func readModify(o *options) filter {
	var m modify
	rules := []string{"Set", "Add", "Remove", "Remove_wildcard", "Remove_regex", "Rename", "Hard_rename", "Copy", "Hard_copy"}
	for _, e := range o.entries {
		at := slices.IndexFunc(rules, func(rule string) bool { return strings.EqualFold(rule, e.key) })
		if at < 0 {
			continue
		}
		m = append(m, modifyRule(o, rules[at], e))
	}
	o.accept(rules...)
	return m
}

// modifyRule reads one rule.
func modifyRule(o *options, rule string, e entry) func(Map) Map {
	switch rule {
	case "Remove":
		return func(m Map) Map { return m.without(func(p Pair) bool { return p.Key == e.value }) }
	case "Remove_wildcard":
		return func(m Map) Map {
			return m.without(func(p Pair) bool { return strings.HasPrefix(p.Key, strings.TrimSuffix(e.value, "*")) })
		}
	case "Remove_regex":
		matches := o.expression(e.line, e.value)
		return func(m Map) Map { return m.without(func(p Pair) bool { return matches.MatchString(p.Key) }) }
	}
	words := o.words(e, 2)
	key, other := words[0], words[1]
	switch rule {
	case "Set":
		return func(m Map) Map { return m.with(key, other) }
	case "Add":
		return func(m Map) Map {
			if m.index(key) >= 0 {
				return m
			}
			return m.with(key, other)
		}
	}
	hard, moves := strings.HasPrefix(rule, "Hard_"), strings.HasSuffix(strings.ToLower(rule), "rename")
	return func(m Map) Map { return moved(m, key, other, hard, moves) }
}

// moved is a map where a key has another name, or where its value is under another name, too. Only hard replaces what is there.
func moved(m Map, key, to string, hard, moves bool) Map {
	value, ok := m.Get(key)
	if !ok || key == to || !hard && m.index(to) >= 0 {
		return m
	}
	m = m.without(func(p Pair) bool { return p.Key == to })
	if !moves {
		return m.with(to, value)
	}
	m[m.index(key)].Key = to
	return m
}

func (m modify) apply(_ *run, e Event) (Event, bool) {
	for _, rule := range m {
		e.Record = rule(e.Record)
	}
	return e, true
}

// recordModifier adds pairs, and removes keys.
type recordModifier struct {
	add, remove, only []string
}

func readRecordModifier(o *options) filter {
	r := &recordModifier{}
	for _, e := range o.take("Record") {
		r.add = append(r.add, o.words(e, 2)...)
	}
	for _, e := range o.take("Remove_key") {
		r.remove = append(r.remove, e.value)
	}
	for _, e := range append(o.take("Allowlist_key"), o.take("Whitelist_key")...) {
		r.only = append(r.only, e.value)
	}
	if len(r.remove) > 0 && len(r.only) > 0 {
		o.fail(o.line, "Remove_key and Allowlist_key exclude each other")
	}
	return r
}

func (r *recordModifier) apply(_ *run, e Event) (Event, bool) {
	e.Record = e.Record.without(func(p Pair) bool {
		return slices.Contains(r.remove, p.Key) || len(r.only) > 0 && !slices.Contains(r.only, p.Key)
	})
	for i := 0; i < len(r.add); i += 2 {
		e.Record = e.Record.with(r.add[i], r.add[i+1])
	}
	return e, true
}

// nest puts keys below another key, or lifts them from there.
type nest struct {
	lift        bool
	wildcards   []string
	under       string
	remove, add string
}

func readNest(o *options) filter {
	n := &nest{remove: o.text("Remove_prefix"), add: o.text("Add_prefix")}
	for _, e := range o.take("Wildcard") {
		n.wildcards = append(n.wildcards, e.value)
	}
	switch operation := strings.ToLower(o.required("Operation")); operation {
	case "nest":
		n.under = o.required("Nest_under")
		if len(n.wildcards) == 0 {
			o.fail(o.line, "the operation nest has no Wildcard")
		}
	case "lift":
		n.lift, n.under = true, o.required("Nested_under")
	default:
		o.fail(o.line, "Operation is %.40q: it is nest or lift", operation)
	}
	return n
}

func (n *nest) named(key string) string { return n.add + strings.TrimPrefix(key, n.remove) }

func (n *nest) apply(_ *run, e Event) (Event, bool) {
	if n.lift {
		inner, ok := accessor{n.under}.find(e.Record)
		object, isMap := inner.(Map)
		if !ok || !isMap {
			return e, true
		}
		e.Record = e.Record.without(func(p Pair) bool { return p.Key == n.under })
		for _, p := range object {
			e.Record = e.Record.with(n.named(p.Key), p.Value)
		}
		return e, true
	}
	taken := func(key string) bool {
		return slices.ContainsFunc(n.wildcards, func(w string) bool { return matches(w, key) })
	}
	var inner Map
	for _, p := range e.Record {
		if taken(p.Key) {
			inner = inner.with(n.named(p.Key), p.Value)
		}
	}
	if len(inner) == 0 {
		return e, true
	}
	e.Record = e.Record.without(func(p Pair) bool { return taken(p.Key) }).with(n.under, inner)
	return e, true
}

// parserFilter parses the text of a key.
type parserFilter struct {
	key            string
	parsers        []*parser
	preserve, rest bool
}

func readParserFilter(o *options, parsers map[string]*parser) filter {
	f := &parserFilter{key: o.required("Key_Name"), preserve: o.boolean("Preserve_Key", false), rest: o.boolean("Reserve_Data", false)}
	if strings.HasPrefix(f.key, "$") {
		o.fail(o.line, "Key_Name %.60q must be the name of a key of the record", f.key)
	}
	for _, e := range o.take("Parser") {
		if parsers[e.value] == nil {
			o.fail(e.line, "there is no parser %.60q in %s", e.value, ParsersKey)
		}
		f.parsers = append(f.parsers, parsers[e.value])
	}
	if len(f.parsers) == 0 {
		o.fail(o.line, "the filter parser has no Parser")
	}
	return f
}

func (f *parserFilter) apply(_ *run, e Event) (Event, bool) {
	value, ok := e.Record.Get(f.key)
	text, isText := value.(string)
	if !ok || !isText {
		return e, true
	}
	for _, p := range f.parsers {
		record, at, ok := p.parse(text, e.Time)
		if !ok {
			continue
		}
		for _, old := range e.Record {
			if keeps := old.Key == f.key && f.preserve || old.Key != f.key && f.rest; keeps && record.index(old.Key) < 0 {
				record = append(record, old)
			}
		}
		e.Record, e.Time = record, at
		return e, true
	}
	return e, true
}
