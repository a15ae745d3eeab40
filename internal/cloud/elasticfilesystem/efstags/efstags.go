// SPDX-License-Identifier: Apache-2.0

// Package efstags has EFS's actions about tags of file systems and access points.
package efstags

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/elasticfilesystem/efsresource"
)

// API has the actions.
type API struct{ store *efsresource.Store }

// New has the actions over a store.
func New(store *efsresource.Store) *API { return &API{store} }

// Register adds the actions to the front.
func (a *API) Register(f *awsfront.Front) {
	awsfront.Register(f, efsresource.Service, "ListTagsForResource", a.listTags())
	awsfront.Register(f, efsresource.Service, "TagResource", a.tagResource())
	awsfront.Register(f, efsresource.Service, "UntagResource", a.untagResource())
}

// isPoint reports whether a request about tags names an access point, and not a file system.
func isPoint(resource string) bool {
	return strings.HasPrefix(resource, "fsap-") || strings.Contains(resource, ":"+efsresource.AccessPoints)
}

func (a *API) aboutResource(ctx context.Context, call *awsfront.Call, resource string, request map[string][]string) ([]awsfront.Target, error) {
	if isPoint(resource) {
		return a.store.AboutPoint(ctx, call, resource, request)
	}
	return a.store.AboutSystem(ctx, call, resource, request)
}

// tagged is a file system or an access point, with its tags and what sets them.
func (a *API) tagged(ctx context.Context, call *awsfront.Call, resource string) (object client.Object, tags map[string]string, set func(map[string]string), err error) {
	if isPoint(resource) {
		id, err := a.store.PointID(call, resource)
		if err != nil {
			return nil, nil, nil, err
		}
		point, err := a.store.Point(ctx, id)
		if err != nil {
			return nil, nil, nil, err
		}
		return point, awsresource.PlainTags(point.Spec.Tags), func(tags map[string]string) { point.Spec.Tags = awsresource.KeptTags(tags) }, nil
	}
	id, err := a.store.SystemID(call, resource)
	if err != nil {
		return nil, nil, nil, err
	}
	system, err := a.store.System(ctx, id)
	if err != nil {
		return nil, nil, nil, err
	}
	return system, efsresource.SystemTags(system), func(tags map[string]string) { efsresource.SetSystemTags(system, tags) }, nil
}

// retag changes tags. A resource that goes away meanwhile needs no change.
func (a *API) retag(ctx context.Context, call *awsfront.Call, resource string, change func(map[string]string) (map[string]string, error)) error {
	var tags map[string]string
	var set func(map[string]string)
	return awsresource.Change(ctx, func() (_ client.Writer, object client.Object, err error) {
		object, tags, set, err = a.tagged(ctx, call, resource)
		return a.store.Management, object, err
	}, func() error {
		changed, err := change(tags)
		if err == nil {
			set(changed)
		}
		return err
	}, func(err error) error { return efsresource.Away(client.IgnoreNotFound(err)) })
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

func (a *API) listTags() awsfront.Spec[resourceInput, tagsOutput] {
	return awsfront.Spec[resourceInput, tagsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *resourceInput) ([]awsfront.Target, error) {
			return a.aboutResource(ctx, call, in.ResourceID, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *resourceInput) (*tagsOutput, error) {
			_, tags, _, err := a.tagged(ctx, call, in.ResourceID)
			if err != nil {
				return nil, err
			}
			page, next, err := awsresource.Page(a.store.Account, call, []any{in.ResourceID}, awstag.Sorted(tags), func(t awstag.Tag) string { return t.Key }, in.MaxResults, in.NextToken)
			return &tagsOutput{page, next}, err
		},
	}
}

type tagInput struct {
	ResourceID string
	Tags       []awstag.Tag
}

func (a *API) tagResource() awsfront.Spec[tagInput, struct{}] {
	return awsfront.Spec[tagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *tagInput) ([]awsfront.Target, error) {
			return a.aboutResource(ctx, call, in.ResourceID, awsresource.RequestTags(nil, in.Tags))
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *tagInput) (*struct{}, error) {
			sets, err := awstag.Read(efsresource.Service, in.Tags)
			if err != nil {
				return nil, err
			}
			return nil, a.retag(ctx, call, in.ResourceID, func(has map[string]string) (map[string]string, error) {
				return awstag.Merge(efsresource.Service, has, sets)
			})
		},
	}
}

type untagInput struct {
	ResourceID string
	TagKeys    []string
}

func (a *API) untagResource() awsfront.Spec[untagInput, struct{}] {
	return awsfront.Spec[untagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *untagInput) ([]awsfront.Target, error) {
			return a.aboutResource(ctx, call, in.ResourceID, map[string][]string{"aws:TagKeys": in.TagKeys})
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *untagInput) (*struct{}, error) {
			return nil, a.retag(ctx, call, in.ResourceID, func(has map[string]string) (map[string]string, error) {
				return awstag.Remove(efsresource.Service, has, awsresource.Removals(in.TagKeys))
			})
		},
	}
}
