// SPDX-License-Identifier: Apache-2.0

package efsresource

import (
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
)

// NameTag is the tag that is a file system's name.
const NameTag = "Name"

// SystemTags are the tags of a file system, its name among them.
func SystemTags(s *v1alpha1.FileSystem) map[string]string {
	tags := awsresource.PlainTags(s.Spec.Tags)
	if s.Spec.Name != "" {
		tags[NameTag] = s.Spec.Name
	}
	return tags
}

// SetSystemTags is the reverse of SystemTags.
func SetSystemTags(s *v1alpha1.FileSystem, tags map[string]string) {
	s.Spec.Name = tags[NameTag]
	delete(tags, NameTag)
	s.Spec.Tags = awsresource.KeptTags(tags)
}

// TagsOnCreate is the right to tag that a request needs which makes something with tags: these are those of the
// resource, too.
func TagsOnCreate(call *awsfront.Call, resource string, tags []awstag.Tag) []awsfront.Target {
	if len(tags) == 0 {
		return nil
	}
	conditions := awsresource.ResourceTags(awsresource.RequestTags(nil, tags), awsresource.TagMap(tags))
	conditions["elasticfilesystem:CreateAction"] = []string{call.Action}
	return []awsfront.Target{{Action: Service + ":TagResource", Resource: resource, Conditions: conditions}}
}
