// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
)

// UpdatePolicy is the key under which the properties of a resource have its UpdatePolicy, which is no property. Input and Changes
// leave it alone.
const UpdatePolicy = "muster.dev/UpdatePolicy"

// Input is the input of the first action that creates a resource, of resolved properties that Check has passed. The tags are
// those of the stack, which a resource's own tags go over; a type without tags ignores them. The token is sent by types
// whose Once is ByToken. A value that the action cannot hold is an error with its path, such as ScalingConfig.MinSize.
func (t Type) Input(properties map[string]any, tags map[string]string, token string) (awsshape.Object, error) {
	action := t.Create[0]
	operation := awstable.Service(action.Service).Operation(action.Name)
	object := awsshape.Object{}
	put := func(path, member string, value any) error {
		m := find(operation.Input, member)
		if m == nil {
			return fmt.Errorf("%s: %s has no member for it", path, action)
		}
		converted, err := convert(path, m.Shape, value)
		if err != nil {
			return err
		}
		object[m.Name] = converted
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(t.Apart, name) || name == "Tags" || name == UpdatePolicy || t.Derived[name] != nil {
			continue
		}
		member, ok := t.Names[name]
		if !ok {
			member = name
		}
		if err := put(name, member, properties[name]); err != nil {
			return nil, err
		}
	}
	for _, member := range slices.Sorted(maps.Keys(t.Derived)) {
		value, err := t.Derived[member](properties)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		if err := put(member, member, value); err != nil {
			return nil, err
		}
	}
	if err := t.tagged(operation.Input, object, properties["Tags"], tags); err != nil {
		return nil, err
	}
	if m := tokenOf(operation.Input); m != nil && t.Once == ByToken {
		object[m.Name] = token
	}
	return object, nil
}

// Request is the input of an action, of members in the forms that a template has: names in any case, numbers and booleans as
// texts. A value that the action cannot hold is an error with its path.
func Request(of Action, members map[string]any) (awsshape.Object, error) {
	made, err := structure(of.Name, awstable.Service(of.Service).Operation(of.Name).Input, members)
	if err != nil {
		return nil, err
	}
	return made.(awsshape.Object), nil
}

// tagged puts tags into an input, in the form that it has for them.
func (t Type) tagged(input *awsshape.Shape, object awsshape.Object, own any, tags map[string]string) error {
	all, err := merged(own, tags)
	if err != nil || len(all) == 0 {
		return err
	}
	m := find(input, "TagSpecifications")
	if m != nil && t.TagType != "" {
		specified, _ := object[m.Name].([]any) // of a launch template, which may have its own
		one, err := convert("Tags", m.Shape.Item, map[string]any{"ResourceType": t.TagType, "Tags": all})
		if err != nil {
			return err
		}
		object[m.Name] = append(specified, one)
		return nil
	}
	if m = find(input, "Tags"); m == nil {
		return nil
	}
	if m.Shape.Kind == awsshape.List && find(m.Shape.Item, "PropagateAtLaunch") != nil {
		all = propagated(all)
	}
	value, err := convert("Tags", m.Shape, all)
	if err != nil {
		return err
	}
	object[m.Name] = value
	return nil
}

// propagated are tags of an Auto Scaling group. The tags of its stack say nothing about instances, which get them.
func propagated(tags []any) []any {
	all := make([]any, 0, len(tags))
	for _, tag := range tags {
		entry := map[string]any{"PropagateAtLaunch": true}
		maps.Copy(entry, tag.(map[string]any))
		all = append(all, entry)
	}
	return all
}

// merged are the tags of a resource, a list of objects or a map, and of its stack, as a list of objects sorted by key.
func merged(own any, tags map[string]string) ([]any, error) {
	all := map[string]map[string]any{}
	for key, value := range tags {
		all[key] = map[string]any{"Key": key, "Value": value}
	}
	switch own := own.(type) {
	case nil:
	case map[string]any:
		for key, value := range own {
			all[key] = map[string]any{"Key": key, "Value": value}
		}
	case []any:
		for i, entry := range own {
			one, _ := entry.(map[string]any)
			key, ok := scalar(one["Key"])
			if !ok {
				return nil, fmt.Errorf("Tags.%d is %v: want Key and Value", i+1, entry) //nolint:staticcheck // a path
			}
			all[key] = one
		}
	default:
		return nil, fmt.Errorf("Tags is %v: want a list of Key and Value", own) //nolint:staticcheck // a path
	}
	var list []any
	for _, key := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[key])
	}
	return list, nil
}

// tokenOf is the member that takes a client token; nil without one.
func tokenOf(input *awsshape.Shape) *awsshape.Member {
	for _, m := range input.Members {
		if m.Token {
			return m
		}
	}
	return nil
}

// find finds a member by its name in any case, the exact one first.
func find(s *awsshape.Shape, name string) *awsshape.Member {
	if m := s.Member(name); m != nil {
		return m
	}
	for _, m := range s.Members {
		if strings.EqualFold(m.Name, name) {
			return m
		}
	}
	return nil
}

// documents are the members whose value a template may write as an object, and an action takes as text.
var documents = words("AssumeRolePolicyDocument EventPattern PolicyDocument")

// joined are the members whose value is a list in a template, and a text with commas for an action.
var joined = words("VPCZoneIdentifier")

// convert makes the value of a shape out of a template's: numbers and booleans may be texts, and texts numbers; a map may be a
// list of Key and Value; a scalar may stand for a structure that has nothing but a Value.
func convert(path string, s *awsshape.Shape, value any) (any, error) {
	switch s.Kind {
	case awsshape.Structure, awsshape.Union:
		return structure(path, s, value)
	case awsshape.List:
		items, ok := value.([]any)
		if !ok {
			return nil, fmt.Errorf("%s is %v: want a list", path, value)
		}
		list := make([]any, 0, len(items))
		for i, item := range items {
			converted, err := convert(fmt.Sprintf("%s.%d", path, i+1), s.Item, item)
			if err != nil {
				return nil, err
			}
			list = append(list, converted)
		}
		return list, nil
	case awsshape.Map:
		return mapping(path, s, value)
	case awsshape.Document:
		return value, nil
	default:
		return single(path, s, value)
	}
}

// structure converts an object, whose members may be of another case than the shape's.
func structure(path string, s *awsshape.Shape, value any) (any, error) {
	object, ok := value.(map[string]any)
	if !ok {
		m := find(s, "Value")
		if _, plain := scalar(value); m == nil || len(s.Members) != 1 || !plain {
			return nil, fmt.Errorf("%s is %v: want an object", path, value)
		}
		object = map[string]any{m.Name: value}
	}
	made := awsshape.Object{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		m := find(s, name)
		if m == nil {
			return nil, fmt.Errorf("%s.%s: there is no such property", path, name)
		}
		converted, err := convert(path+"."+name, m.Shape, object[name])
		if err != nil {
			return nil, err
		}
		made[m.Name] = converted
	}
	return made, nil
}

// mapping converts a map, or a list of Key and Value.
func mapping(path string, s *awsshape.Shape, value any) (any, error) {
	entries, ok := value.(map[string]any)
	if list, listed := value.([]any); listed {
		ok, entries = true, map[string]any{}
		for _, entry := range list {
			one, _ := entry.(map[string]any)
			key, named := scalar(one["Key"])
			if !named {
				return nil, fmt.Errorf("%s has the entry %v: want Key and Value", path, entry)
			}
			entries[key] = one["Value"]
		}
	}
	if !ok {
		return nil, fmt.Errorf("%s is %v: want an object", path, value)
	}
	made := awsshape.Object{}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		converted, err := convert(path+"."+key, s.Item, entries[key])
		if err != nil {
			return nil, err
		}
		made[key] = converted
	}
	return made, nil
}

// single converts a scalar.
func single(path string, s *awsshape.Shape, value any) (any, error) {
	name := path[strings.LastIndex(path, ".")+1:]
	text, ok := scalar(value)
	switch {
	case ok:
	case s.Kind == awsshape.String && slices.Contains(documents, name):
		return document(value)
	case s.Kind == awsshape.String && slices.Contains(joined, name):
		items, _ := value.([]any)
		var texts []string
		for _, item := range items {
			text, _ := scalar(item)
			texts = append(texts, text)
		}
		return strings.Join(texts, ","), nil
	default:
		return nil, fmt.Errorf("%s is %v: want a %s", path, value, s.Kind)
	}
	converted, err := s.Scalar(text, awsshape.DateTime)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return converted, nil
}

// scalar is a text, number or boolean of a template as text; false for anything else.
func scalar(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return awsshape.FormatFloat(v), true
	case json.Number:
		return v.String(), true
	}
	return "", false
}
