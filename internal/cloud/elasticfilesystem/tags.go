// SPDX-License-Identifier: Apache-2.0

package elasticfilesystem

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
)

// isPoint reports whether a request about tags names an access point, and not a file system.
func isPoint(resource string) bool {
	return strings.HasPrefix(resource, "fsap-") || strings.Contains(resource, ":"+accessPoints)
}

func (a *api) aboutResource(ctx context.Context, call *awsfront.Call, resource string, request map[string][]string) ([]awsfront.Target, error) {
	if isPoint(resource) {
		return a.aboutPoint(ctx, call, resource, request)
	}
	return a.aboutSystem(ctx, call, resource, request)
}

// tagged is a file system or an access point, with its tags and what sets them.
func (a *api) tagged(ctx context.Context, call *awsfront.Call, resource string) (object client.Object, tags map[string]string, set func(map[string]string), err error) {
	if isPoint(resource) {
		id, err := a.pointOf(call, resource)
		if err != nil {
			return nil, nil, nil, err
		}
		point, err := a.point(ctx, id)
		if err != nil {
			return nil, nil, nil, err
		}
		return point, plain(point.Spec.Tags), func(tags map[string]string) { point.Spec.Tags = kept(tags) }, nil
	}
	id, err := a.systemOf(call, resource)
	if err != nil {
		return nil, nil, nil, err
	}
	system, err := a.system(ctx, id)
	if err != nil {
		return nil, nil, nil, err
	}
	return system, systemTags(system), func(tags map[string]string) { setSystemTags(system, tags) }, nil
}

// retag changes tags. It is done again if somebody else changed the object meanwhile.
func (a *api) retag(ctx context.Context, call *awsfront.Call, resource string, change func(map[string]string) (map[string]string, error)) error {
	for {
		object, tags, set, err := a.tagged(ctx, call, resource)
		if err != nil {
			return err
		}
		before, _ := object.DeepCopyObject().(client.Object)
		changed, err := change(tags)
		if err != nil {
			return err
		}
		set(changed)
		err = a.Management.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) && ctx.Err() == nil {
			continue
		}
		return away(client.IgnoreNotFound(err))
	}
}

type resourceInput struct {
	ResourceID string
	MaxResults *int32
	NextToken  string
}

type tagsOutput struct {
	Tags      []awstag.Tag
	NextToken string
}

func (a *api) listTags() awsfront.Spec[resourceInput, tagsOutput] {
	return awsfront.Spec[resourceInput, tagsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *resourceInput) ([]awsfront.Target, error) {
			return a.aboutResource(ctx, call, in.ResourceID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *resourceInput) (*tagsOutput, error) {
			_, tags, _, err := a.tagged(ctx, call, in.ResourceID)
			if err != nil {
				return nil, err
			}
			page, next, err := cut(a, call, []any{in.ResourceID}, awstag.Sorted(tags), in.MaxResults, in.NextToken, func(t awstag.Tag) string { return t.Key })
			return &tagsOutput{append([]awstag.Tag{}, page...), next}, err
		},
	}
}

type tagInput struct {
	ResourceID string
	Tags       []awstag.Tag
}

func (a *api) tagResource() awsfront.Spec[tagInput, struct{}] {
	return awsfront.Spec[tagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *tagInput) ([]awsfront.Target, error) {
			return a.aboutResource(ctx, call, in.ResourceID, requestTags(in.Tags))
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *tagInput) (*struct{}, error) {
			sets, err := awstag.Read(service, in.Tags)
			if err != nil {
				return nil, err
			}
			return nil, a.retag(ctx, call, in.ResourceID, func(has map[string]string) (map[string]string, error) { return awstag.Merge(service, has, sets) })
		},
	}
}

type untagInput struct {
	ResourceID string
	TagKeys    []string
}

func (a *api) untagResource() awsfront.Spec[untagInput, struct{}] {
	return awsfront.Spec[untagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *untagInput) ([]awsfront.Target, error) {
			return a.aboutResource(ctx, call, in.ResourceID, map[string][]string{"aws:TagKeys": in.TagKeys})
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *untagInput) (*struct{}, error) {
			removals := make([]awstag.Removal, 0, len(in.TagKeys))
			for _, key := range in.TagKeys {
				removals = append(removals, awstag.Removal{Key: key})
			}
			return nil, a.retag(ctx, call, in.ResourceID, func(has map[string]string) (map[string]string, error) { return awstag.Remove(service, has, removals) })
		},
	}
}
