// SPDX-License-Identifier: Apache-2.0

package cloudformation

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/cloudformation/resource"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
	"muster.dev/muster/internal/cloud/cloudformation/stackrecord"
)

// sets has the actions about change sets.
type sets struct{ *Stacks }

// mostSets is how many change sets a stack has at most, and mostOfSets how many bytes their templates, parameters and descriptions
// have together: they are part of the stack's object.
const (
	mostSets   = 20
	mostOfSets = 256 << 10
)

// unchanged is the reason of a change set that would change nothing; tools compare it.
const unchanged = "The submitted information didn't contain changes. Submit different information to create a change set."

type createSetInput struct {
	StackName, ChangeSetName, ChangeSetType, Description, TemplateBody, TemplateURL, RoleARN, ClientToken, OnStackFailure string
	Parameters                                                                                                            []parameter
	Capabilities, NotificationARNs, ResourceTypes                                                                         []string
	Tags                                                                                                                  []awstag.Tag
	UsePreviousTemplate, IncludeNestedStacks, ImportExistingResources                                                     *bool
	RollbackConfiguration                                                                                                 *triggers
}

type createSetOutput struct{ ID, StackID string }

func (s sets) createSet() awsfront.Spec[createSetInput, createSetOutput] {
	return awsfront.Spec[createSetInput, createSetOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createSetInput) ([]awsfront.Target, error) {
			conditions := awsresource.RequestTags(map[string][]string{"cloudformation:ChangeSetName": {in.ChangeSetName}}, in.Tags)
			asks(conditions, in.RoleARN, in.TemplateURL, "", in.ResourceTypes)
			targets, err := s.about(ctx, call, in.StackName, conditions)
			if err != nil {
				return nil, err
			}
			return s.withRole(ctx, targets, in.RoleARN)
		},
		Do: s.doCreateSet,
	}
}

// check refuses what change sets cannot have here.
func (in *createSetInput) check() error {
	if !stackName.MatchString(in.ChangeSetName) {
		return refuse("1 validation error detected: Value '%.140s' at 'changeSetName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*", in.ChangeSetName)
	}
	if in.ChangeSetType != "" && in.ChangeSetType != setCreates && in.ChangeSetType != "UPDATE" {
		return refuse("ChangeSetType is %.50q: it must be CREATE or UPDATE", in.ChangeSetType)
	}
	return notHere(map[string]bool{
		"TemplateURL": in.TemplateURL != "", "ResourceTypes": len(in.ResourceTypes) > 0, "RollbackConfiguration": in.RollbackConfiguration.given(),
		"IncludeNestedStacks": in.IncludeNestedStacks != nil && *in.IncludeNestedStacks, "ImportExistingResources": in.ImportExistingResources != nil && *in.ImportExistingResources,
	})
}

// setCreates is the type of a change set that makes a stack.
const setCreates = "CREATE"

func (s sets) doCreateSet(ctx context.Context, call *awsfront.Call, in *createSetInput) (*createSetOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	failure, err := onFailure(in.OnStackFailure, nil)
	if err != nil {
		return nil, err
	}
	if in.ChangeSetType == setCreates {
		if err := s.reserve(ctx, call, in); err != nil {
			return nil, err
		}
	}
	found, err := s.find(ctx, in.StackName)
	if err != nil {
		return nil, err
	}
	var made stackrecord.ChangeSet
	r, err := s.store.Update(ctx, found.ID, func(r *stackrecord.Record) error {
		if at := setAt(r, in.ChangeSetName); at >= 0 {
			if made = r.Sets[at]; in.ClientToken != "" && made.Token == in.ClientToken {
				return nil
			}
			return awsfault.Errorf("AlreadyExistsException", "ChangeSet %s already exists", in.ChangeSetName)
		}
		if r.State.Status != stack.Review && !r.State.Status.Updatable() {
			return refuse("Stack:%s is in %s state and can not be updated.", r.ARN, r.State.Status)
		}
		if len(r.Sets) >= mostSets {
			return awsfault.Errorf("LimitExceededException", "The stack %s has %d change sets, which is the most that it may have: delete one", r.Name, len(r.Sets))
		}
		made = stackrecord.ChangeSet{
			ARN:  arn.ARN{Partition: "aws", Service: Service, Region: s.Region, Account: call.Caller.Account(), Resource: "changeSet/" + in.ChangeSetName + "/" + uuid.NewString()}.String(),
			Name: in.ChangeSetName, Token: in.ClientToken, Description: in.Description, Created: s.Now().UTC().Truncate(time.Second), OnFailure: failure, RoleARN: in.RoleARN,
		}
		if err := s.fill(ctx, call, r, &made, in); err != nil {
			return err
		}
		r.Sets = append(r.Sets, made)
		size := 0
		for _, set := range r.Sets {
			size += set.Asked.Size() + len(set.Description) + len(set.Token)
		}
		if size > mostOfSets {
			return awsfault.Errorf("LimitExceededException", "The templates and parameters of the change sets of stack %s would have %d bytes: they may have %d; delete a change set", r.Name, size, mostOfSets)
		}
		return nil
	})
	if err != nil {
		return nil, away(err)
	}
	return &createSetOutput{made.ARN, r.ARN}, nil
}

// fill finds what a change set asks of its stack and what that changes.
func (s sets) fill(ctx context.Context, call *awsfront.Call, r *stackrecord.Record, set *stackrecord.ChangeSet, in *createSetInput) error {
	had := r.Operation
	defer func() { r.Operation = had }() // a change set begins no operation
	if err := s.begin(call, r, in.ClientToken, in.RoleARN); err != nil {
		return err
	}
	wanted, err := amended(r, change{
		body: in.TemplateBody, previous: in.UsePreviousTemplate != nil && *in.UsePreviousTemplate, parameters: in.Parameters, tags: latest(in.Tags), capabilities: in.Capabilities,
		notifications: in.NotificationARNs,
	})
	if err != nil {
		return err
	}
	return s.compare(ctx, r, set, wanted)
}

// latest returns tags in which a key that was there more than once has its last value; nil for nil. eksctl sends the tags that a stack has and its own in
// each change set (its pkg/cfn/manager/api.go); CreateStack refuses a key that is there twice.
func latest(tags []awstag.Tag) []awstag.Tag {
	var all []awstag.Tag
	for _, tag := range tags {
		if at := slices.IndexFunc(all, func(other awstag.Tag) bool { return other.Key == tag.Key }); at >= 0 {
			all[at] = tag
			continue
		}
		all = append(all, tag)
	}
	return all
}

// reserve makes a stack without anything, which a change set of the type CREATE is about. A stack without anything that is there already is as good.
func (s sets) reserve(ctx context.Context, call *awsfront.Call, in *createSetInput) error {
	if !stackName.MatchString(in.StackName) {
		return refuse("StackName is %.140q: it must begin with a letter and have letters, digits and dashes, at most 128", in.StackName)
	}
	defer s.names.Hold(in.StackName)()
	had, err := s.store.Named(ctx, in.StackName)
	if err != nil {
		return away(err)
	}
	if had != nil {
		if had.State.Status != stack.Review {
			return refuse("Stack [%s] already exists and cannot be created again with the changeSet [%s].", in.StackName, in.ChangeSetName)
		}
		return nil
	}
	r := &stackrecord.Record{ID: uuid.NewString(), Name: in.StackName}
	r.ARN = stackrecord.ARNOf(s.Region, call.Caller.Account(), r.Name, r.ID)
	r.Operation = stackrecord.Operation{ID: uuid.NewString(), Action: call.Action}
	r.State = stack.State{Status: stack.Review, Reason: stack.ByUser, OnFailure: stack.Rollback}
	if r.Asked, err = asked(in.TemplateBody, nil, nil, nil); err != nil {
		return err
	}
	if _, err := stacktemplate.Parse([]byte(in.TemplateBody)); err != nil {
		return away(err)
	}
	r.Tell(s.Now(), []stack.Event{{Status: stack.Review, Reason: stack.ByUser}})
	return away(s.store.Create(ctx, r))
}

// compare finds what a change set would do. A set that would change nothing cannot be executed.
func (s sets) compare(ctx context.Context, r *stackrecord.Record, set *stackrecord.ChangeSet, wanted stackplan.Asked) error {
	after, err := s.resolve(ctx, r, &wanted)
	if err != nil {
		return err
	}
	set.Asked = wanted
	before := map[string]map[string]any{}
	if r.State.Status != stack.Review {
		if same(r.Asked, wanted) {
			set.Reason = unchanged
			return nil
		}
		place, imported := s.place(ctx, r)
		plan, err := stackplan.Read(r.Asked, place)
		if err != nil {
			return away(err)
		}
		before, err = plan.Wanted(r.State)
		if imported.away != nil {
			return unavailable(imported.away)
		}
		if err != nil {
			return away(err)
		}
	}
	then, err := after.Wanted(r.State)
	if err != nil {
		return away(err)
	}
	for _, one := range stacktemplate.Compare(before, then) {
		change := stackrecord.Change{Action: string(one.Action), LogicalID: one.LogicalID, Type: after.Template.Resources[one.LogicalID].Type}
		if had, ok := r.State.Current(one.LogicalID); ok {
			change.PhysicalID, change.Type = had.PhysicalID, had.Type
		}
		if one.Action == stacktemplate.Modify {
			replaced(&change, one.Changes)
		}
		set.Changes = append(set.Changes, change)
	}
	return nil
}

// replaced finds whether changes of properties replace their resource.
func replaced(change *stackrecord.Change, changes []stacktemplate.Change) {
	change.Replacement = "False"
	of, err := resource.Find(change.Type)
	if err != nil {
		return
	}
	for _, one := range changes {
		if !slices.Contains(change.Properties, one.Property) {
			change.Properties = append(change.Properties, one.Property)
		}
		if !slices.ContainsFunc(of.Replaces, func(path string) bool {
			return one.Path == path || strings.HasPrefix(one.Path, path+".") || strings.HasPrefix(one.Path, path+"[")
		}) {
			continue
		}
		if !slices.Contains(change.Replaces, one.Property) {
			change.Replaces = append(change.Replaces, one.Property)
		}
		_, unknown := one.After.(stacktemplate.Unknown)
		if unknown && change.Replacement == "False" {
			change.Replacement = "Conditional"
		}
		if !unknown {
			change.Replacement = "True"
		}
	}
}

// setAt is the place of a change set, by its name or ARN; -1 if the stack has none.
func setAt(r *stackrecord.Record, name string) int {
	return slices.IndexFunc(r.Sets, func(set stackrecord.ChangeSet) bool { return set.Name == name || set.ARN == name })
}

// ofSet finds the stack of a change set and the set.
func (s sets) ofSet(ctx context.Context, stackName, name string) (*stackrecord.Record, int, error) {
	if stackName != "" {
		r, err := s.find(ctx, stackName)
		if err != nil {
			return nil, -1, err
		}
		if at := setAt(r, name); at >= 0 {
			return r, at, nil
		}
		return nil, -1, awsfault.Errorf("ChangeSetNotFound", "ChangeSet [%s] does not exist", name)
	}
	if !stackrecord.IsARN(name) {
		return nil, -1, refuse("StackName must be specified if ChangeSetName is not specified as an ARN.")
	}
	all, err := s.all(ctx)
	if err != nil {
		return nil, -1, err
	}
	for _, r := range all {
		if at := setAt(r, name); at >= 0 {
			return r, at, nil
		}
	}
	return nil, -1, awsfault.Errorf("ChangeSetNotFound", "ChangeSet [%s] does not exist", name)
}

// aboutSet is what IAM is asked about a request that names a change set: by the set's name, whichever way it was named.
func (s sets) aboutSet(ctx context.Context, call *awsfront.Call, stackName, name string) ([]awsfront.Target, error) {
	r, at, err := s.ofSet(ctx, stackName, name)
	if err == nil {
		name = r.Sets[at].Name
	}
	conditions := map[string][]string{"cloudformation:ChangeSetName": {name}}
	switch {
	case stackName != "":
		return s.about(ctx, call, stackName, conditions)
	case err != nil:
		return []awsfront.Target{{Resource: s.ARN(call, "stack/*/*"), Conditions: conditions}}, nil //nolint:nilerr // the action tells who may know
	}
	return []awsfront.Target{{Resource: r.ARN, Conditions: awsresource.ResourceTags(conditions, r.Asked.Tags)}}, nil
}
