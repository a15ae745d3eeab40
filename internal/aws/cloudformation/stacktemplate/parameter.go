// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// Parameter is a parameter of a template. Constraints that the template does not have are zero or nil.
type Parameter struct {
	Name                  string
	Type                  string
	Description           string
	ConstraintDescription string
	// Default is nil without a default.
	Default *string
	// NoEcho reports whether nobody may be shown the value.
	NoEcho         bool
	AllowedValues  []string
	AllowedPattern string
	// MinLength and MaxLength are in characters.
	MinLength, MaxLength *int
	MinValue, MaxValue   *float64

	pattern *regexp.Regexp
}

// Types of parameters.
const (
	typeString    = "String"
	typeNumber    = "Number"
	typeDelimited = "CommaDelimitedList"
	storedPrefix  = "AWS::SSM::Parameter::Value<"
	listPrefix    = "List<"
)

// namedTypes are types whose values are names or ids of AWS, which this package takes as text.
var namedTypes = []string{
	"AWS::EC2::AvailabilityZone::Name", "AWS::EC2::Image::Id", "AWS::EC2::Instance::Id", "AWS::EC2::KeyPair::KeyName",
	"AWS::EC2::SecurityGroup::GroupName", "AWS::EC2::SecurityGroup::Id", "AWS::EC2::Subnet::Id", "AWS::EC2::Volume::Id",
	"AWS::EC2::VPC::Id", "AWS::Route53::HostedZone::Id",
}

// isType reports whether CloudFormation has a type of parameters of the name.
func isType(name string) bool {
	if inner, ok := within(name, storedPrefix); ok {
		list, isList := within(inner, listPrefix)
		return inner == typeString || inner == typeDelimited || slices.Contains(namedTypes, inner) ||
			isList && (list == typeString || slices.Contains(namedTypes, list))
	}
	if inner, ok := within(name, listPrefix); ok {
		return inner == typeString || inner == typeNumber || slices.Contains(namedTypes, inner)
	}
	return slices.Contains([]string{typeString, typeNumber, typeDelimited, "AWS::SSM::Parameter::Name"}, name) || slices.Contains(namedTypes, name)
}

// within is the text between a prefix and the angle bracket that closes it.
func within(name, prefix string) (inner string, ok bool) {
	inner, ok = strings.CutPrefix(name, prefix)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(inner, ">")
}

// Stored reports whether the value is the name of a parameter of Systems Manager, of whose value a stack is made.
func (p *Parameter) Stored() bool { return strings.HasPrefix(p.Type, storedPrefix) }

// isList reports whether values of the type, or those that Systems Manager has for it, are lists.
func (p *Parameter) isList() bool {
	name := p.Type
	if inner, ok := within(name, storedPrefix); ok {
		name = inner
	}
	return name == typeDelimited || strings.HasPrefix(name, listPrefix)
}

func (p *Parameter) isNumber() bool {
	return p.Type == typeNumber || p.Type == listPrefix+typeNumber+">"
}

func (p *parser) parameters(t *Template, value any, at *path) {
	budget := maxPatterns
	p.section(value, at, MaxParameters, func(name string, value any, at *path) {
		o, ok := p.object(value, at)
		if !ok {
			return
		}
		before := len(p.list) + p.more
		parameter := p.parameter(o, at, &budget)
		parameter.Name = name
		if parameter.Default != nil && len(p.list)+p.more == before && !parameter.Stored() {
			for _, problem := range parameter.violations(*parameter.Default) {
				p.add(at.key("Default"), "%s", problem)
			}
		}
		t.Parameters = append(t.Parameters, parameter)
		if parameter.NoEcho {
			t.noEcho[name] = true
		}
	})
}

func (p *parser) parameter(o *object, at *path, budget *int) Parameter {
	var q Parameter
	for _, key := range o.keys {
		value, at := o.values[key], at.key(key)
		switch key {
		case "Type":
			if q.Type, _ = p.text(value, at); q.Type != "" && !isType(q.Type) {
				p.add(at, "%.80q is not a type of parameters", q.Type)
			}
		case "Description":
			q.Description, _ = p.text(value, at)
		case "ConstraintDescription":
			q.ConstraintDescription, _ = p.text(value, at)
		case "Default":
			if text, ok := p.scalar(value, at); ok {
				q.Default = &text
			}
		case "NoEcho":
			q.NoEcho = p.truth(value, at)
		case "AllowedValues":
			q.AllowedValues = p.allowedValues(value, at)
		case "AllowedPattern":
			var problem string
			q.AllowedPattern, _ = p.text(value, at)
			if q.pattern, problem = compile(q.AllowedPattern, budget); problem != "" {
				p.add(at, "%s", problem)
			}
		case "MinLength":
			q.MinLength = p.length(value, at)
		case "MaxLength":
			q.MaxLength = p.length(value, at)
		case "MinValue":
			q.MinValue = p.number(value, at)
		case "MaxValue":
			q.MaxValue = p.number(value, at)
		default:
			p.add(at, "a parameter has no such attribute")
		}
	}
	if _, ok := o.values["Type"]; !ok {
		p.add(at, "the parameter has no Type")
	}
	for _, problem := range q.misplaced() {
		p.add(at, "%s", problem)
	}
	return q
}

// misplaced are problems of constraints that the type does not have, or that no value can satisfy.
func (p *Parameter) misplaced() []string {
	var all []string
	if (p.MinValue != nil || p.MaxValue != nil) && !p.isNumber() {
		all = append(all, "MinValue and MaxValue are for the type Number")
	}
	if (p.MinLength != nil || p.MaxLength != nil) && (p.isNumber() || p.isList()) {
		all = append(all, "MinLength and MaxLength are for the type String")
	}
	if p.AllowedPattern != "" && p.isNumber() {
		all = append(all, "AllowedPattern is for the types String and CommaDelimitedList")
	}
	if p.MinLength != nil && p.MaxLength != nil && *p.MinLength > *p.MaxLength {
		all = append(all, "MinLength is greater than MaxLength")
	}
	if p.MinValue != nil && p.MaxValue != nil && *p.MinValue > *p.MaxValue {
		all = append(all, "MinValue is greater than MaxValue")
	}
	return all
}

func (p *parser) truth(value any, at *path) bool {
	text, ok := p.scalar(value, at)
	if ok && text != "true" && text != "false" {
		p.add(at, "%.40q is not true or false", text)
	}
	return text == "true"
}

func (p *parser) allowedValues(value any, at *path) []string {
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		p.add(at, "a list of at least one value is needed")
		return nil
	}
	var all []string
	for i, item := range list {
		if text, ok := p.scalar(item, at.index(i)); ok {
			all = append(all, text)
		}
	}
	return all
}

func (p *parser) length(value any, at *path) *int {
	text, ok := p.scalar(value, at)
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		p.add(at, "%.40q is not a length in characters", text)
		return nil
	}
	return &n
}

func (p *parser) number(value any, at *path) *float64 {
	text, ok := p.scalar(value, at)
	if !ok {
		return nil
	}
	n, ok := parseNumber(text)
	if !ok {
		p.add(at, "%.40q is not a number", text)
		return nil
	}
	return &n
}

// decimal is how a parameter of the type Number is written.
var decimal = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)

func parseNumber(text string) (float64, bool) {
	if !decimal.MatchString(text) {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// Limits of AllowedPattern, in bytes of a pattern and in instructions of all patterns of a template: a pattern such as
// (abcdefghij){1000} takes ten thousand.
const (
	maxPattern  = 1_024
	maxPatterns = 20_000
)

// compile compiles a pattern that the whole value must match, or returns a problem. The size of the pattern is taken from
// the budget before anything is made of it.
func compile(pattern string, budget *int) (compiled *regexp.Regexp, problem string) {
	if len(pattern) > maxPattern {
		return nil, fmt.Sprintf("the pattern has %d bytes: at most %d", len(pattern), maxPattern)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Sprintf("the pattern is not a regular expression of RE2: %v", err)
	}
	if *budget -= instructions(tree); *budget < 0 {
		return nil, "the patterns of the template repeat too much: make the numbers in braces smaller"
	}
	if compiled, err = regexp.Compile(`\A(?:` + pattern + `)\z`); err != nil {
		return nil, fmt.Sprintf("the pattern is not a regular expression of RE2: %v", err)
	}
	return compiled, ""
}

// instructions estimates the size of the program of an expression. The result is at most a little more than maxPatterns
// for each part.
func instructions(tree *syntax.Regexp) int {
	size := 1 + len(tree.Rune)
	for _, sub := range tree.Sub {
		size = min(size+instructions(sub), maxPatterns+1)
	}
	if tree.Op == syntax.OpRepeat {
		size = min(size*max(tree.Min, tree.Max, 1), maxPatterns+1)
	}
	return size
}
