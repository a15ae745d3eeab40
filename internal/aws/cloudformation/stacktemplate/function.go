// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"maps"
	"slices"
	"strings"
)

// Names of functions.
const (
	ref          = "Ref"
	condition    = "Condition"
	fnAnd        = "Fn::And"
	fnBase64     = "Fn::Base64"
	fnCidr       = "Fn::Cidr"
	fnEquals     = "Fn::Equals"
	fnFindInMap  = "Fn::FindInMap"
	fnGetAtt     = "Fn::GetAtt"
	fnGetAZs     = "Fn::GetAZs"
	fnIf         = "Fn::If"
	fnImport     = "Fn::ImportValue"
	fnJoin       = "Fn::Join"
	fnLength     = "Fn::Length"
	fnNot        = "Fn::Not"
	fnOr         = "Fn::Or"
	fnSelect     = "Fn::Select"
	fnSplit      = "Fn::Split"
	fnSub        = "Fn::Sub"
	fnToJSON     = "Fn::ToJsonString"
	extensions   = "AWS::LanguageExtensions"
	defaultValue = "DefaultValue"
)

// call is a function of a template.
type call struct {
	function string
	// args are expressions. Ref and Condition have a name; Fn::GetAtt the name of a resource and an attribute; Fn::If the
	// name of a condition and two values; Fn::FindInMap three values and the default, if there is one; Fn::Sub has none.
	args  []any
	parts []part         // of Fn::Sub
	vars  map[string]any // of Fn::Sub
}

// name is the first argument where that is a name: of Ref, Condition, Fn::GetAtt and Fn::If.
func (c *call) name() string {
	if len(c.args) == 0 {
		return ""
	}
	name, _ := c.args[0].(string)
	return name
}

// shapes are the functions of values and what they take, for people. Functions of conditions are in logical.
var shapes = map[string]string{
	ref:         "the name of a parameter or a resource",
	fnBase64:    "a text",
	fnCidr:      "[ipBlock, count, cidrBits]",
	fnFindInMap: "[mapping, key, second key]",
	fnGetAtt:    "[resource, attribute]",
	fnGetAZs:    "a region",
	fnIf:        "[condition, value if true, value if false]",
	fnImport:    "the name of an export",
	fnJoin:      "[delimiter, list]",
	fnLength:    "a list",
	fnSelect:    "[index, list]",
	fnSplit:     "[delimiter, text]",
	fnSub:       "a text, or [text, map of variables]",
	fnToJSON:    "a map or a list",
}

// logical are the functions that conditions are made of, with the number of their arguments.
var logical = map[string]struct{ least, most int }{
	fnAnd: {2, MaxLogicalConditions}, fnOr: {2, MaxLogicalConditions}, fnNot: {1, 1}, fnEquals: {2, 2}, condition: {1, 1},
}

// unsupported are functions of CloudFormation that this package refuses.
var unsupported = []string{
	"Fn::Contains", "Fn::EachMemberEquals", "Fn::EachMemberIn", "Fn::ForEach", "Fn::GetStackOutput", "Fn::RefAll", "Fn::Transform",
	"Fn::ValueOf", "Fn::ValueOfAll",
}

// isFunction reports whether CloudFormation has a function of the name, supported here or not.
func isFunction(name string) bool {
	if _, ok := logical[name]; ok {
		return true
	}
	_, ok := shapes[name]
	return ok || slices.Contains(unsupported, name)
}

// parser makes expressions of the tree that was read.
type parser struct {
	problems
	extended bool // the template has the transform AWS::LanguageExtensions
}

// functionOf is the function that an object stands for. An object with a function and other keys is a problem.
func (p *parser) functionOf(o *object, at *path) (name string, argument any, ok bool) {
	if key, value, single := o.only(); single && (key == ref || strings.HasPrefix(key, "Fn::")) {
		return key, value, true
	}
	for _, key := range o.keys {
		if strings.HasPrefix(key, "Fn::") {
			p.add(at, "%.60s stands beside other keys: a function is the only key of its map", key)
			return "", nil, false
		}
	}
	return "", nil, false
}

// expression makes an expression of a value: string, bool, json.Number, []any, map[string]any or *call.
func (p *parser) expression(value any, at *path) any {
	switch value := value.(type) {
	case string:
		if strings.Contains(value, dynamicReference) {
			p.add(at, "dynamic references (%s…}}) are not supported: give the value by a parameter", dynamicReference)
		}
		return value
	case []any:
		list := make([]any, 0, len(value))
		for i, item := range value {
			list = append(list, p.expression(item, at.index(i)))
		}
		return list
	case *object:
		if name, argument, ok := p.functionOf(value, at); ok {
			return p.call(name, argument, at.key(name))
		}
		fields := make(map[string]any, len(value.keys))
		for _, key := range value.keys {
			fields[key] = p.expression(value.values[key], at.key(key))
		}
		return fields
	}
	return value
}

// dynamicReference is how a reference to Systems Manager or Secrets Manager begins.
const dynamicReference = "{{resolve:"

// call makes a function of its name and argument.
func (p *parser) call(name string, argument any, at *path) any {
	if _, ok := shapes[name]; !ok {
		_, ofConditions := logical[name]
		family, _, _ := strings.Cut(strings.TrimPrefix(name, "Fn::"), "::")
		switch {
		case ofConditions:
			p.add(at, "%s is a function of the section Conditions: name a condition there, and use Fn::If here", name)
		case slices.Contains(unsupported, "Fn::"+family):
			p.add(at, "%.60s is not supported", name)
		default:
			p.add(at, "%.60s is not a function of CloudFormation", name)
		}
		return invalidValue{}
	}
	if _, bad := argument.(invalidValue); bad {
		return invalidValue{}
	}
	c, before := &call{function: name}, len(p.list)+p.more
	p.take(c, argument, at)
	if len(p.list)+p.more > before {
		return invalidValue{}
	}
	return c
}

// wrong reports an argument that has another form than its function takes.
func (p *parser) wrong(c *call, at *path) { p.add(at, "%s takes %s", c.function, shapes[c.function]) }

// arguments are the members of a list of the given length.
func (p *parser) arguments(c *call, value any, at *path, least, most int) ([]any, bool) {
	list, ok := value.([]any)
	if !ok || len(list) < least || len(list) > most {
		p.wrong(c, at)
		return nil, false
	}
	return list, true
}

// take reads the argument of a function.
func (p *parser) take(c *call, argument any, at *path) {
	switch c.function {
	case ref:
		p.named(c, argument, at)
	case fnBase64, fnGetAZs, fnImport:
		p.single(c, argument, at)
	case fnCidr:
		p.exactly(c, argument, at, 3)
	case fnFindInMap:
		p.findInMap(c, argument, at)
	case fnGetAtt:
		p.getAtt(c, argument, at)
	case fnIf:
		p.choice(c, argument, at)
	case fnJoin, fnSplit:
		p.delimited(c, argument, at)
	case fnLength, fnToJSON:
		p.extendedArgument(c, argument, at)
	case fnSelect:
		p.exactly(c, argument, at, 2)
	case fnSub:
		p.sub(c, argument, at)
	}
}

// exactly takes a list of n values.
func (p *parser) exactly(c *call, value any, at *path, n int) {
	list, _ := p.arguments(c, value, at, n, n)
	for i, item := range list {
		c.args = append(c.args, p.expression(item, at.index(i)))
	}
}

// named takes a name, which is checked later.
func (p *parser) named(c *call, value any, at *path) {
	name, ok := value.(string)
	if !ok || name == "" {
		p.wrong(c, at)
		return
	}
	c.args = []any{name}
}

// single takes one value that is not a list or a map.
func (p *parser) single(c *call, value any, at *path) {
	if _, list := value.([]any); list {
		p.wrong(c, at)
		return
	}
	argument := p.expression(value, at)
	if _, plain := argument.(map[string]any); plain {
		p.wrong(c, at)
	}
	c.args = []any{argument}
}

// extendedArgument takes a list, a map or a function, where the template has the transform that AWS asks for.
func (p *parser) extendedArgument(c *call, value any, at *path) {
	if !p.extended {
		p.add(at, "%s needs the line `Transform: %s` in the template", c.function, extensions)
		return
	}
	switch argument := p.expression(value, at).(type) {
	case []any, *call:
		c.args = []any{argument}
	case map[string]any:
		c.args = []any{argument}
		if c.function == fnLength {
			p.wrong(c, at)
		}
	default:
		p.wrong(c, at)
	}
}

// getAtt takes [resource, attribute] or "resource.attribute". The attribute may be a Ref.
func (p *parser) getAtt(c *call, value any, at *path) {
	if text, ok := value.(string); ok {
		resource, attribute, ok := strings.Cut(text, ".")
		if !ok || resource == "" || attribute == "" {
			p.wrong(c, at)
			return
		}
		c.args = []any{resource, attribute}
		return
	}
	list, ok := p.arguments(c, value, at, 2, 2)
	if !ok {
		return
	}
	resource, isName := list[0].(string)
	attribute := p.expression(list[1], at.index(1))
	_, isText := attribute.(string)
	by, isCall := attribute.(*call)
	if !isName || resource == "" || attribute == "" || !isText && (!isCall || by.function != ref) {
		p.wrong(c, at)
		return
	}
	c.args = []any{resource, attribute}
}

// choice takes the name of a condition and two values.
func (p *parser) choice(c *call, value any, at *path) {
	list, ok := p.arguments(c, value, at, 3, 3)
	if !ok {
		return
	}
	name, ok := list[0].(string)
	if !ok || name == "" {
		p.wrong(c, at)
		return
	}
	c.args = []any{name, p.expression(list[1], at.index(1)), p.expression(list[2], at.index(2))}
}

// delimited takes a delimiter that is a text and no function, and a value.
func (p *parser) delimited(c *call, value any, at *path) {
	list, ok := p.arguments(c, value, at, 2, 2)
	if !ok {
		return
	}
	delimiter, ok := list[0].(string)
	if !ok || delimiter == "" && c.function == fnSplit {
		p.wrong(c, at)
		return
	}
	argument := p.expression(list[1], at.index(1))
	_, isList := argument.([]any)
	_, isCall := argument.(*call)
	_, isText := argument.(string)
	if fits := isCall || isList && c.function == fnJoin || isText && c.function == fnSplit; !fits {
		p.wrong(c, at)
	}
	c.args = []any{delimiter, argument}
}

// findInMap takes a mapping and two keys, and with AWS::LanguageExtensions a default.
func (p *parser) findInMap(c *call, value any, at *path) {
	list, ok := p.arguments(c, value, at, 3, 4)
	if !ok {
		return
	}
	for i, item := range list[:3] {
		c.args = append(c.args, p.expression(item, at.index(i)))
	}
	if len(list) < 4 {
		return
	}
	options, ok := list[3].(*object)
	if !ok || !slices.Equal(options.keys, []string{defaultValue}) {
		p.wrong(c, at)
		return
	}
	if !p.extended {
		p.add(at.index(3), "%s needs the line `Transform: %s` in the template", defaultValue, extensions)
	}
	c.args = append(c.args, p.expression(options.values[defaultValue], at.index(3).key(defaultValue)))
}

// condition makes an expression of a condition.
func (p *parser) condition(value any, at *path) any {
	o, ok := value.(*object)
	if !ok {
		if _, bad := value.(invalidValue); !bad {
			p.add(at, "a condition is one of %s", conditionFunctions())
		}
		return invalidValue{}
	}
	name, argument, single := o.only()
	count, known := logical[name]
	if !single || !known {
		p.add(at, "a condition is one of %s", conditionFunctions())
		return invalidValue{}
	}
	at = at.key(name)
	if name == condition {
		named, ok := argument.(string)
		if !ok || named == "" {
			p.add(at, "%s takes the name of a condition", name)
		}
		return &call{function: name, args: []any{named}}
	}
	list, ok := argument.([]any)
	if !ok || len(list) < count.least || len(list) > count.most {
		p.add(at, "%s takes a list of %d to %d members", name, count.least, count.most)
		return invalidValue{}
	}
	c := &call{function: name}
	for i, item := range list {
		if name == fnEquals {
			c.args = append(c.args, p.expression(item, at.index(i)))
		} else {
			c.args = append(c.args, p.condition(item, at.index(i)))
		}
	}
	return c
}

// conditionFunctions lists the functions of conditions for people.
func conditionFunctions() string {
	return strings.Join(slices.Sorted(maps.Keys(logical)), ", ")
}
