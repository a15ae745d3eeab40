// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"maps"
	"slices"
)

// retag brings the tags of an item to those that are asked for.
func (d described) retag(ctx context.Context, j *job) error {
	return retag(j, func(set map[string]string, removed []string) error {
		if len(set) > 0 {
			if _, err := j.ask(ctx, ec2, "CreateTags", map[string]any{"Resources": []any{j.attribute(d.id)}, "Tags": pairs(set)}); err != nil {
				return err
			}
		}
		if len(removed) == 0 {
			return nil
		}
		var keys []any
		for _, key := range removed {
			keys = append(keys, map[string]any{"Key": key})
		}
		_, err := j.ask(ctx, ec2, "DeleteTags", map[string]any{"Resources": []any{j.attribute(d.id)}, "Tags": keys})
		return err
	})
}

// retags is an update of nothing but tags.
func (d described) retags(ctx context.Context, j *job) (bool, error) { return both(ctx, j, d.retag) }

// retag finds the tags that an update sets and removes.
func retag(j *job, change func(set map[string]string, removed []string) error) error {
	before, after := tagsOf(j.was["Tags"]), tagsOf(j.is["Tags"])
	set, removed := map[string]string{}, []string{}
	for key, value := range after {
		if had, ok := before[key]; !ok || had != value {
			set[key] = value
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[key]; !ok {
			removed = append(removed, key)
		}
	}
	if len(set) == 0 && len(removed) == 0 {
		return nil
	}
	return change(set, removed)
}

// tagsOf are tags as a template has them: a list of Key and Value, or an object.
func tagsOf(value any) map[string]string {
	tags := map[string]string{}
	switch all := value.(type) {
	case map[string]any:
		for key, value := range all {
			tags[key] = textOf(value)
		}
	case []any:
		for _, entry := range all {
			one, _ := entry.(map[string]any)
			tags[textOf(one["Key"])] = textOf(one["Value"])
		}
	}
	return tags
}

// tagsIn are the tags at a path of an output, which has them as a list of Key and Value.
func tagsIn(output any, path string) map[string]string {
	tags := map[string]string{}
	for _, tag := range list(output, path) {
		tags[text(tag, "Key")] = text(tag, "Value")
	}
	return tags
}

// anys are texts as a list of a request.
func anys(texts []string) []any {
	all := make([]any, 0, len(texts))
	for _, one := range texts {
		all = append(all, one)
	}
	return all
}

// pairs are tags as a list of Key and Value, sorted by key.
func pairs(tags map[string]string) []any {
	var all []any
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, map[string]any{"Key": key, "Value": tags[key]})
	}
	return all
}
