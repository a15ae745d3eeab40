// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2id"
)

// arn is the name of a resource of the account: vpc/vpc-0123….
func (a *api) arn(call *awsfront.Call, resource string) string {
	return "arn:aws:ec2:" + a.Region + ":" + call.Caller.Account() + ":" + resource
}

// target is a resource as IAM is asked about it. Conditions are those of its type, and may be nil. A resource that is to be made has * for its id,
// and no tags, and so has a missing resource, which the action refuses afterwards.
func (a *api) target(call *awsfront.Call, resource, id string, tags v1alpha1.Tags, conditions map[string][]string) awsfront.Target {
	all := maps.Clone(conditions)
	if all == nil {
		all = map[string][]string{}
	}
	for key, value := range tags {
		all["aws:ResourceTag/"+key] = []string{string(value)}
		all["ec2:ResourceTag/"+key] = []string{string(value)}
	}
	return awsfront.Target{Resource: a.arn(call, resource+"/"+id), Conditions: all}
}

// about returns existing resources, as IAM is asked about them: ids of one kind, empty ones left out. A missing resource has no tags; the action
// refuses it afterwards.
func (a *api) about(ctx context.Context, call *awsfront.Call, kind ec2id.Kind, ids ...string) ([]awsfront.Target, error) {
	t, ok := a.taggerOf(kind)
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
		target, err := t.about(ctx, call, id)
		if isMissing(err, kind) {
			target, err = a.target(call, t.resource, id, nil, nil), nil
		}
		if err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// isMissing reports whether an error says that nothing has an id of the kind.
func isMissing(err error, kind ec2id.Kind) bool {
	var missing *awsfault.Error
	return errors.As(err, &missing) && missing.Code == kind.NotFound("").Code
}

// aboutNew is what a request makes, as IAM is asked about it. Tags that it gets are a matter of their own.
func (a *api) aboutNew(call *awsfront.Call, resource string, specifications []tagSpecification, conditions map[string][]string) ([]awsfront.Target, error) {
	tags, err := readTags(specifications, resource)
	if err != nil {
		return nil, err
	}
	made := requestTags(a.target(call, resource, "*", nil, conditions), tags[resource])
	if len(tags[resource]) == 0 {
		return []awsfront.Target{made}, nil
	}
	tagged := requestTags(a.target(call, resource, "*", nil, map[string][]string{"ec2:CreateAction": {call.Action}}), tags[resource])
	tagged.Action = "ec2:CreateTags"
	return []awsfront.Target{made, tagged}, nil
}

// requestTags adds the condition keys of the tags that a request sets.
func requestTags(t awsfront.Target, tags map[string]string) awsfront.Target {
	if len(tags) == 0 {
		return t
	}
	all := maps.Clone(t.Conditions)
	if all == nil {
		all = map[string][]string{}
	}
	for key, value := range tags {
		all["aws:RequestTag/"+key] = []string{value}
	}
	all["aws:TagKeys"] = slices.Sorted(maps.Keys(tags))
	t.Conditions = all
	return t
}
