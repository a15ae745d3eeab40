// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"maps"
	"slices"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
)

const (
	sqs    = "sqs"
	events = "events"
)

func messageHandlers() map[string]handler {
	return map[string]handler{
		"AWS::SQS::Queue":       {create: createQueue, read: readQueue, update: updateQueue, remove: removeQueue},
		"AWS::SQS::QueuePolicy": {create: nameQueuePolicy, complete: setQueuePolicy, read: readQueuePolicy, update: updateQueuePolicy, remove: removeQueuePolicy},
		"AWS::Events::Rule":     {create: createRule, complete: putTargets, read: readRule, update: updateRule, remove: removeRule},
	}
}

// createQueue makes a queue. SQS takes a name again if the attributes are the same: the tag of the creation says whose it is.
func createQueue(ctx context.Context, j *job) (map[string]any, error) {
	out, err := j.first(ctx)
	if err != nil {
		return nil, err
	}
	queue := text(out, "QueueUrl")
	tags, err := j.ask(ctx, sqs, "ListQueueTags", map[string]any{"QueueUrl": queue})
	if err != nil {
		return nil, err
	}
	if owned, _ := at(tags, "Tags").(awsshape.Object); textOf(owned[mark]) != j.token() {
		return nil, awsfault.Errorf("QueueAlreadyExists", "A queue of the name %s exists already", j.property("QueueName"))
	}
	return map[string]any{"QueueUrl": queue}, nil
}

func readQueue(ctx context.Context, j *job) (map[string]any, bool, error) {
	out, err := j.ask(ctx, sqs, "GetQueueAttributes", map[string]any{"QueueUrl": j.attribute("QueueUrl"), "AttributeNames": []any{"QueueArn"}})
	return map[string]any{"QueueUrl": j.attribute("QueueUrl"), "QueueName": j.property("QueueName"), "Arn": text(out, "Attributes.QueueArn")}, err == nil, err
}

func updateQueue(ctx context.Context, j *job) (bool, error) {
	queue := j.attribute("QueueUrl")
	if changed, _ := j.of.Changes(j.was, j.is); len(changed) > 0 && !slices.Equal(changed, []string{"Tags"}) {
		attributes, err := j.of.Derived["Attributes"](j.is)
		if err != nil {
			return false, err
		}
		if attributes != nil {
			if _, err := j.ask(ctx, sqs, "SetQueueAttributes", map[string]any{"QueueUrl": queue, "Attributes": attributes}); err != nil {
				return false, err
			}
		}
	}
	return true, retag(j, func(set map[string]string, removed []string) error {
		if len(set) > 0 {
			tags := map[string]any{}
			for key, value := range set {
				tags[key] = value
			}
			if _, err := j.ask(ctx, sqs, "TagQueue", map[string]any{"QueueUrl": queue, "Tags": tags}); err != nil {
				return err
			}
		}
		if len(removed) == 0 {
			return nil
		}
		_, err := j.ask(ctx, sqs, "UntagQueue", map[string]any{"QueueUrl": queue, "TagKeys": anys(removed)})
		return err
	})
}

func removeQueue(ctx context.Context, j *job) (bool, error) {
	_, err := j.ask(ctx, sqs, "DeleteQueue", map[string]any{"QueueUrl": j.attribute("QueueUrl")})
	if hasCode(err, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue") {
		return true, nil
	}
	return err == nil, err
}

// nameQueuePolicy makes the id of a queue's policy: nothing is there yet.
func nameQueuePolicy(_ context.Context, j *job) (map[string]any, error) {
	return map[string]any{"Id": "queue-policy-" + j.token()[:12]}, nil
}

func setQueuePolicy(ctx context.Context, j *job) error {
	attributes, err := j.of.Derived["Attributes"](j.is)
	if err != nil {
		return err
	}
	for _, queue := range texts(j.is, "Queues") {
		if _, err := j.ask(ctx, sqs, "SetQueueAttributes", map[string]any{"QueueUrl": queue, "Attributes": attributes}); err != nil {
			return err
		}
	}
	return nil
}

// takeQueuePolicies takes the policy from queues of properties, but those that are kept.
func takeQueuePolicies(ctx context.Context, j *job, from map[string]any, kept []string) error {
	for _, queue := range texts(from, "Queues") {
		if slices.Contains(kept, queue) {
			continue
		}
		_, err := j.ask(ctx, sqs, "SetQueueAttributes", map[string]any{"QueueUrl": queue, "Attributes": map[string]any{"Policy": ""}})
		if err != nil && !hasCode(err, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue") {
			return err
		}
	}
	return nil
}

func readQueuePolicy(_ context.Context, j *job) (map[string]any, bool, error) {
	return map[string]any{"Id": j.attribute("Id")}, true, nil
}

func updateQueuePolicy(ctx context.Context, j *job) (bool, error) {
	if err := setQueuePolicy(ctx, j); err != nil {
		return false, err
	}
	err := takeQueuePolicies(ctx, j, j.was, texts(j.is, "Queues"))
	return err == nil, err
}

func removeQueuePolicy(ctx context.Context, j *job) (bool, error) {
	err := takeQueuePolicies(ctx, j, j.is, nil)
	return err == nil, err
}

// onBus adds the event bus of a rule to the members of a request.
func (j *job) onBus(members map[string]any) map[string]any {
	if bus := j.property("EventBusName"); bus != "" {
		members["EventBusName"] = bus
	}
	return members
}

// createRule puts a rule under its name. EventBridge's rules have tags: that of the creation says whose a rule is.
func createRule(ctx context.Context, j *job) (map[string]any, error) {
	rule := j.onBus(map[string]any{"Name": j.property("Name")})
	had, err := j.ask(ctx, events, "DescribeRule", rule)
	switch {
	case isGone(err):
		members := maps.Clone(j.is)
		delete(members, "Targets")
		members["Tags"] = pairs(map[string]string{mark: j.token()})
		_, err = j.ask(ctx, events, "PutRule", members)
		return map[string]any{}, err
	case err != nil:
		return nil, err
	}
	tags, err := j.ask(ctx, events, "ListTagsForResource", map[string]any{"ResourceARN": text(had, "Arn")})
	if err != nil {
		return nil, err
	}
	if tagsIn(tags, "Tags")[mark] != j.token() {
		return nil, awsfault.Errorf("ResourceAlreadyExistsException", "A rule of the name %s exists already", j.property("Name"))
	}
	return map[string]any{}, nil
}

func putTargets(ctx context.Context, j *job) error {
	targets, _ := j.is["Targets"].([]any)
	if len(targets) == 0 {
		return nil
	}
	out, err := j.ask(ctx, events, "PutTargets", j.onBus(map[string]any{"Rule": j.property("Name"), "Targets": targets}))
	if err != nil {
		return err
	}
	if failed := firstOf(out, "FailedEntries"); failed != nil {
		return awsfault.Errorf(text(failed, "ErrorCode"), "The target %s: %s", text(failed, "TargetId"), text(failed, "ErrorMessage"))
	}
	return nil
}

func readRule(ctx context.Context, j *job) (map[string]any, bool, error) {
	out, err := j.ask(ctx, events, "DescribeRule", j.onBus(map[string]any{"Name": j.property("Name")}))
	return picked(out, "Arn"), err == nil, err
}

func updateRule(ctx context.Context, j *job) (bool, error) {
	members := maps.Clone(j.is)
	delete(members, "Targets")
	if _, err := j.ask(ctx, events, "PutRule", members); err != nil {
		return false, err
	}
	if err := putTargets(ctx, j); err != nil {
		return false, err
	}
	is := targetIDs(j.is)
	var gone []string
	for _, id := range targetIDs(j.was) {
		if !slices.Contains(is, id) {
			gone = append(gone, id)
		}
	}
	return true, j.takeTargets(ctx, gone)
}

// targetIDs are the ids of the targets of a rule.
func targetIDs(properties map[string]any) []string {
	targets, _ := properties["Targets"].([]any)
	var ids []string
	for _, target := range targets {
		one, _ := target.(map[string]any)
		ids = append(ids, textOf(one["Id"]))
	}
	return ids
}

func (j *job) takeTargets(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := j.ask(ctx, events, "RemoveTargets", j.onBus(map[string]any{"Rule": j.property("Name"), "Ids": anys(ids)}))
	return err
}

func removeRule(ctx context.Context, j *job) (bool, error) {
	out, err := j.ask(ctx, events, "ListTargetsByRule", j.onBus(map[string]any{"Rule": j.property("Name")}))
	if err != nil {
		return false, err
	}
	var ids []string
	for _, target := range list(out, "Targets") {
		ids = append(ids, text(target, "Id"))
	}
	if err := j.takeTargets(ctx, ids); err != nil {
		return false, err
	}
	_, err = j.ask(ctx, events, "DeleteRule", j.onBus(map[string]any{"Name": j.property("Name")}))
	return err == nil, err
}
