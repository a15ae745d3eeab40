// SPDX-License-Identifier: Apache-2.0

package awsactions

func eventsActions() []Action {
	rule := []string{"rule"}
	return []Action{
		{Name: "PutRule", Mark: Real, Resources: rule, Keys: tagged()},
		{Name: "DescribeRule", Mark: Real, Resources: rule},
		{Name: "ListRules", Mark: Real},
		{Name: "EnableRule", Mark: Real, Resources: rule},
		{Name: "DisableRule", Mark: Real, Resources: rule},
		{Name: "DeleteRule", Mark: Real, Resources: rule},
		{Name: "PutTargets", Mark: Real, Resources: rule, Keys: []string{"events:TargetArn"}},
		{Name: "RemoveTargets", Mark: Real, Resources: rule},
		{Name: "ListTargetsByRule", Mark: Real, Resources: rule},
		{Name: "TagResource", Mark: Real, Resources: rule, Keys: tagged()},
		{Name: "UntagResource", Mark: Real, Resources: rule, Keys: []string{"aws:TagKeys"}},
		{Name: "ListTagsForResource", Mark: Real, Resources: rule},
		{Name: "PutEvents", Mark: Real, Resources: []string{"event-bus"}, Keys: []string{"events:source"}},
		{Name: "TestEventPattern", Mark: Real},
		{Name: "CreateEventBus", Mark: Refused, Reason: "Muster has the default event bus only"},
		{Name: "DeleteEventBus", Mark: Refused, Reason: "Muster has the default event bus only"},
		{Name: "DescribeEventBus", Mark: Refused, Reason: "Muster has the default event bus only"},
		{Name: "ListEventBuses", Mark: Refused, Reason: "Muster has the default event bus only"},
		{Name: "PutPermission", Mark: Refused, Reason: "Muster's event bus takes events of its own account only"},
	}
}

func eventsResources() []Resource {
	return []Resource{
		{Type: "rule", ARN: "arn:${Partition}:events:${Region}:${Account}:rule/${RuleName}"},
		{Type: "event-bus", ARN: "arn:${Partition}:events:${Region}:${Account}:event-bus/${EventBusName}"},
	}
}
