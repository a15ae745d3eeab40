// SPDX-License-Identifier: Apache-2.0

package efsresource

import (
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
)

// NameTag is the tag that is a file system's name.
const NameTag = "Name"

// SystemTags are the tags of a file system, its name among them.
func SystemTags(s *v1alpha1.FileSystem) map[string]string {
	tags := ShownTags(s.Spec.Tags)
	if s.Spec.Name != "" {
		tags[NameTag] = s.Spec.Name
	}
	return tags
}

// SetSystemTags is the reverse of SystemTags.
func SetSystemTags(s *v1alpha1.FileSystem, tags map[string]string) {
	s.Spec.Name = tags[NameTag]
	delete(tags, NameTag)
	s.Spec.Tags = TagsFrom(tags)
}

func resourceTags(conditions map[string][]string, tags map[string]string) map[string][]string {
	if conditions == nil {
		conditions = map[string][]string{}
	}
	for key, value := range tags {
		conditions["aws:ResourceTag/"+key] = []string{value}
	}
	return conditions
}

// RequestTags are the condition keys of the tags that a request sets.
func RequestTags(tags []awstag.Tag) map[string][]string {
	conditions := map[string][]string{}
	for _, tag := range tags {
		conditions["aws:RequestTag/"+tag.Key] = []string{tag.Value}
		conditions["aws:TagKeys"] = append(conditions["aws:TagKeys"], tag.Key)
	}
	return conditions
}

// TagsOnCreate is the right to tag that a request needs which makes something with tags: these are those of the
// resource, too.
func TagsOnCreate(call *awsfront.Call, resource string, tags []awstag.Tag) []awsfront.Target {
	if len(tags) == 0 {
		return nil
	}
	conditions := RequestTags(tags)
	for _, tag := range tags {
		conditions["aws:ResourceTag/"+tag.Key] = []string{tag.Value}
	}
	conditions["elasticfilesystem:CreateAction"] = []string{call.Action}
	return []awsfront.Target{{Action: Service + ":TagResource", Resource: resource, Conditions: conditions}}
}

// ShownTags are tags as an object keeps them, in plain strings.
func ShownTags(tags v1alpha1.Tags) map[string]string {
	out := make(map[string]string, len(tags))
	for key, value := range tags {
		out[key] = string(value)
	}
	return out
}

// TagsFrom are tags as an object keeps them: nil where there are none.
func TagsFrom(tags map[string]string) v1alpha1.Tags {
	if len(tags) == 0 {
		return nil
	}
	out := make(v1alpha1.Tags, len(tags))
	for key, value := range tags {
		out[key] = v1alpha1.TagValue(value)
	}
	return out
}
