// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"maps"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/awsfront"
)

// arn is the name of a resource of the account: vpc/vpc-0123….
func (a *api) arn(call *awsfront.Call, resource string) string {
	return "arn:aws:ec2:" + a.Region + ":" + call.Caller.Account() + ":" + resource
}

// target is a resource as IAM is asked about it. Conditions are those of its type, and may be nil. One that is to be made has * for its id, and no
// tags; so has one that is not there, which the action refuses afterwards.
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
