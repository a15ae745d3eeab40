// SPDX-License-Identifier: Apache-2.0

package cloudformation

import (
	"context"
	"errors"
	"slices"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
	"muster.dev/muster/internal/cloud/cloudformation/stackrecord"
)

// Statuses of change sets.
const (
	setMade, setFailed             = "CREATE_COMPLETE", "FAILED"
	setAvailable, setUnavailable   = "AVAILABLE", "UNAVAILABLE"
	setObsolete                    = "OBSOLETE"
	actionOfResource, ofProperties = "Resource", "Properties"
)

// statusOf are the status of a change set and whether it can be executed.
func statusOf(set *stackrecord.ChangeSet) (status, execution string) {
	switch {
	case set.Reason != "":
		return setFailed, setUnavailable
	case set.Obsolete:
		return setMade, setObsolete
	}
	return setMade, setAvailable
}

type describeSetInput struct {
	StackName, ChangeSetName, NextToken string
	IncludePropertyValues               *bool
}

type describeSetOutput struct {
	ChangeSetID, ChangeSetName, StackID, StackName, Description, Status, StatusReason, ExecutionStatus, OnStackFailure, NextToken string
	CreationTime                                                                                                                  time.Time
	Capabilities, NotificationARNs                                                                                                []string
	Parameters                                                                                                                    []shownParameter
	Tags                                                                                                                          []awstag.Tag
	Changes                                                                                                                       []shownChange
	IncludeNestedStacks                                                                                                           bool
}

type shownChange struct {
	Type           string
	ResourceChange resourceChange
}

type resourceChange struct {
	Action, LogicalResourceID, PhysicalResourceID, ResourceType, Replacement string
	Scope                                                                    []string
	Details                                                                  []changeDetail
}

type changeDetail struct {
	Target                   changeTarget
	Evaluation, ChangeSource string
}

type changeTarget struct{ Attribute, Name, RequiresRecreation string }

func (s sets) describeSet() awsfront.Spec[describeSetInput, describeSetOutput] {
	return awsfront.Spec[describeSetInput, describeSetOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeSetInput) ([]awsfront.Target, error) {
			return s.aboutSet(ctx, call, in.StackName, in.ChangeSetName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *describeSetInput) (*describeSetOutput, error) {
			if err := notHere(map[string]bool{"IncludePropertyValues": in.IncludePropertyValues != nil && *in.IncludePropertyValues}); err != nil {
				return nil, err
			}
			r, at, err := s.ofSet(ctx, in.StackName, in.ChangeSetName)
			if err != nil {
				return nil, err
			}
			set := &r.Sets[at]
			out := &describeSetOutput{
				ChangeSetID: set.ARN, ChangeSetName: set.Name, StackID: r.ARN, StackName: r.Name, Description: set.Description, StatusReason: set.Reason, CreationTime: set.Created,
				OnStackFailure: string(set.OnFailure), Capabilities: set.Asked.Capabilities, NotificationARNs: set.Asked.NotificationARNs, Tags: awstag.Sorted(set.Asked.Tags),
			}
			out.Status, out.ExecutionStatus = statusOf(set)
			if plan, err := stackplan.Read(set.Asked, stackplan.Place{}); err == nil {
				for _, p := range plan.Shown() {
					out.Parameters = append(out.Parameters, shownParameter{p.Name, p.Value, p.Resolved})
				}
			}
			shown := []shownChange{}
			for _, one := range set.Changes {
				shown = append(shown, showChange(one))
			}
			out.Changes, out.NextToken, err = awsresource.Page(s.Account, call, set.ARN, shown, func(one shownChange) string { return one.ResourceChange.LogicalResourceID }, nil, in.NextToken)
			return out, err
		},
	}
}

func showChange(one stackrecord.Change) shownChange {
	shown := resourceChange{
		Action: one.Action, LogicalResourceID: one.LogicalID, PhysicalResourceID: one.PhysicalID, ResourceType: one.Type, Replacement: one.Replacement, Scope: []string{}, Details: []changeDetail{},
	}
	for _, name := range one.Properties {
		target := changeTarget{Attribute: ofProperties, Name: name, RequiresRecreation: "Never"}
		if name == "Tags" {
			target = changeTarget{Attribute: "Tags", RequiresRecreation: "Never"}
		}
		if slices.Contains(one.Replaces, name) {
			target.RequiresRecreation = "Always"
			if one.Replacement == "Conditional" {
				target.RequiresRecreation = "Conditionally"
			}
		}
		if !slices.Contains(shown.Scope, target.Attribute) {
			shown.Scope = append(shown.Scope, target.Attribute)
		}
		shown.Details = append(shown.Details, changeDetail{target, "Static", "DirectModification"})
	}
	return shownChange{actionOfResource, shown}
}

type listSetsInput struct{ StackName, NextToken string }

type listSetsOutput struct {
	Summaries []setSummary
	NextToken string
}

type setSummary struct {
	ChangeSetID, ChangeSetName, StackID, StackName, Description, Status, StatusReason, ExecutionStatus string
	CreationTime                                                                                       time.Time
}

func (s sets) listSets() awsfront.Spec[listSetsInput, listSetsOutput] {
	return awsfront.Spec[listSetsInput, listSetsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *listSetsInput) ([]awsfront.Target, error) {
			return s.about(ctx, call, in.StackName, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listSetsInput) (*listSetsOutput, error) {
			r, err := s.find(ctx, in.StackName)
			if err != nil {
				return nil, err
			}
			all := []setSummary{}
			for i := range r.Sets {
				set := &r.Sets[i]
				one := setSummary{
					ChangeSetID: set.ARN, ChangeSetName: set.Name, StackID: r.ARN, StackName: r.Name, Description: set.Description, StatusReason: set.Reason, CreationTime: set.Created,
				}
				one.Status, one.ExecutionStatus = statusOf(set)
				all = append(all, one)
			}
			out := &listSetsOutput{}
			out.Summaries, out.NextToken, err = awsresource.Page(s.Account, call, r.ARN, all, func(one setSummary) string { return one.ChangeSetName }, nil, in.NextToken)
			return out, err
		},
	}
}

type executeSetInput struct {
	StackName, ChangeSetName, ClientRequestToken string
	DisableRollback, RetainExceptOnCreate        *bool
}

func (s sets) executeSet() awsfront.Spec[executeSetInput, nothing] {
	return awsfront.Spec[executeSetInput, nothing]{
		About: func(ctx context.Context, call *awsfront.Call, in *executeSetInput) ([]awsfront.Target, error) {
			targets, err := s.aboutSet(ctx, call, in.StackName, in.ChangeSetName)
			if err != nil {
				return nil, err
			}
			r, at, err := s.ofSet(ctx, in.StackName, in.ChangeSetName)
			if err != nil || r.Sets[at].RoleARN == "" {
				return targets, nil //nolint:nilerr // the action tells who may know
			}
			return s.withRole(ctx, targets, r.Sets[at].RoleARN) // who made the set had to be allowed, and so has who executes it
		},
		Do: s.doExecuteSet,
	}
}

func (s sets) doExecuteSet(ctx context.Context, call *awsfront.Call, in *executeSetInput) (*nothing, error) {
	if err := notHere(map[string]bool{"RetainExceptOnCreate": in.RetainExceptOnCreate != nil && *in.RetainExceptOnCreate}); err != nil {
		return nil, err
	}
	found, at, err := s.ofSet(ctx, in.StackName, in.ChangeSetName)
	if fault, ok := errors.AsType[*awsfault.Error](err); ok && fault.Code == "ChangeSetNotFound" && in.ClientRequestToken != "" {
		again, unread := s.begunBy(ctx, call, in)
		if unread != nil || again {
			return nil, unread
		}
	}
	if err != nil {
		return nil, err
	}
	name := found.Sets[at].ARN
	_, err = s.operate(ctx, call, found.ARN, in.ClientRequestToken, found.Sets[at].RoleARN, func(r *stackrecord.Record) ([]stack.Event, error) {
		at := setAt(r, name)
		if at < 0 {
			return nil, awsfault.Errorf("ChangeSetNotFound", "ChangeSet [%s] does not exist", in.ChangeSetName)
		}
		set := r.Sets[at]
		switch status, execution := statusOf(&set); {
		case status == setFailed:
			return nil, awsfault.Errorf("InvalidChangeSetStatus", "ChangeSet [%s] cannot be executed in its current status of [%s]", name, status)
		case execution != setAvailable:
			return nil, awsfault.Errorf("InvalidChangeSetStatus", "ChangeSet [%s] cannot be executed in its current execution status of [%s]", name, execution)
		}
		failure := set.OnFailure
		if in.DisableRollback != nil && *in.DisableRollback {
			failure = stack.DoNothing
		}
		r.Sets = nil // the others were made of what the stack was before
		if r.State.Status == stack.Review {
			return s.establish(ctx, r, set.Asked, failure)
		}
		return s.amend(ctx, r, set.Asked, failure)
	})
	return nil, err
}

// begunBy reports whether the operation that is under way, or was the last, of the stack was begun by the same request: an execution
// deletes the change sets of its stack.
func (s sets) begunBy(ctx context.Context, call *awsfront.Call, in *executeSetInput) (bool, error) {
	var all []*stackrecord.Record
	var err error
	if in.StackName == "" {
		all, err = s.all(ctx)
	} else {
		var r *stackrecord.Record
		r, err = s.find(ctx, in.StackName)
		all = []*stackrecord.Record{r}
	}
	return err == nil && slices.ContainsFunc(all, func(r *stackrecord.Record) bool {
		return r.Operation.Token == in.ClientRequestToken && r.Operation.Action == call.Action
	}), err
}

type deleteSetInput struct{ StackName, ChangeSetName string }

func (s sets) deleteSet() awsfront.Spec[deleteSetInput, nothing] {
	return awsfront.Spec[deleteSetInput, nothing]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteSetInput) ([]awsfront.Target, error) {
			return s.aboutSet(ctx, call, in.StackName, in.ChangeSetName)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteSetInput) (*nothing, error) {
			found, at, err := s.ofSet(ctx, in.StackName, in.ChangeSetName)
			if fault, ok := errors.AsType[*awsfault.Error](err); ok && fault.Code == "ChangeSetNotFound" {
				return nil, nil // as CloudFormation answers about a change set that is not there
			}
			if err != nil {
				return nil, err
			}
			name := found.Sets[at].ARN
			_, err = s.store.Update(ctx, found.ID, func(r *stackrecord.Record) error {
				r.Sets = slices.DeleteFunc(r.Sets, func(set stackrecord.ChangeSet) bool { return set.ARN == name })
				return nil
			})
			return nil, away(err)
		},
	}
}
