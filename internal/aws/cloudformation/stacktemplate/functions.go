// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ref evaluates Ref: a pseudo parameter, a parameter, or a resource.
func (e *evaluation) ref(name string, at *path) (any, bool) {
	if slices.Contains(pseudoParameters, name) {
		return e.pseudo(name, at)
	}
	if value, ok := e.env.Parameters[name]; ok {
		return value, true
	}
	if !e.isResource(name) {
		e.add(at, "nothing is called %.100q: neither a resource nor a parameter with a value", name)
		return nil, false
	}
	value, _, known, ok := e.resource(name, at)
	if !known {
		return Unknown{}, ok
	}
	return value, ok
}

// resource asks for a resource. Returns known false for a resource that is not made yet, where that is no problem.
func (e *evaluation) resource(name string, at *path) (value string, attributes map[string]any, known, ok bool) {
	if e.env.Resource != nil {
		if value, attributes, ok = e.env.Resource(name); ok {
			return value, attributes, true, true
		}
	}
	if created, decided := e.holds(e.Resources[name].Condition, at); !decided {
		return "", nil, true, false
	} else if !created {
		e.add(at, "the resource %s is not made, since the condition %s is false", name, e.Resources[name].Condition)
		return "", nil, true, false
	}
	if e.rehearse {
		return "", nil, false, true
	}
	e.add(at, "the resource %s is not made yet", name)
	return "", nil, true, false
}

func (e *evaluation) pseudo(name string, at *path) (any, bool) {
	texts := map[string]string{
		"AWS::AccountId": e.env.Pseudo.AccountID, "AWS::Partition": e.env.Pseudo.Partition, "AWS::Region": e.env.Pseudo.Region,
		"AWS::StackId": e.env.Pseudo.StackID, "AWS::StackName": e.env.Pseudo.StackName, "AWS::URLSuffix": e.env.Pseudo.URLSuffix,
	}
	switch name {
	case "AWS::NoValue":
		return noValue{}, true
	case "AWS::NotificationARNs":
		list := []any{}
		for _, topic := range e.env.Pseudo.NotificationARNs {
			list = append(list, topic)
		}
		return list, true
	}
	if texts[name] == "" {
		e.add(at, "%s has no value", name)
		return nil, false
	}
	return texts[name], true
}

// getAtt evaluates Fn::GetAtt.
func (e *evaluation) getAtt(c *call, at *path) (any, bool) {
	attribute, _, ok := e.text(c.args[1], at.index(1))
	if !ok {
		return nil, false
	}
	if !e.isResource(c.name()) {
		e.add(at, "the template has no resource %.100q", c.name())
		return nil, false
	}
	_, attributes, known, ok := e.resource(c.name(), at)
	if !ok || !known {
		return Unknown{}, ok
	}
	value, ok := normal(attributes[attribute])
	if !ok {
		e.add(at, "the resource %s has no attribute %s: it has %s", c.name(), e.quoted(attribute, c.args[1]), listed(slices.Sorted(maps.Keys(attributes))))
		return nil, false
	}
	return value, true
}

// sub evaluates Fn::Sub.
func (e *evaluation) sub(c *call, at *path) (any, bool) {
	vars, all, known := map[string]string{}, true, true
	for _, key := range slices.Sorted(maps.Keys(c.vars)) {
		text, is, ok := e.text(c.vars[key], at.index(1).key(key))
		vars[key], all, known = text, all && ok, known && is
	}
	var result strings.Builder
	for _, part := range c.parts {
		text, is, ok := part.literal, true, true
		if part.local != "" {
			text = vars[part.local]
		} else if part.variable != nil {
			var value any
			if value, ok = e.call(part.variable, at); ok {
				text, is, ok = e.asText(value, at)
			}
		}
		all, known = all && ok, known && is
		if !e.spend(len(text), at) {
			return nil, false
		}
		result.WriteString(text)
	}
	if !known {
		return Unknown{}, all
	}
	return result.String(), all
}

func (e *evaluation) base64(c *call, at *path) (any, bool) {
	text, known, ok := e.text(c.args[0], at)
	if !known || !ok {
		return Unknown{}, ok
	}
	return base64.StdEncoding.EncodeToString([]byte(text)), true
}

func (e *evaluation) join(c *call, at *path) (any, bool) {
	list, known, ok := e.listOf(c.args[1], at.index(1))
	if !known || !ok {
		return Unknown{}, ok
	}
	delimiter, total := c.name(), 0
	texts := make([]string, 0, len(list))
	for i, item := range list {
		if _, unknown := item.(Unknown); unknown {
			known = false
			continue
		}
		text, isText := textOf(item)
		if !isText {
			e.add(at.index(1).index(i), "a text is needed, and the value is %s", kind(item))
			ok = false
		}
		texts, total = append(texts, text), total+len(text)+len(delimiter)
	}
	if !ok || !e.spend(total, at) {
		return nil, false
	}
	if !known {
		return Unknown{}, true
	}
	return strings.Join(texts, delimiter), true
}

func (e *evaluation) split(c *call, at *path) (any, bool) {
	text, known, ok := e.text(c.args[1], at.index(1))
	if !known || !ok {
		return Unknown{}, ok
	}
	if !e.spend((strings.Count(text, c.name())+1)*cost+len(text), at) {
		return nil, false
	}
	list := []any{}
	for item := range strings.SplitSeq(text, c.name()) {
		list = append(list, item)
	}
	return list, true
}

// selected evaluates Fn::Select.
func (e *evaluation) selected(c *call, at *path) (any, bool) {
	text, indexKnown, ok := e.text(c.args[0], at.index(0))
	list, listKnown, listOK := e.listOf(c.args[1], at.index(1))
	if !ok || !listOK {
		return nil, false
	}
	if !indexKnown || !listKnown {
		return Unknown{}, true
	}
	index, err := strconv.Atoi(text)
	if err != nil {
		e.add(at.index(0), "%s is not an index", e.quoted(text, c.args[0]))
		return nil, false
	}
	if index < 0 || index >= len(list) {
		e.add(at, "the list has %d members, and none at index %d", len(list), index)
		return nil, false
	}
	return list[index], true
}

// findInMap evaluates Fn::FindInMap. The default is for a mapping or a key that does not exist.
func (e *evaluation) findInMap(c *call, at *path) (any, bool) {
	var names [3]string
	for i := range names {
		text, known, ok := e.text(c.args[i], at.index(i))
		if !known {
			e.add(at.index(i), "the value is needed before resources are made")
		}
		if !known || !ok {
			return nil, false
		}
		names[i] = text
	}
	mapping, ok := e.Mappings[names[0]]
	values, hasKey := mapping[names[1]]
	value, hasSecond := values[names[2]]
	switch {
	case hasSecond:
		return value, true
	case len(c.args) > len(names):
		return e.value(c.args[3], at.index(3).key(defaultValue))
	case !ok:
		e.add(at, "the template has no mapping %s", e.quoted(names[0], c.args[0]))
	case !hasKey:
		e.add(at, "the mapping %s has no key %s", e.quoted(names[0], c.args[0]), e.quoted(names[1], c.args[1]))
	default:
		e.add(at, "the mapping %s has no key %s in %s", e.quoted(names[0], c.args[0]), e.quoted(names[2], c.args[2]), e.quoted(names[1], c.args[1]))
	}
	return nil, false
}

// zones evaluates Fn::GetAZs. The region "" is the region of the stack.
func (e *evaluation) zones(c *call, at *path) (any, bool) {
	region, known, ok := e.text(c.args[0], at)
	if !known || !ok {
		return Unknown{}, ok
	}
	if region != "" && region != e.env.Pseudo.Region {
		e.add(at, "the zones of the region %s are not known: a stack sees its own region %q alone", e.quoted(region, c.args[0]), e.env.Pseudo.Region)
		return nil, false
	}
	if len(e.env.Zones) == 0 {
		e.add(at, "the region has no zones")
		return nil, false
	}
	list := []any{}
	for _, zone := range e.env.Zones {
		list = append(list, zone)
	}
	return list, true
}

func (e *evaluation) imported(c *call, at *path) (any, bool) {
	name, known, ok := e.text(c.args[0], at)
	if !known {
		e.add(at, "the name of an export is needed before resources are made")
	}
	if !known || !ok {
		return nil, false
	}
	if e.env.Imports == nil {
		e.add(at, "no export is named %s", e.quoted(name, c.args[0]))
		return nil, false
	}
	value, err := e.env.Imports(name)
	if err != nil {
		why := err.Error()
		if e.secret(c.args[0]) {
			why = strings.ReplaceAll(why, name, hidden)
		}
		e.add(at, "importing %s: %s", e.quoted(name, c.args[0]), why)
		return nil, false
	}
	return value, true
}

func (e *evaluation) length(c *call, at *path) (any, bool) {
	list, known, ok := e.listOf(c.args[0], at)
	if !known || !ok {
		return Unknown{}, ok
	}
	return json.Number(strconv.Itoa(len(list))), true
}

// toJSON evaluates Fn::ToJsonString. Keys are in alphabetical order; characters of HTML stand as they are.
func (e *evaluation) toJSON(c *call, at *path) (any, bool) {
	value, ok := e.value(c.args[0], at)
	if !ok {
		return nil, false
	}
	if hasUnknown(value) {
		return Unknown{}, true
	}
	switch value.(type) {
	case []any, map[string]any:
	default:
		e.add(at, "a map or a list is needed, and the value is %s", kind(value))
		return nil, false
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		e.add(at, "the value has no form in JSON: %v", err)
		return nil, false
	}
	return strings.TrimSuffix(text.String(), "\n"), true
}
