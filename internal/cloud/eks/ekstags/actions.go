// SPDX-License-Identifier: Apache-2.0

package ekstags

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/accessentries"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

// The codes of the actions of tags, beside those of all actions.
const (
	badRequest   = "BadRequestException"
	tagsNotFound = "NotFoundException"
)

type tagInput struct {
	ResourceARN string
	Tags        map[string]string
}

type untagInput struct {
	ResourceARN string
	TagKeys     []string
}

type listTagsInput struct{ ResourceARN string }

type listTagsOutput struct{ Tags map[string]string }

func (a *API) listTags() awsfront.Spec[listTagsInput, listTagsOutput] {
	return awsfront.Spec[listTagsInput, listTagsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *listTagsInput) ([]awsfront.Target, error) {
			return a.aboutTagged(ctx, call, in.ResourceARN, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listTagsInput) (*listTagsOutput, error) {
			found, err := a.tagged(ctx, call, in.ResourceARN)
			if err != nil {
				return nil, err
			}
			return &listTagsOutput{Tags: found.tags}, nil
		},
	}
}

func (a *API) tag() awsfront.Spec[tagInput, struct{}] {
	return awsfront.Spec[tagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *tagInput) ([]awsfront.Target, error) {
			conditions := map[string][]string{}
			awsresource.RequestTags(conditions, awstag.Sorted(in.Tags))
			return a.aboutTagged(ctx, call, in.ResourceARN, conditions)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *tagInput) (*struct{}, error) {
			if _, err := awstag.Read(eksresource.Service, awstag.Sorted(in.Tags)); err != nil {
				return nil, asBadRequest(err)
			}
			return nil, a.retag(ctx, call, in.ResourceARN, func(has map[string]string) (map[string]string, error) {
				return awstag.Merge(eksresource.Service, has, in.Tags)
			})
		},
	}
}

func (a *API) untag() awsfront.Spec[untagInput, struct{}] {
	return awsfront.Spec[untagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *untagInput) ([]awsfront.Target, error) {
			return a.aboutTagged(ctx, call, in.ResourceARN, map[string][]string{"aws:TagKeys": in.TagKeys})
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *untagInput) (*struct{}, error) {
			return nil, a.retag(ctx, call, in.ResourceARN, func(has map[string]string) (map[string]string, error) {
				return awstag.Remove(eksresource.Service, has, awsresource.Removals(in.TagKeys))
			})
		},
	}
}

// asBadRequest gives a refusal the code that the actions of tags have.
func asBadRequest(err error) error {
	if known, ok := err.(*awsfault.Error); ok { //nolint:errorlint // package awstag returns it as it is
		return awsfault.Errorf(badRequest, "%s", known.Message)
	}
	return err
}

// aboutTagged is the resource of an ARN as IAM is asked about it.
func (a *API) aboutTagged(ctx context.Context, call *awsfront.Call, text string, conditions map[string][]string) ([]awsfront.Target, error) {
	if conditions == nil {
		conditions = map[string][]string{}
	}
	target := awsfront.Target{Resource: text, Conditions: conditions}
	found, err := a.tagged(ctx, call, text)
	if known, ok := err.(*awsfault.Error); ok { //nolint:errorlint // tagged returns it as it is
		if known.Code == tagsNotFound {
			return []awsfront.Target{target}, nil // a caller who may not see it is not told that it is not there
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	awsresource.ResourceTags(conditions, found.tags)
	return []awsfront.Target{target}, nil
}

// tagged is a resource that has tags.
type tagged struct {
	// Client writes the object.
	client.Client

	object client.Object
	tags   map[string]string
	// keep puts other tags on the object.
	keep func(map[string]string) error
}

// tagged reads the resource of an ARN.
func (a *API) tagged(ctx context.Context, call *awsfront.Call, text string) (*tagged, error) {
	missing := awsfault.Errorf(tagsNotFound, "The resource %.300s does not exist", text).WithStatus(404)
	parsed, err := arn.Parse(text)
	if err != nil || parsed.Service != eksresource.Service {
		return nil, awsfault.Errorf(badRequest, "The resource ARN %.300q is not one of EKS's, like %s", text, a.store.ClusterARN(call, "NAME"))
	}
	parts := strings.Split(parsed.Resource, "/")
	if parsed.Region != a.store.Region || parsed.Account != call.Caller.Account() || len(parts) < 2 {
		return nil, missing
	}
	of, err := a.store.FindCluster(ctx, parts[1])
	if err != nil || of == nil {
		return nil, orMissing(err, missing)
	}
	found, err := a.find(ctx, of, parsed.Resource, parts)
	if err != nil || found == nil {
		return nil, orMissing(err, missing)
	}
	return found, nil
}

// find finds a resource of a cluster by its ARN's resource and that one's parts. It is nil if there is none.
func (a *API) find(ctx context.Context, of *v1alpha1.Cluster, resource string, parts []string) (*tagged, error) {
	switch kind := parts[0]; {
	case kind == "cluster" && len(parts) == 2:
		return a.kept(of, &of.Spec.Tags), nil
	case kind == "nodegroup" && len(parts) == 4:
		return a.group(ctx, of, parts[2], parts[3])
	case kind == "fargateprofile" && len(parts) == 4:
		return a.profile(ctx, of, parts[2], parts[3])
	case kind == "podidentityassociation" && len(parts) == 3:
		association, err := a.associations.Find(ctx, of, parts[2])
		if err != nil || association == nil {
			return nil, err
		}
		return a.kept(association, &association.Spec.Tags), nil
	case kind == "addon" && len(parts) == 4:
		addon, err := a.addons.Find(ctx, of, parts[2])
		if err != nil || addon == nil || string(addon.UID) != parts[3] {
			return nil, err
		}
		return a.kept(addon, &addon.Spec.Tags), nil
	case kind == "access-entry" && len(parts) == 6:
		return a.entry(ctx, of, resource)
	}
	return nil, nil //nolint:nilnil // no such resource
}

func (a *API) group(ctx context.Context, of *v1alpha1.Cluster, name, uid string) (*tagged, error) {
	group, err := a.groups.Find(ctx, of, name)
	if err != nil || group == nil || string(group.UID) != uid {
		return nil, err
	}
	return a.kept(group, &group.Spec.Tags), nil
}

func (a *API) profile(ctx context.Context, of *v1alpha1.Cluster, name, uid string) (*tagged, error) {
	profile, err := a.profiles.Find(ctx, of, name)
	if err != nil || profile == nil || string(profile.UID) != uid {
		return nil, err
	}
	return a.kept(profile, &profile.Spec.Tags), nil
}

func (a *API) entry(ctx context.Context, of *v1alpha1.Cluster, resource string) (*tagged, error) {
	reach, entry, err := a.entries.ByResource(ctx, of.Spec.Name, resource)
	if err != nil || entry == nil {
		return nil, err
	}
	return &tagged{reach, entry, accessentries.Tags(entry), func(changed map[string]string) error { return accessentries.SetTags(entry, changed) }}, nil
}

// kept is an object of the management plane with tags in its spec.
func (a *API) kept(object client.Object, tags *v1alpha1.Tags) *tagged {
	return &tagged{a.store.Management, object, awsresource.PlainTags(*tags), func(changed map[string]string) error {
		*tags = awsresource.KeptTags(changed)
		return nil
	}}
}

func orMissing(err error, missing *awsfault.Error) error {
	if err != nil {
		return err
	}
	return missing
}

// retag changes the tags of a resource.
func (a *API) retag(ctx context.Context, call *awsfront.Call, text string, change func(map[string]string) (map[string]string, error)) error {
	defer a.store.Hold("tags/" + text)()
	var found *tagged
	return awsresource.Change(ctx, func() (_ client.Writer, _ client.Object, err error) {
		if found, err = a.tagged(ctx, call, text); err != nil {
			return nil, nil, err
		}
		return found.Client, found.object, nil
	}, func() error {
		changed, err := change(found.tags)
		if err != nil {
			return asBadRequest(err)
		}
		return found.keep(changed)
	}, func(err error) error { return eksfault.Away(fmt.Errorf("changing tags: %w", err)) })
}
