// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

// shownTarget is a target as requests and answers have it.
type shownTarget struct{ ID, ARN, Input string }

type putTargetsInput struct {
	Rule, EventBusName string
	Targets            []shownTarget
}

// changedTargets has no failed entry: a target that is refused refuses the request.
type changedTargets struct {
	FailedEntryCount int32
	FailedEntries    []struct{}
}

func (b *Bus) putTargets() awsfront.Spec[putTargetsInput, changedTargets] {
	return awsfront.Spec[putTargetsInput, changedTargets]{
		About: func(ctx context.Context, call *awsfront.Call, in *putTargetsInput) ([]awsfront.Target, error) {
			targets, err := b.about(ctx, call, in.EventBusName, in.Rule)
			if err == nil {
				for _, t := range in.Targets {
					targets[0].Conditions["events:TargetArn"] = append(targets[0].Conditions["events:TargetArn"], t.ARN)
				}
			}
			return targets, err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *putTargetsInput) (*changedTargets, error) {
			for _, t := range in.Targets {
				if err := b.checkTarget(call, t); err != nil {
					return nil, err
				}
			}
			return &changedTargets{FailedEntries: []struct{}{}}, b.change(ctx, in.Rule, func(r *record) error {
				for _, t := range in.Targets {
					r.Data.Targets = slices.DeleteFunc(r.Data.Targets, func(o target) bool { return o.ID == t.ID })
					r.Data.Targets = append(r.Data.Targets, target(t))
				}
				if n := len(r.Data.Targets); n > maxTargets {
					return awsfault.Errorf(limitExceeded, "The requested resource exceeds the maximum number allowed: a rule has %d targets, and this one would have %d", maxTargets, n)
				}
				return nil
			})
		},
	}
}

// ofTheAccount reports whether a text that is sent in place of an event would pass for one that the account sends itself. It
// compares names as readers do: without their case, and whichever of several counts.
func ofTheAccount(input string) bool {
	decoder := json.NewDecoder(strings.NewReader(input))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return false
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return false
		}
		var value any
		if err := decoder.Decode(&value); err != nil {
			return false
		}
		key, _ := name.(string)
		if source, _ := value.(string); strings.EqualFold(key, "source") && strings.HasPrefix(source, reserved) {
			return true
		}
	}
	return false
}

// maxInput is how many bytes the Input of a target may have, as EventBridge's characters.
const maxInput = 8192

// checkTarget refuses a target that is not a queue of the account. Whether there is the queue, and whether it takes
// events, is asked when there is an event, as EventBridge does.
func (b *Bus) checkTarget(call *awsfront.Call, t shownTarget) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	if t.ID == "" || len(t.ID) > 64 || strings.Trim(t.ID, letters) != "" {
		return awsfault.Errorf(validation, "The target id %.100q must have from 1 to 64 letters, digits and . - _", t.ID)
	}
	queue, err := arn.Parse(t.ARN)
	if err != nil || queue.Service != queues || queue.Region != b.Region || queue.Account != call.Caller.Account() {
		return awsfault.Errorf(validation, "Provided Arn is not in correct format. Muster sends events to SQS queues of the account only: %.300q is not %s", t.ARN,
			arn.ARN{Partition: "aws", Service: queues, Region: b.Region, Account: call.Caller.Account(), Resource: "NAME"})
	}
	switch {
	case len(t.Input) > maxInput:
		return awsfault.Errorf(validation, "The Input of the target %s has %d bytes: there may be %d", t.ID, len(t.Input), maxInput)
	case t.Input != "" && !json.Valid([]byte(t.Input)):
		return awsfault.Errorf(validation, "The Input of the target %s is not JSON", t.ID)
	case ofTheAccount(t.Input):
		return awsfault.Errorf(validation, "The Input of the target %s has a source that begins with %s, as events of the account itself: name another source", t.ID, reserved)
	}
	return nil
}

type removeTargetsInput struct {
	Rule, EventBusName string
	IDs                []string
	Force              bool
}

func (b *Bus) removeTargets() awsfront.Spec[removeTargetsInput, changedTargets] {
	return awsfront.Spec[removeTargetsInput, changedTargets]{
		About: func(ctx context.Context, call *awsfront.Call, in *removeTargetsInput) ([]awsfront.Target, error) {
			return b.about(ctx, call, in.EventBusName, in.Rule)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *removeTargetsInput) (*changedTargets, error) {
			return &changedTargets{FailedEntries: []struct{}{}}, b.change(ctx, in.Rule, func(r *record) error {
				r.Data.Targets = slices.DeleteFunc(r.Data.Targets, func(t target) bool { return slices.Contains(in.IDs, t.ID) })
				return nil
			})
		},
	}
}

type listTargetsInput struct {
	Rule, EventBusName, NextToken string
	Limit                         *int32
}

type listTargetsOutput struct {
	Targets   []shownTarget
	NextToken string
}

func (b *Bus) listTargets() awsfront.Spec[listTargetsInput, listTargetsOutput] {
	return awsfront.Spec[listTargetsInput, listTargetsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *listTargetsInput) ([]awsfront.Target, error) {
			return b.about(ctx, call, in.EventBusName, in.Rule)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listTargetsInput) (*listTargetsOutput, error) {
			found, err := b.find(ctx, in.Rule)
			if err != nil {
				return nil, err
			}
			var all []shownTarget
			for _, t := range found.Data.Targets {
				all = append(all, shownTarget(t))
			}
			out := &listTargetsOutput{}
			out.Targets, out.NextToken, err = awsresource.Page(b.Account, call, in.Rule, all, func(t shownTarget) string { return t.ID }, in.Limit, in.NextToken)
			return out, err
		},
	}
}
