// SPDX-License-Identifier: Apache-2.0

package eksresource

import (
	"maps"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awstag"
)

// ReadTags checks the tags of a request.
func ReadTags(tags map[string]string) (v1alpha1.Tags, error) {
	list := make([]awstag.Tag, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, awstag.Tag{Key: key, Value: tags[key]})
	}
	read, err := awstag.Read(Service, list)
	if err != nil {
		return nil, err
	}
	return TagsFrom(read), nil
}

// TagsFrom are tags as an object keeps them: nil where there are none.
func TagsFrom(tags map[string]string) v1alpha1.Tags {
	if len(tags) == 0 {
		return nil
	}
	kept := make(v1alpha1.Tags, len(tags))
	for key, value := range tags {
		kept[key] = v1alpha1.TagValue(value)
	}
	return kept
}

// ShownTags are tags as they are answered: an empty map where there are none.
func ShownTags(tags v1alpha1.Tags) map[string]string {
	shown := make(map[string]string, len(tags))
	for key, value := range tags {
		shown[key] = string(value)
	}
	return shown
}

// ResourceTags adds the condition keys of a resource's tags.
func ResourceTags(conditions map[string][]string, tags v1alpha1.Tags) {
	for key, value := range tags {
		conditions["aws:ResourceTag/"+key] = []string{string(value)}
	}
}

// RequestTags adds the condition keys of the tags that a request sets.
func RequestTags(conditions map[string][]string, tags map[string]string) {
	for key, value := range tags {
		conditions["aws:RequestTag/"+key] = []string{value}
	}
	if len(tags) > 0 {
		conditions["aws:TagKeys"] = slices.Sorted(maps.Keys(tags))
	}
}
