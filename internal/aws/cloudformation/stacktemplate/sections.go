// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import "regexp"

// section reads a map of named things, and refuses a map with more than most of them.
func (p *parser) section(value any, at *path, most int, each func(name string, value any, at *path)) {
	o, ok := p.object(value, at)
	if !ok {
		return
	}
	if len(o.keys) > most {
		p.add(at, "the section has %d members: at most %d", len(o.keys), most)
		return
	}
	for _, name := range o.keys {
		switch {
		case len(name) > MaxNameCharacters:
			p.add(at.key(name), "the name has %d characters: at most %d", len(name), MaxNameCharacters)
		case !logicalID.MatchString(name):
			p.add(at.key(name), "a name has letters and digits only")
		default:
			each(name, o.values[name], at.key(name))
		}
	}
}

// object is a value that must be a map and no function.
func (p *parser) object(value any, at *path) (*object, bool) {
	o, ok := value.(*object)
	if ok {
		if name, _, isFunction := p.functionOf(o, at); isFunction {
			p.add(at, "%.60s cannot stand here: a map is needed", name)
			return nil, false
		}
		return o, true
	}
	if _, bad := value.(invalidValue); !bad {
		p.add(at, "a map is needed")
	}
	return nil, false
}

// text is a value that must be a text and no function.
func (p *parser) text(value any, at *path) (string, bool) {
	text, ok := value.(string)
	if _, bad := value.(invalidValue); !ok && !bad {
		p.add(at, "a text is needed")
	}
	return text, ok
}

// texts is a value that must be a text or a list of texts.
func (p *parser) texts(value any, at *path) []string {
	list, ok := value.([]any)
	if !ok {
		if text, ok := p.text(value, at); ok {
			return []string{text}
		}
		return nil
	}
	var all []string
	for i, item := range list {
		if text, ok := p.text(item, at.index(i)); ok {
			all = append(all, text)
		}
	}
	return all
}

// scalar is a value that must be a text, a number or a boolean, as text.
func (p *parser) scalar(value any, at *path) (string, bool) {
	text, ok := textOf(value)
	if _, bad := value.(invalidValue); !ok && !bad {
		p.add(at, "a text or a number is needed")
	}
	return text, ok
}

// literal is a value as it stands, without functions.
func (p *parser) literal(value any, at *path) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, 0, len(value))
		for i, item := range value {
			list = append(list, p.literal(item, at.index(i)))
		}
		return list
	case *object:
		fields := make(map[string]any, len(value.keys))
		for _, key := range value.keys {
			fields[key] = p.literal(value.values[key], at.key(key))
		}
		return fields
	}
	return value
}

func (p *parser) conditions(t *Template, value any, at *path) {
	t.conditions = map[string]any{}
	p.section(value, at, MaxResources, func(name string, value any, at *path) {
		t.conditions[name] = p.condition(value, at)
	})
}

// mappingKey is what keys of mappings are made of.
var mappingKey = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func (p *parser) mappings(t *Template, value any, at *path) {
	t.Mappings = map[string]map[string]map[string]any{}
	p.section(value, at, MaxMappings, func(name string, value any, at *path) {
		t.Mappings[name] = map[string]map[string]any{}
		p.mappingKeys(value, at, func(key string, value any, at *path) {
			t.Mappings[name][key] = map[string]any{}
			p.mappingKeys(value, at, func(second string, value any, at *path) {
				t.Mappings[name][key][second] = p.mapped(value, at)
			})
		})
	})
}

// mapped is a value of a mapping: a text, a number, a boolean or a list of them.
func (p *parser) mapped(value any, at *path) any {
	list, ok := value.([]any)
	if !ok {
		p.scalar(value, at)
		return value
	}
	for i, item := range list {
		p.scalar(item, at.index(i))
	}
	return list
}

func (p *parser) mappingKeys(value any, at *path, each func(key string, value any, at *path)) {
	o, ok := p.object(value, at)
	if !ok {
		return
	}
	if len(o.keys) == 0 || len(o.keys) > MaxMappingKeys {
		p.add(at, "a mapping has 1 to %d keys, not %d", MaxMappingKeys, len(o.keys))
		return
	}
	for _, key := range o.keys {
		if len(key) > MaxNameCharacters || !mappingKey.MatchString(key) {
			p.add(at.key(key), "a key of a mapping has at most %d letters, digits, hyphens, underscores and full stops", MaxNameCharacters)
			continue
		}
		each(key, o.values[key], at.key(key))
	}
}
