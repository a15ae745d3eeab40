// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// booleans of YAML 1.1 that YAML 1.2 reads as text.
var booleans = map[string]bool{
	"yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

// readYAML reads one document.
func readYAML(body []byte, p *problems) any {
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			p.add(nil, "the template is empty")
		} else {
			p.add(nil, "the template is not well-formed YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		return invalidValue{}
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		p.add(nil, "the template has more than one document of YAML")
		return invalidValue{}
	}
	r := yamlReader{problems: p}
	return r.value(document.Content[0], nil, 0)
}

type yamlReader struct{ problems *problems }

// value makes a value of a node. A short form, such as !Sub, becomes the map that stands for it.
func (r *yamlReader) value(n *yaml.Node, at *path, depth int) any {
	if depth == MaxDepth {
		r.problems.add(at, "the template has more than %d levels", MaxDepth)
		return invalidValue{}
	}
	if n.Kind == yaml.AliasNode {
		r.problems.add(at, "YAML aliases are not allowed in CloudFormation templates: repeat the value")
		return invalidValue{}
	}
	tag := n.ShortTag()
	if strings.HasPrefix(tag, "!") && !strings.HasPrefix(tag, "!!") {
		return r.shortForm(n, tag, at, depth)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return r.mapping(n, tag, at, depth)
	case yaml.SequenceNode:
		if tag != "!!seq" {
			break
		}
		list := []any{}
		for i, item := range n.Content {
			list = append(list, r.value(item, at.index(i), depth+1))
		}
		return list
	case yaml.ScalarNode:
		return r.scalar(n, tag, at)
	case yaml.DocumentNode, yaml.AliasNode:
	}
	r.problems.add(at, "line %d: the tag %.40s is not allowed in templates", n.Line, tag)
	return invalidValue{}
}

func (r *yamlReader) mapping(n *yaml.Node, tag string, at *path, depth int) any {
	if tag != "!!map" {
		r.problems.add(at, "line %d: the tag %.40s is not allowed in templates", n.Line, tag)
		return invalidValue{}
	}
	o := &object{values: map[string]any{}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch tag := key.ShortTag(); {
		case tag == "!!merge":
			r.problems.add(at, "line %d: merge keys (<<) are not allowed in templates", key.Line)
		case key.Kind != yaml.ScalarNode || tag == "!!null" || !strings.HasPrefix(tag, "!!"):
			r.problems.add(at, "line %d: a key must be text", key.Line)
		default:
			o.put(r.problems, at.key(key.Value), key.Value, r.value(n.Content[i+1], at.key(key.Value), depth+1))
		}
	}
	return o
}

// scalar reads a scalar as YAML 1.1 does, except that what JSON cannot say stays text.
func (r *yamlReader) scalar(n *yaml.Node, tag string, at *path) any {
	explicit := n.Style&yaml.TaggedStyle != 0
	switch tag {
	case "!!str":
		if value, ok := booleans[n.Value]; ok && n.Style == 0 {
			return value
		}
		return n.Value
	case "!!bool":
		if value, ok := booleans[n.Value]; ok {
			return value
		}
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		if n.Value != "" && n.Value[0] != '"' && json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
		return n.Value
	case "!!merge":
		return n.Value
	case "!!null":
		r.problems.add(at, "line %d: null is not a value of templates: leave out the key", n.Line)
		return invalidValue{}
	case "!!timestamp":
		if !explicit {
			return n.Value
		}
	}
	r.problems.add(at, "line %d: the tag %.40s is not allowed in templates", n.Line, tag)
	return invalidValue{}
}

// shortForm makes {"Fn::Sub": …} of !Sub.
func (r *yamlReader) shortForm(n *yaml.Node, tag string, at *path, depth int) any {
	name := tag[1:]
	if name != ref && name != condition {
		name = "Fn::" + name
	}
	if !isFunction(name) {
		r.problems.add(at, "line %d: the tag %.40s is not a function of CloudFormation", n.Line, tag)
		return invalidValue{}
	}
	var value any = n.Value
	if n.Kind != yaml.ScalarNode {
		plain := *n
		plain.Tag = map[yaml.Kind]string{yaml.MappingNode: "!!map", yaml.SequenceNode: "!!seq"}[n.Kind]
		value = r.value(&plain, at.key(name), depth+1)
	}
	return &object{keys: []string{name}, values: map[string]any{name: value}}
}
