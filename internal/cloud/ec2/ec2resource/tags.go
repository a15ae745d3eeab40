// SPDX-License-Identifier: Apache-2.0

package ec2resource

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
)

// Tagger is how CreateTags, DeleteTags and DescribeTags reach the tags of a kind of resources. A noun adds its own with
// a.tagged when it is registered.
type Tagger struct {
	Kind ec2id.Kind
	// Resource is what ARNs, TagSpecifications and DescribeTags call the kind: vpc, natgateway.
	Resource string
	// About is a resource as IAM is asked about it, with its tags. The error of one that is not there is the kind's
	// NotFound.
	About func(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error)
	// Change changes the tags of a resource.
	Change func(ctx context.Context, id string, change func(map[string]string) (map[string]string, error)) error
	// All are the tags of all resources of the kind, by id.
	All func(ctx context.Context) (map[string]v1alpha1.Tags, error)
}

// Tagged adds the tagger of a kind.
func (a *EC2) Tagged(t Tagger) {
	if _, again := a.TaggerOf(t.Kind); again {
		panic("ec2: two taggers of " + t.Kind.Prefix)
	}
	a.Taggers = append(a.Taggers, t)
}

// TaggerOf finds the tagger of a kind.
func (a *EC2) TaggerOf(kind ec2id.Kind) (Tagger, bool) {
	i := slices.IndexFunc(a.Taggers, func(t Tagger) bool { return t.Kind.Prefix == kind.Prefix })
	if i < 0 {
		return Tagger{}, false
	}
	return a.Taggers[i], true
}

// AllTagged returns all resources that have a tagger, with their tags.
func (a *EC2) AllTagged(ctx context.Context, call *awsfront.Call) ([]awsresource.Tagged, error) {
	var all []awsresource.Tagged
	for _, t := range a.Taggers {
		of, err := t.All(ctx)
		if err != nil {
			return nil, err
		}
		for id, tags := range of {
			all = append(all, awsresource.Tagged{ARN: a.ARN(call, t.Resource+"/"+id), Type: Service + ":" + t.Resource, Tags: tags})
		}
	}
	return all, nil
}

// ObjectTags is the tagger of a kind of which each resource is an object that has its id for a name. T is the object's
// type and L that of its list; conditions, which may be nil, are those of the resource's type.
func ObjectTags[T any, P interface {
	*T
	client.Object
}, L client.ObjectList](a *EC2, kind ec2id.Kind, resource string, list func() L, items func(L) []T, tags func(*T) *v1alpha1.Tags, conditions func(*awsfront.Call, *T) map[string][]string,
) Tagger {
	return Tagger{
		Kind: kind, Resource: resource,
		About: func(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error) {
			found := P(new(T))
			if err := a.Get(ctx, kind, id, found); err != nil {
				return awsfront.Target{}, err
			}
			var own map[string][]string
			if conditions != nil {
				own = conditions(call, found)
			}
			return a.Target(call, resource, id, *tags(found), own), nil
		},
		Change: func(ctx context.Context, id string, change func(map[string]string) (map[string]string, error)) error {
			found := P(new(T))
			return a.Change(ctx, kind, id, found, func() error {
				changed, err := change(awsresource.PlainTags(*tags(found)))
				if err != nil {
					return err
				}
				*tags(found) = awsresource.KeptTags(changed)
				return nil
			})
		},
		All: func(ctx context.Context) (map[string]v1alpha1.Tags, error) {
			found := list()
			if err := a.List(ctx, found); err != nil {
				return nil, err
			}
			all := map[string]v1alpha1.Tags{}
			each := items(found)
			for i := range each {
				all[P(&each[i]).GetName()] = *tags(&each[i])
			}
			return all, nil
		},
	}
}

// TagSpecification has the tags of one type of what a request makes.
type TagSpecification struct {
	ResourceType string
	Tags         []awstag.Tag
}

// ReadTags reads the tags that a request gives what it makes, which is of one of some types, as "vpc".
func ReadTags(specifications []TagSpecification, types ...string) (map[string]map[string]string, error) {
	read := map[string]map[string]string{}
	for _, s := range specifications {
		if !slices.Contains(types, s.ResourceType) {
			return nil, awsfault.Errorf(InvalidParameter, "'%.64s' is not a valid taggable resource type for this operation.", s.ResourceType)
		}
		if _, again := read[s.ResourceType]; again {
			return nil, awsfault.Errorf(InvalidParameter, "There are two tag specifications for the resource type %s: put all its tags into one", s.ResourceType)
		}
		tags, err := awstag.Read(Service, s.Tags)
		if err != nil {
			return nil, err
		}
		read[s.ResourceType] = tags
	}
	return read, nil
}
