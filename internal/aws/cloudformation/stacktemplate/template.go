// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"regexp"
	"slices"
	"strings"
)

// Template is a template that was read. It must not be changed.
type Template struct {
	// Description is at most MaxDescription bytes, or "".
	Description string
	// Metadata is the section as it stands in the template: functions in it are not evaluated. Nil without the section.
	Metadata map[string]any
	// Transforms are the names of the section Transform.
	Transforms []string
	// Parameters are in the order of the template.
	Parameters []Parameter
	// Mappings are values by mapping, key and second key: string, bool, json.Number or a list of them.
	Mappings map[string]map[string]map[string]any
	// Resources are at least one, by logical id.
	Resources map[string]Resource
	// Outputs are by logical id.
	Outputs map[string]Output

	conditions map[string]any // expressions of conditions
	noEcho     map[string]bool
}

// Resource is a resource of a template, without the values that must be evaluated.
type Resource struct {
	// Type is the name of its type, such as AWS::EC2::VPC.
	Type string
	// DependsOn are logical ids in the order of the template. References has these and all others.
	DependsOn []string
	// Condition is the name of the condition under which the resource is made, or "".
	Condition string
	// DeletionPolicy is Delete, Retain, RetainExceptOnCreate or Snapshot, or "" if the template has none.
	DeletionPolicy string
	// UpdateReplacePolicy is Delete, Retain or Snapshot, or "" if the template has none.
	UpdateReplacePolicy string

	properties, creationPolicy, updatePolicy, metadata map[string]any
}

// Output is an output of a template, without the values that must be evaluated.
type Output struct {
	// Description is text, or "".
	Description string
	// Condition is the name of the condition under which the output exists, or "".
	Condition string
	// Exported reports whether other stacks may import the value.
	Exported bool

	value, exportName any
}

// Parse reads a template. The error is an *Invalid with all problems. Check looks at the names that functions refer to, and Parse does not.
func Parse(body []byte) (*Template, error) {
	p := &parser{}
	top := read(body, &p.problems)
	if top == nil {
		return nil, p.err()
	}
	t := p.template(top)
	if err := p.err(); err != nil {
		return nil, err
	}
	return t, nil
}

// formatVersion is the only one there is.
const formatVersion = "2010-09-09"

func (p *parser) template(top *object) *Template {
	t := &Template{noEcho: map[string]bool{}}
	var root *path
	if value, ok := top.values["Transform"]; ok {
		p.transforms(t, value, root.key("Transform"))
	}
	for _, name := range top.keys {
		value, at := top.values[name], root.key(name)
		switch name {
		case "AWSTemplateFormatVersion":
			if text, ok := p.text(value, at); ok && text != formatVersion {
				p.add(at, "%.40q is not a version of templates: want %q", text, formatVersion)
			}
		case "Description":
			if t.Description, _ = p.text(value, at); len(t.Description) > MaxDescription {
				p.add(at, "the description has %d bytes: at most %d", len(t.Description), MaxDescription)
			}
		case "Metadata":
			if o, ok := p.object(value, at); ok {
				t.Metadata, _ = p.literal(o, at).(map[string]any)
			}
		case "Parameters":
			p.parameters(t, value, at)
		case "Mappings":
			p.mappings(t, value, at)
		case "Conditions":
			p.conditions(t, value, at)
		case "Resources":
			p.resources(t, value, at)
		case "Outputs":
			p.outputs(t, value, at)
		case "Transform":
		case "Rules", "Hooks", "Globals":
			p.add(at, "the section is not supported: remove it")
		default:
			p.add(at, "a template has no such section")
		}
	}
	if _, ok := top.values["Resources"]; !ok {
		p.add(nil, "the template has no section Resources: at least one resource is needed")
	}
	for _, parameter := range t.Parameters {
		if _, twice := t.Resources[parameter.Name]; twice {
			p.add(root.key("Resources").key(parameter.Name), "a parameter has the same name")
		}
	}
	return t
}

func (p *parser) transforms(t *Template, value any, at *path) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, item := range list {
		if name, ok := item.(string); ok && name == extensions {
			p.extended, t.Transforms = true, append(t.Transforms, name)
			continue
		}
		p.add(at, "transforms are not supported, except %s", extensions)
	}
}

// logicalID is what resources, parameters, conditions, mappings and outputs are called by.
var logicalID = regexp.MustCompile(`^[A-Za-z0-9]+$`)

// Policies of resources.
var (
	deletionPolicies = []string{"Delete", "Retain", "RetainExceptOnCreate", "Snapshot"}
	replacePolicies  = []string{"Delete", "Retain", "Snapshot"}
)

func (p *parser) resources(t *Template, value any, at *path) {
	t.Resources = map[string]Resource{}
	p.section(value, at, MaxResources, func(name string, value any, at *path) {
		if o, ok := p.object(value, at); ok {
			t.Resources[name] = p.resource(o, at)
		}
	})
	if o, ok := value.(*object); ok && len(o.keys) == 0 {
		p.add(at, "at least one resource is needed")
	}
}

func (p *parser) resource(o *object, at *path) Resource {
	var r Resource
	for _, key := range o.keys {
		value, at := o.values[key], at.key(key)
		switch key {
		case "Type":
			r.Type, _ = p.text(value, at)
		case "DependsOn":
			r.DependsOn = p.texts(value, at)
		case "Condition":
			r.Condition, _ = p.text(value, at)
		case "DeletionPolicy":
			r.DeletionPolicy = p.policy(value, at, deletionPolicies)
		case "UpdateReplacePolicy":
			r.UpdateReplacePolicy = p.policy(value, at, replacePolicies)
		case "Properties":
			r.properties = p.fields(value, at)
		case "CreationPolicy":
			r.creationPolicy = p.fields(value, at)
		case "UpdatePolicy":
			r.updatePolicy = p.fields(value, at)
		case "Metadata":
			r.metadata = p.fields(value, at)
		default:
			p.add(at, "a resource has no such attribute")
		}
	}
	if _, ok := o.values["Type"]; !ok {
		p.add(at, "the resource has no Type")
	}
	return r
}

// policy is one of the given names, as text.
func (p *parser) policy(value any, at *path, allowed []string) string {
	text, ok := p.text(value, at)
	if ok && !slices.Contains(allowed, text) {
		p.add(at, "%.40q is not one of %s", text, strings.Join(allowed, ", "))
	}
	return text
}

// fields is a map of expressions that is no function itself.
func (p *parser) fields(value any, at *path) map[string]any {
	o, ok := p.object(value, at)
	if !ok {
		return nil
	}
	fields, _ := p.expression(o, at).(map[string]any)
	return fields
}

func (p *parser) outputs(t *Template, value any, at *path) {
	t.Outputs = map[string]Output{}
	p.section(value, at, MaxOutputs, func(name string, value any, at *path) {
		o, ok := p.object(value, at)
		if !ok {
			return
		}
		t.Outputs[name] = p.output(o, at)
	})
}

func (p *parser) output(o *object, at *path) Output {
	var out Output
	for _, key := range o.keys {
		value, at := o.values[key], at.key(key)
		switch key {
		case "Description":
			out.Description, _ = p.text(value, at)
		case "Condition":
			out.Condition, _ = p.text(value, at)
		case "Value":
			out.value = p.expression(value, at)
		case "Export":
			export, ok := p.object(value, at)
			if !ok {
				continue
			}
			if len(export.keys) != 1 || export.keys[0] != "Name" {
				p.add(at, "an export has a Name and nothing else")
				continue
			}
			out.Exported, out.exportName = true, p.expression(export.values["Name"], at.key("Name"))
		default:
			p.add(at, "an output has no such attribute")
		}
	}
	if _, ok := o.values["Value"]; !ok {
		p.add(at, "the output has no Value")
	}
	return out
}
