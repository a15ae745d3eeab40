// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
)

// aboutARN is the rule of an ARN as IAM is asked about it.
func (b *Bus) aboutARN(ctx context.Context, call *awsfront.Call, text string) ([]awsfront.Target, error) {
	name, err := b.ruleOf(call, text)
	if err != nil {
		return nil, err
	}
	return b.about(ctx, call, "", name)
}

type tagInput struct {
	ResourceARN string
	Tags        []awstag.Tag
}

func (b *Bus) tag() awsfront.Spec[tagInput, struct{}] {
	return awsfront.Spec[tagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *tagInput) ([]awsfront.Target, error) {
			targets, err := b.aboutARN(ctx, call, in.ResourceARN)
			if err == nil {
				targets[0].Conditions = awsresource.RequestTags(targets[0].Conditions, in.Tags)
			}
			return targets, err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *tagInput) (*struct{}, error) {
			set, err := awstag.Read(service, in.Tags)
			if err != nil {
				return nil, err
			}
			return nil, b.changeTags(ctx, call, in.ResourceARN, func(has map[string]string) (map[string]string, error) { return awstag.Merge(service, has, set) })
		},
	}
}

type untagInput struct {
	ResourceARN string
	TagKeys     []string
}

func (b *Bus) untag() awsfront.Spec[untagInput, struct{}] {
	return awsfront.Spec[untagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *untagInput) ([]awsfront.Target, error) {
			targets, err := b.aboutARN(ctx, call, in.ResourceARN)
			if err == nil && len(in.TagKeys) > 0 {
				targets[0].Conditions["aws:TagKeys"] = in.TagKeys
			}
			return targets, err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *untagInput) (*struct{}, error) {
			return nil, b.changeTags(ctx, call, in.ResourceARN, func(has map[string]string) (map[string]string, error) {
				return awstag.Remove(service, has, awsresource.Removals(in.TagKeys))
			})
		},
	}
}

func (b *Bus) changeTags(ctx context.Context, call *awsfront.Call, text string, change func(map[string]string) (map[string]string, error)) error {
	name, err := b.ruleOf(call, text)
	if err != nil {
		return err
	}
	return b.change(ctx, name, func(r *record) error {
		changed, err := change(awsresource.PlainTags(r.Tags))
		r.Tags = awsresource.KeptTags(changed)
		return err
	})
}

type listTagsInput struct{ ResourceARN string }

type listTagsOutput struct{ Tags []awstag.Tag }

func (b *Bus) listTags() awsfront.Spec[listTagsInput, listTagsOutput] {
	return awsfront.Spec[listTagsInput, listTagsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *listTagsInput) ([]awsfront.Target, error) {
			return b.aboutARN(ctx, call, in.ResourceARN)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listTagsInput) (*listTagsOutput, error) {
			name, err := b.ruleOf(call, in.ResourceARN)
			if err != nil {
				return nil, err
			}
			found, err := b.find(ctx, name)
			if err != nil {
				return nil, err
			}
			return &listTagsOutput{awsresource.ShownTags(found.Tags)}, nil
		},
	}
}
