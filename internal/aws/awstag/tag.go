// SPDX-License-Identifier: Apache-2.0

// Package awstag has the rules of tags on resources: how many and how long they may be, which keys are AWS's own, and
// what comes of adding and removing some. The tags of IAM have rules of their own (package iam): there keys that differ
// in capitals only are one.
package awstag

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"muster.dev/muster/internal/aws/awsfault"
)

// The limits of AWS.
const (
	Most        = 50 // tags of a resource, without those that services set
	MostInKey   = 128
	MostInValue = 256
)

// reserved begins the keys that services set themselves.
const reserved = "aws:"

// Tag is a tag as a request has it.
type Tag struct{ Key, Value string }

// Removal is a tag that is to go: with a value only if the tag has that value, which EC2 alone can say.
type Removal struct {
	Key   string
	Value *string
}

// codes are what a service calls a bad tag and one too many.
type codes struct{ bad, tooMany string }

var codesOf = map[string]codes{
	"eks":               {"InvalidParameterException", "InvalidParameterException"},
	"ec2":               {"InvalidParameterValue", "TagLimitExceeded"},
	"autoscaling":       {"ValidationError", "LimitExceeded"},
	"cloudformation":    {"ValidationError", "ValidationError"},
	"kms":               {"TagException", "LimitExceededException"},
	"elasticfilesystem": {"BadRequest", "BadRequest"},
	"ecr":               {"InvalidTagParameterException", "TooManyTagsException"},
	"logs":              {"InvalidParameterException", "TooManyTagsException"},
	"sqs":               {"InvalidParameterValue", "InvalidParameterValue"},
	"events":            {"ValidationException", "LimitExceededException"},
	"fis":               {"ValidationException", "ServiceQuotaExceededException"},
	"ssm":               {"ValidationException", "TooManyTagsError"},
}

// Read checks the tags of one request to a service, and returns them as a map.
func Read(service string, tags []Tag) (map[string]string, error) {
	c := of(service)
	read := make(map[string]string, len(tags))
	for _, tag := range tags {
		if err := c.checkKey(tag.Key); err != nil {
			return nil, err
		}
		if n := utf8.RuneCountInString(tag.Value); n > MostInValue || !utf8.ValidString(tag.Value) {
			return nil, awsfault.Errorf(c.bad, "The value of the tag %q has %d characters: there may be %d", tag.Key, n, MostInValue)
		}
		if _, again := read[tag.Key]; again {
			return nil, awsfault.Errorf(c.bad, "Duplicate tag key '%s' specified.", tag.Key)
		}
		read[tag.Key] = tag.Value
	}
	return read, c.count(read)
}

// Merge returns a resource's tags with others set over them.
func Merge(service string, has, sets map[string]string) (map[string]string, error) {
	all := maps.Clone(has)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, sets)
	return all, of(service).count(all)
}

// Remove returns a resource's tags without some. A key that the resource has not is not an error, and one of AWS's own
// is.
func Remove(service string, has map[string]string, removals []Removal) (map[string]string, error) {
	c := of(service)
	left := maps.Clone(has)
	for _, r := range removals {
		if err := c.checkKey(r.Key); err != nil {
			return nil, err
		}
		if r.Value == nil || left[r.Key] == *r.Value {
			delete(left, r.Key)
		}
	}
	return left, nil
}

// Sorted are tags in the order in which they are answered: by key.
func Sorted(tags map[string]string) []Tag {
	sorted := make([]Tag, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		sorted = append(sorted, Tag{key, tags[key]})
	}
	return sorted
}

func of(service string) codes {
	if c, ok := codesOf[service]; ok {
		return c
	}
	return codes{"ValidationException", "TooManyTagsException"}
}

func (c codes) checkKey(key string) error {
	n := utf8.RuneCountInString(key)
	switch {
	case key == "" || n > MostInKey || !utf8.ValidString(key):
		return awsfault.Errorf(c.bad, "The tag key %.20q has %d characters: it must have from 1 to %d", key, n, MostInKey)
	case len(key) >= len(reserved) && strings.EqualFold(key[:len(reserved)], reserved):
		return awsfault.Errorf(c.bad, "The tag key %q is invalid: keys that begin with aws: are reserved for AWS", key)
	}
	return nil
}

func (c codes) count(tags map[string]string) error {
	n := 0
	for key := range tags {
		if !strings.HasPrefix(key, reserved) {
			n++
		}
	}
	if n > Most {
		return awsfault.Errorf(c.tooMany, "The resource would have %d tags: there may be %d", n, Most)
	}
	return nil
}
