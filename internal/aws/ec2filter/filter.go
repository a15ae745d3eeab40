// SPDX-License-Identifier: Apache-2.0

// Package ec2filter has the filters of EC2's Describe actions, which Auto Scaling has, too: names with values.
//
// A resource matches if it matches every filter, and it matches a filter if one of its values matches one of the
// filter's. In a value "*" stands for any characters, none included, and "?" for one; a backslash before either, or
// before another backslash, takes the meaning away. Values are compared with their case.
package ec2filter

import (
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
)

// The limits of a request, as EC2's: each value counts, of all filters together.
const (
	maxFilters = 50
	maxValues  = 200
	maxBytes   = 4 * 256 // of a value: the longest value of a tag, in characters of 4 bytes
)

// Names of filters that every kind of resource with tags has.
const (
	tagPrefix = "tag:"
	tagKey    = "tag-key"
	tagValue  = "tag-value"
)

// Filter is a filter as it is sent.
type Filter struct {
	Name   string
	Values []string
}

// Rules says which filters an action has.
type Rules struct {
	Names []string // beside those of tags
	Tags  bool     // tag:KEY, tag-key and tag-value
	Exact bool     // no wildcards, as in Auto Scaling
}

// Resource is something that filters choose from.
type Resource struct {
	// Values returns the resource's values under the name of a filter. It is empty for a property that the resource
	// lacks.
	Values func(name string) []string
	Tags   map[string]string
}

// Set are the filters of a request, ready to be asked.
type Set struct{ filters []compiled }

type compiled struct {
	name   string
	tag    string // the key of tag:KEY
	values []pattern
}

// Compile reads the filters of a request. The error is what EC2 says of a filter that it does not know, or of too many.
func (r Rules) Compile(filters []Filter) (Set, error) {
	if len(filters) > maxFilters {
		return Set{}, awsfault.Errorf("FilterLimitExceeded", "The request has %d filters: there may be %d", len(filters), maxFilters)
	}
	count := 0
	var set Set
	for _, f := range filters {
		next := compiled{name: f.Name}
		key, isTag := strings.CutPrefix(f.Name, tagPrefix)
		switch {
		case r.Tags && isTag && key != "":
			next.name, next.tag = tagPrefix, key
		case r.Tags && (f.Name == tagKey || f.Name == tagValue), slices.Contains(r.Names, f.Name):
		default:
			return Set{}, awsfault.Errorf("InvalidParameterValue", "The filter '%s' is invalid", shown(f.Name))
		}
		if len(f.Values) == 0 {
			return Set{}, awsfault.Errorf("InvalidParameterValue", "The filter '%s' has no values: name at least one", shown(f.Name))
		}
		if count += len(f.Values); count > maxValues {
			return Set{}, awsfault.Errorf("FilterLimitExceeded", "The filters have more than %d values", maxValues)
		}
		for _, value := range f.Values {
			if len(value) > maxBytes {
				return Set{}, awsfault.Errorf("InvalidParameterValue", "A value of the filter '%s' has %d bytes: there may be %d", shown(f.Name), len(value), maxBytes)
			}
			next.values = append(next.values, read(value, r.Exact))
		}
		set.filters = append(set.filters, next)
	}
	return set, nil
}

// Match reports whether the filters choose a resource. No filters choose everything.
func (s Set) Match(resource Resource) bool {
	return !slices.ContainsFunc(s.filters, func(f compiled) bool { return !f.match(resource) })
}

// Exact returns the values of a filter if the filter is there and no value has a wildcard, so that a caller can look
// resources up by them.
func (s Set) Exact(name string) ([]string, bool) {
	for _, f := range s.filters {
		if f.name != name || f.tag != "" {
			continue
		}
		values := make([]string, 0, len(f.values))
		for _, p := range f.values {
			if p.wild {
				return nil, false
			}
			values = append(values, p.literal())
		}
		return values, true
	}
	return nil, false
}

func (f compiled) match(resource Resource) bool {
	var has []string
	switch {
	case f.tag != "":
		value, ok := resource.Tags[f.tag]
		if !ok {
			return false
		}
		has = []string{value}
	case f.name == tagKey:
		has = slices.Collect(maps.Keys(resource.Tags))
	case f.name == tagValue:
		has = slices.Collect(maps.Values(resource.Tags))
	case resource.Values != nil:
		has = resource.Values(f.name)
	}
	return slices.ContainsFunc(has, func(value string) bool {
		return slices.ContainsFunc(f.values, func(p pattern) bool { return p.match(value) })
	})
}

func shown(name string) string {
	name = strings.ToValidUTF8(name, "�")
	if runes := []rune(name); len(runes) > 64 {
		return string(runes[:64]) + "…"
	}
	return name
}
