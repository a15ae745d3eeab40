// SPDX-License-Identifier: Apache-2.0

package ec2

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

// tagger is how CreateTags, DeleteTags and DescribeTags reach the tags of a kind of resources. A noun adds its own with a.tagged when it is
// registered.
type tagger struct {
	kind ec2id.Kind
	// resource is what ARNs, TagSpecifications and DescribeTags call the kind: vpc, natgateway.
	resource string
	// about is a resource as IAM is asked about it, with its tags. The error of one that is not there is the kind's NotFound.
	about func(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error)
	// change changes the tags of a resource.
	change func(ctx context.Context, id string, change func(map[string]string) (map[string]string, error)) error
	// all are the tags of all resources of the kind, by id.
	all func(ctx context.Context) (map[string]v1alpha1.Tags, error)
}

// tagged adds the tagger of a kind.
func (a *api) tagged(t tagger) {
	if _, again := a.taggerOf(t.kind); again {
		panic("ec2: two taggers of " + t.kind.Prefix)
	}
	a.taggers = append(a.taggers, t)
}

// taggerOf finds the tagger of a kind.
func (a *api) taggerOf(kind ec2id.Kind) (tagger, bool) {
	i := slices.IndexFunc(a.taggers, func(t tagger) bool { return t.kind.Prefix == kind.Prefix })
	if i < 0 {
		return tagger{}, false
	}
	return a.taggers[i], true
}

// objectTags is the tagger of a kind of which each resource is an object that has its id for a name. T is the object's type and L that of its
// list; conditions, which may be nil, are those of the resource's type.
func objectTags[T any, P interface {
	*T
	client.Object
}, L client.ObjectList](a *api, kind ec2id.Kind, resource string, list func() L, items func(L) []T, tags func(*T) *v1alpha1.Tags, conditions func(*awsfront.Call, *T) map[string][]string,
) tagger {
	return tagger{
		kind: kind, resource: resource,
		about: func(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error) {
			found := P(new(T))
			if err := a.get(ctx, kind, id, found); err != nil {
				return awsfront.Target{}, err
			}
			var own map[string][]string
			if conditions != nil {
				own = conditions(call, found)
			}
			return a.target(call, resource, id, *tags(found), own), nil
		},
		change: func(ctx context.Context, id string, change func(map[string]string) (map[string]string, error)) error {
			found := P(new(T))
			return a.change(ctx, kind, id, found, func() error {
				changed, err := change(awsresource.PlainTags(*tags(found)))
				if err != nil {
					return err
				}
				*tags(found) = awsresource.KeptTags(changed)
				return nil
			})
		},
		all: func(ctx context.Context) (map[string]v1alpha1.Tags, error) {
			found := list()
			if err := a.list(ctx, found); err != nil {
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

// tagSpecification has the tags of one type of what a request makes.
type tagSpecification struct {
	ResourceType string
	Tags         []awstag.Tag
}

// readTags reads the tags that a request gives what it makes, which is of one of some types, as "vpc".
func readTags(specifications []tagSpecification, types ...string) (map[string]map[string]string, error) {
	read := map[string]map[string]string{}
	for _, s := range specifications {
		if !slices.Contains(types, s.ResourceType) {
			return nil, awsfault.Errorf(invalidParameter, "'%.64s' is not a valid taggable resource type for this operation.", s.ResourceType)
		}
		if _, again := read[s.ResourceType]; again {
			return nil, awsfault.Errorf(invalidParameter, "There are two tag specifications for the resource type %s: put all its tags into one", s.ResourceType)
		}
		tags, err := awstag.Read(service, s.Tags)
		if err != nil {
			return nil, err
		}
		read[s.ResourceType] = tags
	}
	return read, nil
}
