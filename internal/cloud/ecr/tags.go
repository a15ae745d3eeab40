// SPDX-License-Identifier: Apache-2.0

package ecr

import (
	"context"
	"maps"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/image/registrystore"
)

// named is the repository of an ARN.
func (a *api) named(call *awsfront.Call, resource string) (string, error) {
	name, ok := strings.CutPrefix(resource, a.arn(call, ""))
	if !ok {
		return "", awsfault.Errorf(invalid, "Invalid parameter at 'resourceArn': %.200q is not the ARN of a repository of this account, which begin with %s", resource, a.arn(call, ""))
	}
	return name, nil
}

// aboutARN is the repository of an ARN, and conditions of the request.
func (a *api) aboutARN(call *awsfront.Call, resource string, conditions map[string][]string) ([]awsfront.Target, error) {
	name, err := a.named(call, resource)
	if err != nil {
		return nil, err
	}
	targets, err := a.about(call, "", name)
	if err != nil {
		return nil, err
	}
	maps.Copy(targets[0].Conditions, conditions)
	return targets, nil
}

type resourceInput struct{ ResourceARN string }

type tagsOutput struct{ Tags []awstag.Tag }

func (a *api) listTags() awsfront.Spec[resourceInput, tagsOutput] {
	return awsfront.Spec[resourceInput, tagsOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *resourceInput) ([]awsfront.Target, error) {
			return a.aboutARN(call, in.ResourceARN, nil)
		},
		Do: func(_ context.Context, call *awsfront.Call, in *resourceInput) (*tagsOutput, error) {
			name, err := a.named(call, in.ResourceARN)
			if err != nil {
				return nil, err
			}
			r, err := a.Store.Get(name)
			if err != nil {
				return nil, a.fault(call, name, err)
			}
			return &tagsOutput{awstag.Sorted(r.Tags)}, nil
		},
	}
}

type tagInput struct {
	ResourceARN string
	Tags        []awstag.Tag
}

func (a *api) tagResource() awsfront.Spec[tagInput, struct{}] {
	return awsfront.Spec[tagInput, struct{}]{
		About: func(_ context.Context, call *awsfront.Call, in *tagInput) ([]awsfront.Target, error) {
			return a.aboutARN(call, in.ResourceARN, awsresource.RequestTags(nil, in.Tags))
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *tagInput) (*struct{}, error) {
			sets, err := awstag.Read(service, in.Tags)
			if err != nil {
				return nil, err
			}
			return nil, a.retag(ctx, call, in.ResourceARN, func(has map[string]string) (map[string]string, error) { return awstag.Merge(service, has, sets) })
		},
	}
}

type untagInput struct {
	ResourceARN string
	TagKeys     []string
}

func (a *api) untagResource() awsfront.Spec[untagInput, struct{}] {
	return awsfront.Spec[untagInput, struct{}]{
		About: func(_ context.Context, call *awsfront.Call, in *untagInput) ([]awsfront.Target, error) {
			return a.aboutARN(call, in.ResourceARN, map[string][]string{"aws:TagKeys": in.TagKeys})
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *untagInput) (*struct{}, error) {
			return nil, a.retag(ctx, call, in.ResourceARN, func(has map[string]string) (map[string]string, error) {
				return awstag.Remove(service, has, awsresource.Removals(in.TagKeys))
			})
		},
	}
}

func (a *api) retag(ctx context.Context, call *awsfront.Call, resource string, change func(map[string]string) (map[string]string, error)) error {
	name, err := a.named(call, resource)
	if err != nil {
		return err
	}
	return a.fault(call, name, a.Store.Update(ctx, name, func(r *registrystore.Repository) (err error) {
		r.Tags, err = change(r.Tags)
		return err
	}))
}
