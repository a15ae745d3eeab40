// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"maps"
	"slices"
	"strings"
)

// Known says which properties and attributes a type of resources has. Returns false for a type that stacks cannot have.
// A nil map takes all names.
type Known func(typ string) (properties, attributes map[string]bool, ok bool)

// Check checks all names of a template before anything is made: what functions, DependsOn and Condition refer to, types,
// properties and attributes of resources, and that neither resources nor conditions form a cycle. A nil Known takes all
// types, properties and attributes. The error is an *Invalid with all problems.
func (t *Template) Check(known Known) error {
	if known == nil {
		known = func(string) (properties, attributes map[string]bool, ok bool) { return nil, nil, true }
	}
	c := checker{Template: t, known: known}
	var root *path
	for _, name := range slices.Sorted(maps.Keys(t.conditions)) {
		walk(t.conditions[name], root.key("Conditions").key(name), c.fixed)
	}
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		c.resource(id, root.key("Resources").key(id))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Outputs)) {
		at, output := root.key("Outputs").key(name), t.Outputs[name]
		c.condition(output.Condition, at.key("Condition"))
		walk(output.value, at.key("Value"), c.call)
		walk(output.exportName, at.key("Export").key("Name"), c.fixed)
	}
	if _, err := t.Order(); err != nil {
		c.include(err)
	}
	c.include(t.conditionCycle())
	return c.err()
}

// checker gathers the problems of Check.
type checker struct {
	*Template
	problems
	known Known
}

func (c *checker) resource(id string, at *path) {
	r := c.Resources[id]
	properties, _, ok := c.known(r.Type)
	if !ok {
		c.add(at.key("Type"), "%.100q is not a type of resources that stacks can have", r.Type)
	}
	for _, name := range slices.Sorted(maps.Keys(r.properties)) {
		if properties != nil && !properties[name] {
			c.add(at.key("Properties").key(name), "%.100s has no such property", r.Type)
		}
	}
	c.condition(r.Condition, at.key("Condition"))
	for i, other := range r.DependsOn {
		switch {
		case other == id:
			c.add(at.key("DependsOn").index(i), "a resource cannot depend on itself")
		case !c.isResource(other):
			c.add(at.key("DependsOn").index(i), "the template has no resource %.100q", other)
		}
	}
	c.walkResource(id, c.call)
}

// condition checks the name of a condition, which may be missing.
func (c *checker) condition(name string, at *path) {
	if _, ok := c.conditions[name]; !ok && name != "" {
		c.add(at, "the template has no condition %.100q", name)
	}
}

// call checks what a function refers to.
func (c *checker) call(f *call, at *path) bool { return c.function(f, at, true) }

// fixed checks a function that is evaluated before any resource exists.
func (c *checker) fixed(f *call, at *path) bool { return c.function(f, at, false) }

func (c *checker) function(f *call, at *path, resources bool) bool {
	name := f.name()
	switch f.function {
	case ref:
		c.reference(name, at, resources)
	case fnGetAtt:
		c.attribute(name, f.args[1], at, resources)
	case fnIf, condition:
		if _, ok := c.conditions[name]; !ok {
			c.add(at, "the template has no condition %.100q", name)
		}
	case fnFindInMap, fnImport:
		if f.function == fnFindInMap {
			c.mapping(f, at)
		}
		for i, argument := range f.args {
			walk(argument, at.index(i), c.fixed)
		}
		return false
	}
	return true
}

func (c *checker) reference(name string, at *path, resources bool) {
	switch {
	case slices.Contains(pseudoParameters, name) || c.isParameter(name):
	case !c.isResource(name):
		c.add(at, "the template has no parameter or resource %.100q", name)
	case !resources:
		c.add(at, "the resource %.100q cannot be named here: the value is needed before resources are made", name)
	}
}

func (c *checker) isParameter(name string) bool {
	return slices.ContainsFunc(c.Parameters, func(p Parameter) bool { return p.Name == name })
}

func (c *checker) attribute(name string, attribute any, at *path, resources bool) {
	r, ok := c.Resources[name]
	switch {
	case !ok:
		c.add(at, "the template has no resource %.100q", name)
		return
	case !resources:
		c.add(at, "the resource %.100q cannot be named here: the value is needed before resources are made", name)
		return
	}
	_, attributes, _ := c.known(r.Type)
	text, literal := attribute.(string)
	if attributes != nil && literal && !attributes[text] {
		c.add(at, "%.100s has no attribute %.100q: it has %s", r.Type, text, listed(slices.Sorted(maps.Keys(attributes))))
	}
}

// mapping checks the names of Fn::FindInMap that are literal texts.
func (c *checker) mapping(f *call, at *path) {
	if len(f.args) > 3 {
		return // has a default
	}
	name, literal := f.args[0].(string)
	if !literal {
		return
	}
	mapping, ok := c.Mappings[name]
	if !ok {
		c.add(at, "the template has no mapping %.100q", name)
		return
	}
	key, literal := textOf(f.args[1])
	if !literal {
		return
	}
	second, literal := textOf(f.args[2])
	if values, ok := mapping[key]; !ok {
		c.add(at, "the mapping %s has no key %.100q", name, key)
	} else if _, ok := values[second]; literal && !ok {
		c.add(at, "the mapping %s has no key %.100q in %s", name, second, key)
	}
}

// conditionCycle is an *Invalid that names a cycle, or nil.
func (t *Template) conditionCycle() error {
	needs := func(name string) []string {
		var names []string
		walk(t.conditions[name], nil, func(c *call, _ *path) bool {
			if c.function == condition {
				names = append(names, c.name())
			}
			return true
		})
		return names
	}
	v := visitor{needs: needs, state: map[string]int{}}
	for _, name := range slices.Sorted(maps.Keys(t.conditions)) {
		if !v.visit(name) {
			var p problems
			p.add(nil, "the conditions need each other in a circle: %s", strings.Join(v.stack, " needs "))
			return p.err()
		}
	}
	return nil
}

// listed is a list for people, cut where it is long.
func listed(names []string) string {
	const most = 20
	if len(names) == 0 {
		return "none"
	}
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
