// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/internal/aws/cloudformation/resource"
)

const autoscaling = "autoscaling"

func scalingGroupHandlers() map[string]handler {
	return map[string]handler{
		"AWS::AutoScaling::AutoScalingGroup": {create: createGroup, complete: collectMetrics, read: readScalingGroup, update: updateGroup, remove: removeGroup},
	}
}

// scalingGroup reads the group. The error is errGone if there is none.
func (j *job) scalingGroup(ctx context.Context) (any, error) {
	out, err := j.ask(ctx, autoscaling, "DescribeAutoScalingGroups", map[string]any{"AutoScalingGroupNames": []any{j.property("AutoScalingGroupName")}})
	if err != nil {
		return nil, err
	}
	groups := list(out, "AutoScalingGroups")
	if len(groups) == 0 {
		return nil, errGone
	}
	return groups[0], nil
}

// createGroup makes a group. A name that is taken is the resource's own if the group has the tag of the creation.
func createGroup(ctx context.Context, j *job) (map[string]any, error) {
	for _, name := range []string{"NotificationConfiguration", "NotificationConfigurations"} {
		if _, asked := j.is[name]; asked {
			return nil, errors.New(name + " is not supported: remove it from the template")
		}
	}
	_, err := j.first(ctx)
	if hasCode(err, "AlreadyExists") {
		group, unread := j.scalingGroup(ctx)
		if unread != nil {
			return nil, unread
		}
		if tagsIn(group, "Tags")[mark] == j.token() {
			return map[string]any{}, nil
		}
	}
	return map[string]any{}, err
}

func collectMetrics(ctx context.Context, j *job) error {
	collections, _ := j.is["MetricsCollection"].([]any)
	for _, collection := range collections {
		one, ok := collection.(map[string]any)
		if !ok {
			return fmt.Errorf("an entry of MetricsCollection is %v: want Granularity and Metrics", collection)
		}
		members := map[string]any{"AutoScalingGroupName": j.property("AutoScalingGroupName")}
		maps.Copy(members, one)
		if _, err := j.ask(ctx, autoscaling, "EnableMetricsCollection", members); err != nil {
			return err
		}
	}
	return nil
}

func readScalingGroup(ctx context.Context, j *job) (map[string]any, bool, error) {
	_, err := j.scalingGroup(ctx)
	return map[string]any{}, err == nil, err
}

// apartFromGroup are properties that UpdateAutoScalingGroup does not take.
var apartFromGroup = []string{"AutoScalingGroupName", "LifecycleHookSpecificationList", "MetricsCollection", "NotificationConfiguration", "NotificationConfigurations", "Tags"}

func updateGroup(ctx context.Context, j *job) (bool, error) {
	changed, _ := j.of.Changes(j.was, j.is)
	members := map[string]any{"AutoScalingGroupName": j.property("AutoScalingGroupName")}
	for _, name := range changed {
		value, asked := j.is[name]
		if !asked || slices.Contains(apartFromGroup, name) {
			continue
		}
		if other, ok := j.of.Names[name]; ok {
			name = other
		}
		members[name] = value
	}
	if len(members) > 1 {
		if _, err := j.ask(ctx, autoscaling, "UpdateAutoScalingGroup", members); err != nil {
			return false, err
		}
	}
	if done, err := both(ctx, j, putHooks, collectMetrics, retagGroup); err != nil || !done {
		return done, err
	}
	policy, _ := j.is[resource.UpdatePolicy].(map[string]any)
	if policy["AutoScalingRollingUpdate"] == nil || !slices.Contains(changed, "LaunchTemplate") {
		return true, nil
	}
	return rollGroup(ctx, j)
}

// putHooks brings the lifecycle hooks to those that the properties list.
func putHooks(ctx context.Context, j *job) error {
	group := j.property("AutoScalingGroupName")
	hooks := func(properties map[string]any) map[string]map[string]any {
		all := map[string]map[string]any{}
		items, _ := properties["LifecycleHookSpecificationList"].([]any)
		for _, item := range items {
			one, _ := item.(map[string]any)
			all[textOf(one["LifecycleHookName"])] = one
		}
		return all
	}
	is, was := hooks(j.is), hooks(j.was)
	for _, hook := range is {
		members := map[string]any{"AutoScalingGroupName": group}
		maps.Copy(members, hook)
		if _, err := j.ask(ctx, autoscaling, "PutLifecycleHook", members); err != nil {
			return err
		}
	}
	for name := range was {
		if is[name] != nil {
			continue
		}
		if _, err := j.ask(ctx, autoscaling, "DeleteLifecycleHook", map[string]any{"AutoScalingGroupName": group, "LifecycleHookName": name}); err != nil {
			return err
		}
	}
	return nil
}

// retagGroup brings the tags of the group to those that are asked for, with whether instances get them.
func retagGroup(ctx context.Context, j *job) error {
	spread := map[string]any{}
	items, _ := j.is["Tags"].([]any)
	for _, item := range items {
		one, _ := item.(map[string]any)
		spread[textOf(one["Key"])] = one["PropagateAtLaunch"]
	}
	entry := func(key string) map[string]any {
		propagate := spread[key]
		if propagate == nil {
			propagate = true
		}
		return map[string]any{"Key": key, "ResourceId": j.property("AutoScalingGroupName"), "ResourceType": "auto-scaling-group", "PropagateAtLaunch": propagate}
	}
	return retag(j, func(set map[string]string, removed []string) error {
		var put, taken []any
		for _, one := range pairs(set) {
			pair := one.(map[string]any)
			tag := entry(textOf(pair["Key"]))
			tag["Value"] = pair["Value"]
			put = append(put, tag)
		}
		for _, key := range removed {
			taken = append(taken, entry(key))
		}
		if len(put) > 0 {
			if _, err := j.ask(ctx, autoscaling, "CreateOrUpdateTags", map[string]any{"Tags": put}); err != nil {
				return err
			}
		}
		if len(taken) == 0 {
			return nil
		}
		_, err := j.ask(ctx, autoscaling, "DeleteTags", map[string]any{"Tags": taken})
		return err
	})
}

// rollGroup replaces the instances by those of the launch template that the group has now, by an instance refresh. The newest
// refresh is this one's if it is to the same launch template.
func rollGroup(ctx context.Context, j *job) (bool, error) {
	group := j.property("AutoScalingGroupName")
	template, _ := j.is["LaunchTemplate"].(map[string]any)
	specification := map[string]any{}
	for _, name := range []string{"LaunchTemplateId", "LaunchTemplateName", "Version"} {
		if value, ok := template[name]; ok {
			specification[name] = value
		}
	}
	out, err := j.ask(ctx, autoscaling, "DescribeInstanceRefreshes", map[string]any{"AutoScalingGroupName": group})
	if err != nil {
		return false, err
	}
	newest, same := firstOf(out, "InstanceRefreshes"), true
	for name, value := range specification {
		same = same && text(newest, "DesiredConfiguration.LaunchTemplate."+name) == textOf(value)
	}
	if newest != nil && same {
		switch status := text(newest, "Status"); status {
		case "Successful":
			return true, nil
		case "Pending", "InProgress", "Baking":
			return false, nil
		default:
			return false, fmt.Errorf("the instance refresh %s is %s: %s", text(newest, "InstanceRefreshId"), status, text(newest, "StatusReason"))
		}
	}
	_, err = j.ask(ctx, autoscaling, "StartInstanceRefresh", map[string]any{
		"AutoScalingGroupName": group, "DesiredConfiguration": map[string]any{"LaunchTemplate": specification},
	})
	if hasCode(err, "InstanceRefreshInProgress") { // somebody else's refresh, which ends
		return false, nil
	}
	return false, err
}

func removeGroup(ctx context.Context, j *job) (bool, error) {
	group, err := j.scalingGroup(ctx)
	if err != nil || text(group, "Status") != "" { // it is on its way out
		return false, err
	}
	_, err = j.ask(ctx, autoscaling, "DeleteAutoScalingGroup", map[string]any{"AutoScalingGroupName": j.property("AutoScalingGroupName"), "ForceDelete": true})
	return false, err
}
