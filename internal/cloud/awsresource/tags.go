// SPDX-License-Identifier: Apache-2.0

package awsresource

import (
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awstag"
)

// PlainTags are the tags of an object as a map of strings, never nil.
func PlainTags(tags v1alpha1.Tags) map[string]string {
	plain := make(map[string]string, len(tags))
	for key, value := range tags {
		plain[key] = string(value)
	}
	return plain
}

// KeptTags are tags as objects keep them; nil for an empty map.
func KeptTags(tags map[string]string) v1alpha1.Tags {
	if len(tags) == 0 {
		return nil
	}
	kept := make(v1alpha1.Tags, len(tags))
	for key, value := range tags {
		kept[key] = v1alpha1.TagValue(value)
	}
	return kept
}

// ShownTags are the tags of an object as they are answered: by key.
func ShownTags(tags v1alpha1.Tags) []awstag.Tag { return awstag.Sorted(PlainTags(tags)) }

// TagMap is a list of tags as a map.
func TagMap(tags []awstag.Tag) map[string]string {
	all := make(map[string]string, len(tags))
	for _, t := range tags {
		all[t.Key] = t.Value
	}
	return all
}

// ResourceTags adds to conditions, which may be nil, those of the tags that a resource has, and returns them all:
// aws:ResourceTag/KEY, and PREFIX:ResourceTag/KEY for each other prefix.
func ResourceTags[V ~string](conditions map[string][]string, tags map[string]V, prefixes ...string) map[string][]string {
	if conditions == nil {
		conditions = map[string][]string{}
	}
	for key, value := range tags {
		conditions["aws:ResourceTag/"+key] = []string{string(value)}
		for _, prefix := range prefixes {
			conditions[prefix+":ResourceTag/"+key] = []string{string(value)}
		}
	}
	return conditions
}

// RequestTags adds to conditions, which may be nil, those of the tags that a request sets, and returns them all:
// aws:RequestTag/KEY, and the keys in the order of the tags as aws:TagKeys if there are tags. Tags that a request has
// as a map are given in the order of [awstag.Sorted].
func RequestTags(conditions map[string][]string, tags []awstag.Tag) map[string][]string {
	if conditions == nil {
		conditions = map[string][]string{}
	}
	for _, t := range tags {
		conditions["aws:RequestTag/"+t.Key] = []string{t.Value}
		conditions["aws:TagKeys"] = append(conditions["aws:TagKeys"], t.Key)
	}
	return conditions
}

// Removals are the tags of some keys, whatever their values, as [awstag.Remove] takes them away.
func Removals(keys []string) []awstag.Removal {
	removals := make([]awstag.Removal, 0, len(keys))
	for _, key := range keys {
		removals = append(removals, awstag.Removal{Key: key})
	}
	return removals
}
