// SPDX-License-Identifier: Apache-2.0

package cloudformation

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
	"muster.dev/muster/internal/cloud/cloudformation/stackrecord"
)

// reads has the actions that change nothing.
type reads struct{ *Stacks }

// shownStack is a stack as it is answered.
type shownStack struct {
	StackID, StackName, Description, StackStatus, StackStatusReason, RoleARN string
	CreationTime                                                             time.Time
	LastUpdatedTime, DeletionTime                                            *time.Time
	DisableRollback, EnableTerminationProtection                             bool
	Capabilities, NotificationARNs                                           []string
	Parameters                                                               []shownParameter
	Outputs                                                                  []shownOutput
	Tags                                                                     []awstag.Tag
	RollbackConfiguration                                                    struct{}
	DriftInformation                                                         drift
}

type shownParameter struct{ ParameterKey, ParameterValue, ResolvedValue string }

type shownOutput struct{ OutputKey, OutputValue, Description, ExportName string }

// drift is what is known of changes that others have made: nothing.
type drift struct{ StackDriftStatus string }

const notChecked = "NOT_CHECKED"

type describeInput struct{ StackName, NextToken string }

type describeOutput struct {
	Stacks    []shownStack
	NextToken string
}

func (s reads) describeStacks() awsfront.Spec[describeInput, describeOutput] {
	return awsfront.Spec[describeInput, describeOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeInput) ([]awsfront.Target, error) {
			if in.StackName == "" {
				return s.everywhere(call), nil
			}
			return s.about(ctx, call, in.StackName, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *describeInput) (*describeOutput, error) {
			if in.StackName != "" {
				r, err := s.find(ctx, in.StackName)
				if err != nil {
					return nil, err
				}
				return &describeOutput{Stacks: []shownStack{show(r)}}, nil
			}
			all, err := s.all(ctx)
			if err != nil {
				return nil, err
			}
			shown := []shownStack{}
			for _, r := range all {
				if r.State.Status != stack.DeleteComplete {
					shown = append(shown, show(r))
				}
			}
			out := &describeOutput{}
			out.Stacks, out.NextToken, err = awsresource.Page(s.Account, call, nil, shown, func(one shownStack) string { return one.StackID }, nil, in.NextToken)
			return out, err
		},
	}
}

// all are all stacks, by their ARNs.
func (s *Stacks) all(ctx context.Context) ([]*stackrecord.Record, error) {
	all, err := s.store.List(ctx)
	if err != nil {
		return nil, away(err)
	}
	slices.SortFunc(all, func(a, b *stackrecord.Record) int { return strings.Compare(a.ARN, b.ARN) })
	return all, nil
}

func show(r *stackrecord.Record) shownStack {
	shown := shownStack{
		StackID: r.ARN, StackName: r.Name, Description: r.Description, StackStatus: string(r.State.Status), StackStatusReason: r.State.Reason, RoleARN: r.Operation.RoleARN,
		CreationTime: r.Created, LastUpdatedTime: pointer(r.Updated), DeletionTime: pointer(r.Deleted), DisableRollback: r.State.OnFailure == stack.DoNothing,
		EnableTerminationProtection: r.TerminationProtection, Capabilities: r.Asked.Capabilities, NotificationARNs: r.Asked.NotificationARNs, Tags: awstag.Sorted(r.Asked.Tags),
		DriftInformation: drift{notChecked},
	}
	if plan, err := stackplan.Read(r.Asked, stackplan.Place{}); err == nil {
		for _, p := range plan.Shown() {
			shown.Parameters = append(shown.Parameters, shownParameter{p.Name, p.Value, p.Resolved})
		}
	}
	for _, output := range r.Outputs {
		shown.Outputs = append(shown.Outputs, shownOutput{output.Name, output.Shown(), output.Description, output.Export})
	}
	return shown
}

// pointer is a time that may be zero.
func pointer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

type shownSummary struct {
	StackID, StackName, StackStatus, StackStatusReason, TemplateDescription string
	CreationTime                                                            time.Time
	LastUpdatedTime, DeletionTime                                           *time.Time
	DriftInformation                                                        drift
}

type listInput struct {
	NextToken         string
	StackStatusFilter []string
}

type listOutput struct {
	StackSummaries []shownSummary
	NextToken      string
}

func (s reads) listStacks() awsfront.Spec[listInput, listOutput] {
	return awsfront.Spec[listInput, listOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *listInput) (*listOutput, error) {
			all, err := s.all(ctx)
			if err != nil {
				return nil, err
			}
			shown := []shownSummary{}
			for _, r := range all {
				if len(in.StackStatusFilter) > 0 && !slices.Contains(in.StackStatusFilter, string(r.State.Status)) {
					continue
				}
				shown = append(shown, shownSummary{
					StackID: r.ARN, StackName: r.Name, StackStatus: string(r.State.Status), StackStatusReason: r.State.Reason, TemplateDescription: r.Description,
					CreationTime: r.Created, LastUpdatedTime: pointer(r.Updated), DeletionTime: pointer(r.Deleted), DriftInformation: drift{notChecked},
				})
			}
			out := &listOutput{}
			out.StackSummaries, out.NextToken, err = awsresource.Page(s.Account, call, in.StackStatusFilter, shown, func(one shownSummary) string { return one.StackID }, nil, in.NextToken)
			return out, err
		},
	}
}

type shownEvent struct {
	StackID, StackName, EventID, LogicalResourceID, PhysicalResourceID, ResourceType, ResourceStatus, ResourceStatusReason, ClientRequestToken, ResourceProperties string
	Timestamp                                                                                                                                                      time.Time
	number                                                                                                                                                         int
}

// propertiesOf are the properties of the resources of a stack's template, by logical id.
func (s reads) propertiesOf(ctx context.Context, r *stackrecord.Record) map[string]string {
	all := map[string]string{}
	place, _ := s.place(ctx, r)
	plan, err := stackplan.Read(r.Asked, place)
	if err != nil {
		return all // an event is told without them
	}
	for id := range plan.Template.Resources {
		all[id] = plan.Properties(r.State, id)
	}
	return all
}

// key is what an event is sorted by: the newest is the first.
func (e shownEvent) key() string { return fmt.Sprintf("%010d", math.MaxInt32-e.number) }

type eventsOutput struct {
	StackEvents []shownEvent
	NextToken   string
}

func (s reads) describeEvents() awsfront.Spec[describeInput, eventsOutput] {
	return awsfront.Spec[describeInput, eventsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeInput) ([]awsfront.Target, error) {
			return s.about(ctx, call, in.StackName, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *describeInput) (*eventsOutput, error) {
			r, err := s.find(ctx, in.StackName)
			if err != nil {
				return nil, err
			}
			var newest []shownEvent
			properties := s.propertiesOf(ctx, r)
			for i, e := range slices.Backward(r.Events) {
				newest = append(newest, shownEvent{
					StackID: r.ARN, StackName: r.Name, EventID: e.ID, LogicalResourceID: e.LogicalID, PhysicalResourceID: e.PhysicalID, ResourceType: e.Type,
					ResourceStatus: e.Status, ResourceStatusReason: e.Reason, ClientRequestToken: e.Token, Timestamp: e.Time.Time, number: r.Told - len(r.Events) + i,
					ResourceProperties: properties[e.LogicalID],
				})
			}
			out := &eventsOutput{}
			out.StackEvents, out.NextToken, err = awsresource.Page(s.Account, call, r.ARN, newest, shownEvent.key, nil, in.NextToken)
			return out, err
		},
	}
}

// named is a resource of a stack as three actions answer it.
type named struct {
	LogicalResourceID, PhysicalResourceID, ResourceType, ResourceStatus, ResourceStatusReason string
	changed                                                                                   time.Time
}

// resources are the resources of a stack that were not removed by an update, one for each logical id, in the order of their ids.
func resources(r *stackrecord.Record) []named {
	var all []named
	for _, one := range r.State.Resources {
		if one.Superseded {
			continue
		}
		shown := named{one.LogicalID, one.PhysicalID, one.Type, string(one.Status), one.Reason, r.Changed[one.Serial]}
		if at := slices.IndexFunc(all, func(other named) bool { return other.LogicalResourceID == one.LogicalID }); at >= 0 {
			all[at] = shown
			continue
		}
		all = append(all, shown)
	}
	slices.SortFunc(all, func(a, b named) int { return cmp.Compare(a.LogicalResourceID, b.LogicalResourceID) })
	return all
}

type resourceInput struct{ StackName, LogicalResourceID string }

type resourceOutput struct{ StackResourceDetail resourceDetail }

type resourceDetail struct {
	StackID, StackName, LogicalResourceID, PhysicalResourceID, ResourceType, ResourceStatus, ResourceStatusReason, Metadata string
	LastUpdatedTimestamp                                                                                                    time.Time
	DriftInformation                                                                                                        resourceDrift
}

type resourceDrift struct{ StackResourceDriftStatus string }

func (s reads) describeResource() awsfront.Spec[resourceInput, resourceOutput] {
	return awsfront.Spec[resourceInput, resourceOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *resourceInput) ([]awsfront.Target, error) {
			return s.about(ctx, call, in.StackName, nil)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *resourceInput) (*resourceOutput, error) {
			r, err := s.find(ctx, in.StackName)
			if err != nil {
				return nil, err
			}
			for _, one := range resources(r) {
				if one.LogicalResourceID != in.LogicalResourceID {
					continue
				}
				detail := resourceDetail{
					StackID: r.ARN, StackName: r.Name, LogicalResourceID: one.LogicalResourceID, PhysicalResourceID: one.PhysicalResourceID, ResourceType: one.ResourceType,
					ResourceStatus: one.ResourceStatus, ResourceStatusReason: one.ResourceStatusReason, LastUpdatedTimestamp: one.changed, DriftInformation: resourceDrift{notChecked},
				}
				place, _ := s.place(ctx, r)
				if plan, err := stackplan.Read(r.Asked, place); err == nil {
					detail.Metadata = plan.Metadata(r.State, one.LogicalResourceID)
				}
				return &resourceOutput{detail}, nil
			}
			return nil, refuse("Resource %.255s does not exist for stack %s", in.LogicalResourceID, r.Name)
		},
	}
}

type resourcesInput struct{ StackName, LogicalResourceID, PhysicalResourceID string }

type resourcesOutput struct{ StackResources []shownResource }

type shownResource struct {
	StackID, StackName, LogicalResourceID, PhysicalResourceID, ResourceType, ResourceStatus, ResourceStatusReason string
	Timestamp                                                                                                     time.Time
	DriftInformation                                                                                              resourceDrift
}

// mostDescribed is how many resources DescribeStackResources answers.
const mostDescribed = 100

func (s reads) describeResources() awsfront.Spec[resourcesInput, resourcesOutput] {
	return awsfront.Spec[resourcesInput, resourcesOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *resourcesInput) ([]awsfront.Target, error) {
			if in.StackName == "" {
				return s.everywhere(call), nil
			}
			return s.about(ctx, call, in.StackName, nil)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *resourcesInput) (*resourcesOutput, error) {
			if (in.StackName == "") == (in.PhysicalResourceID == "") {
				return nil, refuse("Exactly one of StackName and PhysicalResourceId must be specified")
			}
			r, err := s.owner(ctx, in)
			if err != nil {
				return nil, err
			}
			out := &resourcesOutput{StackResources: []shownResource{}}
			for _, one := range resources(r) {
				if in.LogicalResourceID != "" && one.LogicalResourceID != in.LogicalResourceID || len(out.StackResources) == mostDescribed {
					continue
				}
				out.StackResources = append(out.StackResources, shownResource{
					r.ARN, r.Name, one.LogicalResourceID, one.PhysicalResourceID, one.ResourceType, one.ResourceStatus, one.ResourceStatusReason, one.changed, resourceDrift{notChecked},
				})
			}
			return out, nil
		},
	}
}

// owner is the stack that a request names, or whose resource it names.
func (s reads) owner(ctx context.Context, in *resourcesInput) (*stackrecord.Record, error) {
	if in.StackName != "" {
		return s.find(ctx, in.StackName)
	}
	all, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		for _, one := range r.State.Resources {
			if one.PhysicalID == in.PhysicalResourceID && !one.Gone() {
				return r, nil
			}
		}
	}
	return nil, refuse("Stack for %.255s does not exist", in.PhysicalResourceID)
}

type summariesOutput struct {
	StackResourceSummaries []resourceSummary
	NextToken              string
}

type resourceSummary struct {
	LogicalResourceID, PhysicalResourceID, ResourceType, ResourceStatus, ResourceStatusReason string
	LastUpdatedTimestamp                                                                      time.Time
	DriftInformation                                                                          resourceDrift
}

func (s reads) listResources() awsfront.Spec[describeInput, summariesOutput] {
	return awsfront.Spec[describeInput, summariesOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeInput) ([]awsfront.Target, error) {
			return s.about(ctx, call, in.StackName, nil)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *describeInput) (*summariesOutput, error) {
			r, err := s.find(ctx, in.StackName)
			if err != nil {
				return nil, err
			}
			var all []resourceSummary
			for _, one := range resources(r) {
				all = append(all, resourceSummary{
					one.LogicalResourceID, one.PhysicalResourceID, one.ResourceType, one.ResourceStatus, one.ResourceStatusReason, one.changed, resourceDrift{notChecked},
				})
			}
			out := &summariesOutput{}
			out.StackResourceSummaries, out.NextToken, err = awsresource.Page(s.Account, call, r.ARN, all, func(one resourceSummary) string { return one.LogicalResourceID }, nil, in.NextToken)
			return out, err
		},
	}
}
