// SPDX-License-Identifier: Apache-2.0

package kms

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsrecord"
)

// tag is a tag as KMS writes it.
type tag struct{ TagKey, TagValue string }

func readTags(tags []tag) (v1alpha1.Tags, error) {
	list := make([]awstag.Tag, 0, len(tags))
	for _, t := range tags {
		list = append(list, awstag.Tag{Key: t.TagKey, Value: t.TagValue})
	}
	read, err := awstag.Read(service, list)
	return tagsFrom(read), err
}

func plain(tags v1alpha1.Tags) map[string]string {
	shown := make(map[string]string, len(tags))
	for name, value := range tags {
		shown[name] = string(value)
	}
	return shown
}

type listTagsInput struct {
	KeyID, Marker string
	Limit         *int32
}

type listTagsOutput struct {
	Tags       []tag
	NextMarker string
	Truncated  bool
}

func (a *api) listResourceTags() awsfront.Spec[listTagsInput, listTagsOutput] {
	return awsfront.Spec[listTagsInput, listTagsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *listTagsInput) ([]awsfront.Target, error) {
			return a.aboutKey(ctx, call, in.KeyID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listTagsInput) (*listTagsOutput, error) {
			found, err := a.must(ctx, call, in.KeyID, false)
			if err != nil {
				return nil, err
			}
			cut, next, err := page(a, call, found.ID, awstag.Sorted(plain(found.Tags)), func(t awstag.Tag) string { return t.Key }, in.Marker, in.Limit)
			out := &listTagsOutput{Tags: []tag{}, NextMarker: next, Truncated: next != ""}
			for _, t := range cut {
				out.Tags = append(out.Tags, tag{t.Key, t.Value})
			}
			return out, err
		},
	}
}

type tagInput struct {
	KeyID string
	Tags  []tag
}

func (a *api) tagResource() awsfront.Spec[tagInput, struct{}] {
	return awsfront.Spec[tagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *tagInput) ([]awsfront.Target, error) {
			conditions := map[string][]string{}
			requestTags(conditions, in.Tags)
			return a.aboutKey(ctx, call, in.KeyID, conditions)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *tagInput) (*struct{}, error) {
			sets, err := readTags(in.Tags)
			if err != nil {
				return nil, err
			}
			return nil, a.retag(ctx, call, in.KeyID, func(has map[string]string) (map[string]string, error) { return awstag.Merge(service, has, plain(sets)) })
		},
	}
}

type untagInput struct {
	KeyID   string
	TagKeys []string
}

func (a *api) untagResource() awsfront.Spec[untagInput, struct{}] {
	return awsfront.Spec[untagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *untagInput) ([]awsfront.Target, error) {
			return a.aboutKey(ctx, call, in.KeyID, map[string][]string{"aws:TagKeys": in.TagKeys})
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *untagInput) (*struct{}, error) {
			removals := make([]awstag.Removal, 0, len(in.TagKeys))
			for _, name := range in.TagKeys {
				removals = append(removals, awstag.Removal{Key: name})
			}
			return nil, a.retag(ctx, call, in.KeyID, func(has map[string]string) (map[string]string, error) { return awstag.Remove(service, has, removals) })
		},
	}
}

func (a *api) retag(ctx context.Context, call *awsfront.Call, text string, change func(map[string]string) (map[string]string, error)) error {
	return a.change(ctx, call, text, func(r *awsrecord.Record[key]) error { return a.usable(call, r, false) }, func(r *awsrecord.Record[key]) error {
		changed, err := change(plain(r.Tags))
		r.Tags = tagsFrom(changed)
		return err
	})
}
