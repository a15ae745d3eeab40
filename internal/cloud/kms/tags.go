// SPDX-License-Identifier: Apache-2.0

package kms

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

// tag is a tag as KMS writes it.
type tag struct{ TagKey, TagValue string }

// plainTags are tags as other services write them.
func plainTags(tags []tag) []awstag.Tag {
	list := make([]awstag.Tag, 0, len(tags))
	for _, t := range tags {
		list = append(list, awstag.Tag{Key: t.TagKey, Value: t.TagValue})
	}
	return list
}

// tagged are the keys with their tags.
func (a *api) tagged(ctx context.Context, call *awsfront.Call) ([]awsresource.Tagged, error) {
	return keys.Tagged(ctx, a.Management, service+":key", func(r *awsrecord.Record[key]) string { return a.keyARN(call, r.ID) })
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
			cut, next, err := awsresource.Page(a.Account, call, found.ID, awsresource.ShownTags(found.Tags), func(t awstag.Tag) string { return t.Key }, in.Limit, in.Marker)
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
			return a.aboutKey(ctx, call, in.KeyID, awsresource.RequestTags(nil, plainTags(in.Tags)))
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *tagInput) (*struct{}, error) {
			sets, err := awstag.Read(service, plainTags(in.Tags))
			if err != nil {
				return nil, err
			}
			return nil, a.retag(ctx, call, in.KeyID, func(has map[string]string) (map[string]string, error) { return awstag.Merge(service, has, sets) })
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
			return nil, a.retag(ctx, call, in.KeyID, func(has map[string]string) (map[string]string, error) {
				return awstag.Remove(service, has, awsresource.Removals(in.TagKeys))
			})
		},
	}
}

func (a *api) retag(ctx context.Context, call *awsfront.Call, text string, change func(map[string]string) (map[string]string, error)) error {
	return a.change(ctx, call, text, func(r *awsrecord.Record[key]) error { return a.usable(call, r, false) }, func(r *awsrecord.Record[key]) error {
		changed, err := change(awsresource.PlainTags(r.Tags))
		r.Tags = awsresource.KeptTags(changed)
		return err
	})
}
