// SPDX-License-Identifier: Apache-2.0

package tag

import (
	"context"
	"slices"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// mostTagged is how many resources one request may tag, as EC2's.
const mostTagged = 1000

// Register adds the actions to the front.
func (a *Actions) Register(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "CreateTags", a.createTags())
	ec2resource.Register(a.ec2, f, "DeleteTags", a.deleteTags())
	ec2resource.Register(a.ec2, f, "DescribeTags", a.describeTags())
}

type createTagsInput struct {
	Resources []string
	Tags      []awstag.Tag
	DryRun    bool
}

func (a *Actions) createTags() awsfront.Spec[createTagsInput, struct{}] {
	return awsfront.Spec[createTagsInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *createTagsInput) ([]awsfront.Target, error) {
			return a.aboutTagged(ctx, call, in.Resources, awsresource.TagMap(in.Tags))
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createTagsInput) (*struct{}, error) {
			tags, err := awstag.Read(ec2resource.Service, in.Tags)
			if err != nil {
				return nil, err
			}
			return nil, a.retag(ctx, call, in.Resources, in.DryRun, func(has map[string]string) (map[string]string, error) {
				return awstag.Merge(ec2resource.Service, has, tags)
			})
		},
	}
}

type deleteTagsInput struct {
	Resources []string
	Tags      []awstag.Removal
	DryRun    bool
}

func (a *Actions) deleteTags() awsfront.Spec[deleteTagsInput, struct{}] {
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
				return awstag.Remove(ec2resource.Service, has, in.Tags)
			})
		},
	}
}

// aboutTagged are the resources of a request that changes tags.
func (a *Actions) aboutTagged(ctx context.Context, call *awsfront.Call, ids []string, tags map[string]string) ([]awsfront.Target, error) {
	if len(ids) > mostTagged {
		return nil, awsfault.Errorf(ec2resource.InvalidParameter, "The request names %d resources: there may be %d", len(ids), mostTagged)
	}
	var targets []awsfront.Target
	for _, id := range ids {
		kind, err := a.taggable(id)
		if err != nil {
			return nil, err
		}
		about, err := a.ec2.About(ctx, call, kind, id)
		if err != nil {
			return nil, err
		}
		for _, target := range about {
			targets = append(targets, ec2resource.RequestTags(target, tags))
		}
	}
	return targets, nil
}

// taggable is the kind of an id whose resources have tags.
func (a *Actions) taggable(id string) (ec2id.Kind, error) {
	kind, err := ec2id.Of(id)
	if err != nil {
		return kind, err
	}
	if _, ok := a.ec2.TaggerOf(kind); !ok {
		return kind, awsfault.Errorf("InvalidID", "The ID '%s' is not valid: resources of its kind have no tags", id)
	}
	return kind, nil
}

// retag changes the tags of some resources. If one of them is missing, no resource is changed.
func (a *Actions) retag(ctx context.Context, call *awsfront.Call, ids []string, dry bool, change func(map[string]string) (map[string]string, error)) error {
	for _, id := range ids {
		kind, err := a.taggable(id)
		if err != nil {
			return err
		}
		t, _ := a.ec2.TaggerOf(kind)
		if _, err := t.About(ctx, call, id); err != nil {
			return err
		}
	}
	if err := dryrun.Would(dry); err != nil {
		return err
	}
	for _, id := range ids {
		kind, _ := ec2id.Of(id)
		t, _ := a.ec2.TaggerOf(kind)
		if err := t.Change(ctx, id, change); err != nil {
			return err
		}
	}
	return nil
}

// describedTag is a tag with its resource.
type describedTag struct {
	Key          string `filter:"key"`
	Value        string `filter:"value"`
	ResourceID   string `filter:"resource-id"`
	ResourceType string `filter:"resource-type"`
}

type describeTagsOutput struct {
	Tags      []describedTag
	NextToken string
}

func (a *Actions) describeTags() awsfront.Spec[ec2resource.Paged, describeTagsOutput] {
	tags := ec2resource.Noun[describedTag]{
		Fields: awsresource.FiltersOf[describedTag](),
		ID:     func(t *describedTag) string { return t.ResourceID + "/" + t.Key },
		Tags:   func(t *describedTag) map[string]string { return map[string]string{t.Key: t.Value} },
	}
	return awsfront.Spec[ec2resource.Paged, describeTagsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *ec2resource.Paged) (*describeTagsOutput, error) {
			var all []describedTag
			for _, t := range a.ec2.Taggers {
				of, err := t.All(ctx)
				if err != nil {
					return nil, err
				}
				for id, has := range of {
					for key, value := range has {
						all = append(all, describedTag{Key: key, Value: string(value), ResourceID: id, ResourceType: t.Resource})
					}
				}
			}
			out := &describeTagsOutput{}
			var err error
			out.Tags, out.NextToken, err = ec2resource.Choose(a.ec2, call, tags, slices.Clip(all), nil, *in)
			return out, err
		},
	}
}
