// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

type tagsOutput struct{ Tags map[string]string }

type resourceInput struct{ ResourceARN string }

type tagInput struct {
	ResourceARN string
	Tags        map[string]string
}

type untagInput struct {
	ResourceARN string
	TagKeys     []string
}

// The older actions, which name log groups and not ARNs.
type tagNameInput struct {
	LogGroupName string
	Tags         map[string]string
}

type untagNameInput struct {
	LogGroupName string
	Tags         []string
}

// tagged are the log groups with their tags.
func (a *api) tagged(ctx context.Context, call *awsfront.Call) ([]awsresource.Tagged, error) {
	return groups.Tagged(ctx, a.Management, service+":log-group", func(r *awsrecord.Record[group]) string { return a.arn(call, r.Name) })
}

func (a *api) listTags() awsfront.Spec[resourceInput, tagsOutput] {
	return listing(a, func(call *awsfront.Call, in *resourceInput) (string, error) { return a.nameOf(call, in.ResourceARN) })
}

func (a *api) listTagsByName() awsfront.Spec[nameInput, tagsOutput] {
	return listing(a, func(_ *awsfront.Call, in *nameInput) (string, error) {
		return in.LogGroupName, checkName(in.LogGroupName)
	})
}

func (a *api) tag() awsfront.Spec[tagInput, struct{}] {
	return tagging(a, func(call *awsfront.Call, in *tagInput) (string, map[string]string, error) {
		name, err := a.nameOf(call, in.ResourceARN)
		return name, in.Tags, err
	})
}

func (a *api) tagByName() awsfront.Spec[tagNameInput, struct{}] {
	return tagging(a, func(_ *awsfront.Call, in *tagNameInput) (string, map[string]string, error) {
		return in.LogGroupName, in.Tags, checkName(in.LogGroupName)
	})
}

func (a *api) untag() awsfront.Spec[untagInput, struct{}] {
	return untagging(a, func(call *awsfront.Call, in *untagInput) (string, []string, error) {
		name, err := a.nameOf(call, in.ResourceARN)
		return name, in.TagKeys, err
	})
}

func (a *api) untagByName() awsfront.Spec[untagNameInput, struct{}] {
	return untagging(a, func(_ *awsfront.Call, in *untagNameInput) (string, []string, error) {
		return in.LogGroupName, in.Tags, checkName(in.LogGroupName)
	})
}

func listing[In any](a *api, read func(*awsfront.Call, *In) (name string, err error)) awsfront.Spec[In, tagsOutput] {
	return awsfront.Spec[In, tagsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *In) ([]awsfront.Target, error) {
			name, err := read(call, in)
			if err != nil {
				return nil, err
			}
			return a.named(ctx, call, name)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *In) (*tagsOutput, error) {
			name, err := read(call, in)
			if err != nil {
				return nil, err
			}
			found, err := a.find(ctx, name)
			if err != nil {
				return nil, err
			}
			return &tagsOutput{awsresource.PlainTags(found.Tags)}, nil
		},
	}
}

func tagging[In any](a *api, read func(*awsfront.Call, *In) (name string, tags map[string]string, err error)) awsfront.Spec[In, struct{}] {
	return awsfront.Spec[In, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *In) ([]awsfront.Target, error) {
			name, tags, err := read(call, in)
			if err != nil {
				return nil, err
			}
			return a.about(ctx, call, name, awsresource.RequestTags(nil, awstag.Sorted(tags)))
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *In) (*struct{}, error) {
			name, tags, err := read(call, in)
			if err != nil {
				return nil, err
			}
			sets, err := awstag.Read(service, awstag.Sorted(tags))
			if err != nil {
				return nil, err
			}
			return nil, a.retag(ctx, name, func(has map[string]string) (map[string]string, error) { return awstag.Merge(service, has, sets) })
		},
	}
}

func untagging[In any](a *api, read func(*awsfront.Call, *In) (name string, keys []string, err error)) awsfront.Spec[In, struct{}] {
	return awsfront.Spec[In, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *In) ([]awsfront.Target, error) {
			name, keys, err := read(call, in)
			if err != nil {
				return nil, err
			}
			return a.about(ctx, call, name, map[string][]string{"aws:TagKeys": keys})
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *In) (*struct{}, error) {
			name, keys, err := read(call, in)
			if err != nil {
				return nil, err
			}
			return nil, a.retag(ctx, name, func(has map[string]string) (map[string]string, error) {
				return awstag.Remove(service, has, awsresource.Removals(keys))
			})
		},
	}
}

func (a *api) retag(ctx context.Context, name string, change func(map[string]string) (map[string]string, error)) error {
	return a.change(ctx, name, func(r *awsrecord.Record[group]) error {
		changed, err := change(awsresource.PlainTags(r.Tags))
		r.Tags = awsresource.KeptTags(changed)
		return err
	})
}
