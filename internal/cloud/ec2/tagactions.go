// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"slices"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
)

// mostTagged is how many resources one request may tag, as EC2's.
const mostTagged = 1000

func (a *api) registerTags(f *awsfront.Front) {
	register(a, f, "CreateTags", a.createTags())
	register(a, f, "DeleteTags", a.deleteTags())
	register(a, f, "DescribeTags", a.describeTags())
}

type createTagsInput struct {
	Resources []string
	Tags      []awstag.Tag
	DryRun    bool
}

func (a *api) createTags() awsfront.Spec[createTagsInput, struct{}] {
	return awsfront.Spec[createTagsInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *createTagsInput) ([]awsfront.Target, error) {
			return a.aboutTagged(ctx, call, in.Resources, awsresource.TagMap(in.Tags))
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createTagsInput) (*struct{}, error) {
			tags, err := awstag.Read(service, in.Tags)
			if err != nil {
				return nil, err
			}
			return nil, a.retag(ctx, call, in.Resources, in.DryRun, func(has map[string]string) (map[string]string, error) {
				return awstag.Merge(service, has, tags)
			})
		},
	}
}

type deleteTagsInput struct {
	Resources []string
	Tags      []awstag.Removal
	DryRun    bool
}

func (a *api) deleteTags() awsfront.Spec[deleteTagsInput, struct{}] {
	return awsfront.Spec[deleteTagsInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteTagsInput) ([]awsfront.Target, error) {
			asked := map[string]string{}
			for _, t := range in.Tags {
				asked[t.Key] = ""
				if t.Value != nil {
					asked[t.Key] = *t.Value
				}
			}
			return a.aboutTagged(ctx, call, in.Resources, asked)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *deleteTagsInput) (*struct{}, error) {
			return nil, a.retag(ctx, call, in.Resources, in.DryRun, func(has map[string]string) (map[string]string, error) {
				if len(in.Tags) == 0 {
					return nil, nil
				}
				return awstag.Remove(service, has, in.Tags)
			})
		},
	}
}

// aboutTagged are the resources of a request that changes tags.
func (a *api) aboutTagged(ctx context.Context, call *awsfront.Call, ids []string, tags map[string]string) ([]awsfront.Target, error) {
	if len(ids) > mostTagged {
		return nil, awsfault.Errorf(invalidParameter, "The request names %d resources: there may be %d", len(ids), mostTagged)
	}
	var targets []awsfront.Target
	for _, id := range ids {
		kind, err := a.taggable(id)
		if err != nil {
			return nil, err
		}
		about, err := a.about(ctx, call, kind, id)
		if err != nil {
			return nil, err
		}
		for _, target := range about {
			targets = append(targets, requestTags(target, tags))
		}
	}
	return targets, nil
}

// taggable is the kind of an id whose resources have tags.
func (a *api) taggable(id string) (ec2id.Kind, error) {
	kind, err := ec2id.Of(id)
	if err != nil {
		return kind, err
	}
	if _, ok := a.taggerOf(kind); !ok {
		return kind, awsfault.Errorf("InvalidID", "The ID '%s' is not valid: resources of its kind have no tags", id)
	}
	return kind, nil
}

// retag changes the tags of some resources. If one of them is missing, no resource is changed.
func (a *api) retag(ctx context.Context, call *awsfront.Call, ids []string, dry bool, change func(map[string]string) (map[string]string, error)) error {
	for _, id := range ids {
		kind, err := a.taggable(id)
		if err != nil {
			return err
		}
		t, _ := a.taggerOf(kind)
		if _, err := t.about(ctx, call, id); err != nil {
			return err
		}
	}
	if err := dryrun.Would(dry); err != nil {
		return err
	}
	for _, id := range ids {
		kind, _ := ec2id.Of(id)
		t, _ := a.taggerOf(kind)
		if err := t.change(ctx, id, change); err != nil {
			return err
		}
	}
	return nil
}

// describedTag is a tag with its resource.
type describedTag struct{ Key, Value, ResourceID, ResourceType string }

type describeTagsOutput struct {
	Tags      []describedTag
	NextToken string
}

func (a *api) describeTags() awsfront.Spec[paged, describeTagsOutput] {
	tags := noun[describedTag]{
		rules: ec2filter.Rules{Names: []string{"key", "resource-id", "resource-type", "value"}},
		id:    func(t *describedTag) string { return t.ResourceID + "/" + t.Key },
		tags:  func(t *describedTag) map[string]string { return map[string]string{t.Key: t.Value} },
		values: func(t *describedTag, name string) []string {
			switch name {
			case "key":
				return []string{t.Key}
			case "resource-id":
				return []string{t.ResourceID}
			case "resource-type":
				return []string{t.ResourceType}
			case "value":
				return []string{t.Value}
			}
			return nil
		},
	}
	return awsfront.Spec[paged, describeTagsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *paged) (*describeTagsOutput, error) {
			var all []describedTag
			for _, t := range a.taggers {
				of, err := t.all(ctx)
				if err != nil {
					return nil, err
				}
				for id, has := range of {
					for key, value := range has {
						all = append(all, describedTag{Key: key, Value: string(value), ResourceID: id, ResourceType: t.resource})
					}
				}
			}
			out := &describeTagsOutput{}
			var err error
			out.Tags, out.NextToken, err = choose(a, call, tags, slices.Clip(all), nil, *in)
			return out, err
		},
	}
}
