// SPDX-License-Identifier: Apache-2.0

package ec2resource

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
)

// Target is a resource as IAM is asked about it. Conditions are those of its type, and may be nil. A resource that is
// to be made has * for its id, and no tags, and so has a missing resource, which the action refuses afterwards.
func (a *EC2) Target(call *awsfront.Call, resource, id string, tags v1alpha1.Tags, conditions map[string][]string) awsfront.Target {
	return awsfront.Target{Resource: a.ARN(call, resource+"/"+id), Conditions: awsresource.ResourceTags(maps.Clone(conditions), tags, Service)}
}

// About returns the resources with these ids, all of one kind, as IAM is asked about them. Empty ids are left out. A
// missing resource has no tags; the action refuses it afterwards.
func (a *EC2) About(ctx context.Context, call *awsfront.Call, kind ec2id.Kind, ids ...string) ([]awsfront.Target, error) {
	t, ok := a.TaggerOf(kind)
	if !ok {
		return nil, fmt.Errorf("nobody has registered what %s is", kind.Prefix)
	}
	var targets []awsfront.Target
	for _, id := range ids {
		if id == "" {
			continue
		}
		if err := kind.Check(id); err != nil {
			return nil, err
		}
		target, err := t.About(ctx, call, id)
		if IsMissing(err, kind) {
			target, err = a.Target(call, t.Resource, id, nil, nil), nil
		}
		if err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// IsMissing reports whether an error says that nothing has an id of the kind.
func IsMissing(err error, kind ec2id.Kind) bool {
	var missing *awsfault.Error
	return errors.As(err, &missing) && missing.Code == kind.NotFound("").Code
}

// AboutNew is what a request makes, as IAM is asked about it. Tags that it gets are a matter of their own.
func (a *EC2) AboutNew(call *awsfront.Call, resource string, specifications []TagSpecification, conditions map[string][]string) ([]awsfront.Target, error) {
	tags, err := ReadTags(specifications, resource)
	if err != nil {
		return nil, err
	}
	made := RequestTags(a.Target(call, resource, "*", nil, conditions), tags[resource])
	if len(tags[resource]) == 0 {
		return []awsfront.Target{made}, nil
	}
	tagged := RequestTags(a.Target(call, resource, "*", nil, map[string][]string{"ec2:CreateAction": {call.Action}}), tags[resource])
	tagged.Action = "ec2:CreateTags"
	return []awsfront.Target{made, tagged}, nil
}

// RequestTags adds the condition keys of the tags that a request sets.
func RequestTags(t awsfront.Target, tags map[string]string) awsfront.Target {
	t.Conditions = awsresource.RequestTags(maps.Clone(t.Conditions), awstag.Sorted(tags))
	return t
}
