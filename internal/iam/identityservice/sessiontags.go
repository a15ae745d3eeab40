// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
)

// SessionTags are the tags of a role's session: those that were passed to AssumeRole, and those that the session
// inherits.
type SessionTags struct {
	Own []iam.Tag
	// Transitive tags go on to each session that is made with this one's credentials.
	Transitive []iam.Tag
}

// All are the tags of both kinds.
func (t SessionTags) All() []iam.Tag { return slices.Concat(t.Transitive, t.Own) }

// sealed are tags as they go into a token: key and value.
type sealedTags [][2]string

func sealTags(tags []iam.Tag) sealedTags {
	var out sealedTags
	for _, t := range tags {
		out = append(out, [2]string{t.Key, t.Value})
	}
	return out
}

func (s sealedTags) open() []iam.Tag {
	var out []iam.Tag
	for _, t := range s {
		out = append(out, iam.Tag{Key: t[0], Value: t[1]})
	}
	return out
}

// sessionTags are the tags of a session that is asked for with from's credentials. The codes are STS's.
func sessionTags(from principal, passed []iam.Tag, transitiveKeys []string) (SessionTags, error) {
	var tags SessionTags
	if from.session != nil {
		tags.Transitive = slices.Clone(from.session.Tags.Transitive)
	}
	if err := checkSessionTags(passed); err != nil {
		return tags, err
	}
	has := func(in []iam.Tag, key string) bool {
		return slices.ContainsFunc(in, func(t iam.Tag) bool { return strings.EqualFold(t.Key, key) })
	}
	if len(transitiveKeys) > iam.MaxTags {
		return tags, iamfault.Errorf(iamfault.ValidationError, "TransitiveTagKeys has %d keys: %d are allowed", len(transitiveKeys), iam.MaxTags)
	}
	for _, key := range transitiveKeys {
		if !has(passed, key) {
			return tags, iamfault.Errorf(iamfault.InvalidParameterValue, "The specified transitive tag key must be included in the requested tags.")
		}
	}
	inherited := tags.Transitive
	for _, t := range passed {
		switch {
		case has(inherited, t.Key):
			return tags, iamfault.Errorf(iamfault.InvalidParameterValue,
				"One of the specified transitive tag keys can't be set because it conflicts with a transitive tag key from the calling session.")
		case slices.ContainsFunc(transitiveKeys, func(key string) bool { return strings.EqualFold(key, t.Key) }):
			tags.Transitive = append(tags.Transitive, t)
		default:
			tags.Own = append(tags.Own, t)
		}
	}
	if len(tags.Transitive)+len(tags.Own) > iam.MaxTags {
		return tags, tooManyTags(len(tags.Transitive) + len(tags.Own))
	}
	return tags, nil
}

func tooManyTags(n int) error {
	return iamfault.Errorf(iamfault.ValidationError, "the session has %d tags, inherited ones included: %d are allowed", n, iam.MaxTags)
}

func checkSessionTags(tags []iam.Tag) error {
	seen := map[string]bool{}
	for _, t := range tags {
		lower := strings.ToLower(t.Key)
		if seen[lower] {
			return iamfault.Errorf(iamfault.InvalidParameterValue, "Duplicate tag keys found. Please note that Tag keys are case insensitive.")
		}
		seen[lower] = true
	}
	if len(tags) > iam.MaxTags {
		return tooManyTags(len(tags))
	}
	return iam.CheckTags(tags)
}

// addSessionTags adds the condition keys of tags that are passed to AssumeRole.
func addSessionTags(conditions map[string][]string, passed []iam.Tag, transitiveKeys []string) {
	var keys []string
	for _, t := range passed {
		conditions["aws:requesttag/"+lower(t.Key)] = []string{t.Value}
		keys = append(keys, t.Key)
	}
	if len(keys) > 0 {
		conditions["aws:tagkeys"] = slices.Sorted(slices.Values(keys))
	}
	if len(transitiveKeys) > 0 {
		conditions["sts:transitivetagkeys"] = slices.Sorted(slices.Values(transitiveKeys))
	}
}
