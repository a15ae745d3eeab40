// SPDX-License-Identifier: Apache-2.0

package awstag

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	long, longer := strings.Repeat("ü", 128), strings.Repeat("ü", 129)
	for name, c := range map[string]struct {
		service string
		tags    []Tag
		want    string
	}{
		"fine":                 {"ec2", []Tag{{"Name", "web"}, {"team", ""}}, ""},
		"case makes two":       {"eks", []Tag{{"team", "a"}, {"Team", "b"}}, ""},
		"characters not bytes": {"ec2", []Tag{{long, long + long}}, ""},
		"a long key":           {"ec2", []Tag{{longer, ""}}, "InvalidParameterValue: The tag key"},
		"a long value":         {"logs", []Tag{{"k", long + longer}}, "InvalidParameterException: The value"},
		"no key":               {"kms", []Tag{{"", "x"}}, "TagException: The tag key"},
		"reserved":             {"ec2", []Tag{{"aws:eks:cluster-name", "x"}}, "InvalidParameterValue: The tag key \"aws:eks"},
		"reserved in capitals": {"eks", []Tag{{"AWS:x", "x"}}, "InvalidParameterException"},
		"twice":                {"autoscaling", []Tag{{"k", "a"}, {"k", "b"}}, "ValidationError: Duplicate tag key 'k'"},
		"not UTF-8":            {"ec2", []Tag{{"k\xff", "a"}}, "InvalidParameterValue"},
		"too many":             {"ec2", numbered(51), "TagLimitExceeded"},
		"as many as may be":    {"ec2", numbered(50), ""},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := Read(c.service, c.tags)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err == nil && len(read) != len(c.tags) {
				t.Errorf("%d tags of %d", len(read), len(c.tags))
			}
		})
	}
}

func numbered(n int) []Tag {
	tags := make([]Tag, n)
	for i := range tags {
		tags[i].Key = fmt.Sprint("key-", i)
	}
	return tags
}

func TestMerge(t *testing.T) {
	has := map[string]string{"a": "1", "aws:eks:cluster-name": "prod"}
	merged, err := Merge("ec2", has, map[string]string{"a": "2", "b": "3"})
	if diff := cmp.Diff(map[string]string{"a": "2", "b": "3", "aws:eks:cluster-name": "prod"}, merged); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if has["a"] != "1" {
		t.Error("the resource's own map was changed")
	}
	full, err := Read("ec2", numbered(50))
	if err != nil {
		t.Fatal(err)
	}
	full["aws:x"] = "not counted"
	if _, err := Merge("ec2", full, map[string]string{"key-1": "again"}); err != nil {
		t.Error(err)
	}
	if _, err := Merge("ec2", full, map[string]string{"one": "more"}); err == nil || !strings.HasPrefix(err.Error(), "TagLimitExceeded") {
		t.Error(err)
	}
	if empty, err := Merge("eks", nil, nil); err != nil || empty == nil {
		t.Errorf("%v, %v", empty, err)
	}
}

func TestRemove(t *testing.T) {
	has := map[string]string{"a": "1", "b": "", "c": "3", "aws:x": "y"}
	one, empty := "1", ""
	for name, c := range map[string]struct {
		removals []Removal
		want     string
	}{
		"by key":                      {[]Removal{{"a", nil}, {"b", nil}}, "[{aws:x y} {c 3}]"},
		"by value":                    {[]Removal{{"a", &one}}, "[{aws:x y} {b } {c 3}]"},
		"another value stays":         {[]Removal{{"c", &one}}, "[{a 1} {aws:x y} {b } {c 3}]"},
		"an empty value is a value":   {[]Removal{{"a", &empty}, {"b", &empty}}, "[{a 1} {aws:x y} {c 3}]"},
		"what is not there":           {[]Removal{{"z", nil}}, "[{a 1} {aws:x y} {b } {c 3}]"},
		"what AWS set is not removed": {[]Removal{{"aws:x", nil}}, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			left, err := Remove("ec2", has, c.removals)
			got := fmt.Sprint(Sorted(left))
			if err != nil {
				got = "error"
			}
			if got != c.want || len(has) != 4 {
				t.Errorf("%s, %v, want %s", got, err, c.want)
			}
		})
	}
	if left, err := Remove("eks", nil, []Removal{{"a", nil}}); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}
