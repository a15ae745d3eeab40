// SPDX-License-Identifier: Apache-2.0

package cloudformation

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
	"muster.dev/muster/internal/cloud/cloudformation/stackrecord"
)

type updateInput struct {
	StackName, TemplateBody, TemplateURL, RoleARN, ClientRequestToken                        string
	StackPolicyBody, StackPolicyURL, StackPolicyDuringUpdateBody, StackPolicyDuringUpdateURL string
	Parameters                                                                               []parameter
	Capabilities, NotificationARNs, ResourceTypes                                            []string
	Tags                                                                                     []awstag.Tag
	DisableRollback, UsePreviousTemplate, RetainExceptOnCreate                               *bool
	RollbackConfiguration                                                                    *triggers
}

func (s *Stacks) updateStack() awsfront.Spec[updateInput, stackOutput] {
	return awsfront.Spec[updateInput, stackOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateInput) ([]awsfront.Target, error) {
			conditions := awsresource.RequestTags(nil, in.Tags)
			asks(conditions, in.RoleARN, in.TemplateURL, in.StackPolicyURL, in.ResourceTypes)
			targets, err := s.about(ctx, call, in.StackName, conditions)
			if err != nil {
				return nil, err
			}
			return s.withRole(ctx, targets, in.RoleARN)
		},
		Do: s.doUpdate,
	}
}

// errNothing is the refusal of an update that would change nothing.
var errNothing = refuse("No updates are to be performed.")

func (s *Stacks) doUpdate(ctx context.Context, call *awsfront.Call, in *updateInput) (*stackOutput, error) {
	policies := in.StackPolicyBody + in.StackPolicyURL + in.StackPolicyDuringUpdateBody + in.StackPolicyDuringUpdateURL
	if err := notHere(map[string]bool{
		"TemplateURL": in.TemplateURL != "", "StackPolicyBody": policies != "", "ResourceTypes": len(in.ResourceTypes) > 0, "RollbackConfiguration": in.RollbackConfiguration.given(),
		"RetainExceptOnCreate": in.RetainExceptOnCreate != nil && *in.RetainExceptOnCreate,
	}); err != nil {
		return nil, err
	}
	failure := stack.Rollback
	if in.DisableRollback != nil && *in.DisableRollback {
		failure = stack.DoNothing
	}
	return s.operate(ctx, call, in.StackName, in.ClientRequestToken, in.RoleARN, func(r *stackrecord.Record) ([]stack.Event, error) {
		wanted, err := amended(r, change{
			body: in.TemplateBody, previous: in.UsePreviousTemplate != nil && *in.UsePreviousTemplate, parameters: in.Parameters, tags: in.Tags, capabilities: in.Capabilities,
			notifications: in.NotificationARNs,
		})
		if err != nil {
			return nil, err
		}
		events, err := s.amend(ctx, r, wanted, failure)
		for i := range r.Sets { // they were compared with what the stack was
			r.Sets[i].Obsolete = true
		}
		return events, err
	})
}

// change is what a request changes of a stack.
type change struct {
	body                        string
	previous                    bool // the template stays
	parameters                  []parameter
	tags                        []awstag.Tag // nil leaves them
	capabilities, notifications []string     // nil leaves the notifications
}

// amended is what a stack is asked to be after a change.
func amended(r *stackrecord.Record, c change) (stackplan.Asked, error) {
	if c.previous {
		if c.body != "" {
			return stackplan.Asked{}, refuse("Only one of TemplateBody and UsePreviousTemplate may be specified")
		}
		c.body = r.Asked.Template
	}
	if c.tags == nil {
		c.tags = awstag.Sorted(r.Asked.Tags)
	}
	wanted, err := asked(c.body, c.parameters, &r.Asked, c.tags)
	if err != nil {
		return wanted, err
	}
	wanted.Capabilities, wanted.NotificationARNs = c.capabilities, c.notifications
	if c.notifications == nil {
		wanted.NotificationARNs = r.Asked.NotificationARNs
	}
	return wanted, nil
}

// amend begins the update of a stack to what is asked for.
func (s *Stacks) amend(ctx context.Context, r *stackrecord.Record, wanted stackplan.Asked, failure stack.OnFailure) ([]stack.Event, error) {
	if !r.State.Status.Updatable() {
		return nil, refuse("Stack:%s is in %s state and can not be updated.", r.ARN, r.State.Status)
	}
	plan, err := s.resolve(ctx, r, &wanted)
	if err != nil {
		return nil, err
	}
	if same(r.Asked, wanted) {
		return nil, errNothing
	}
	exports, err := plan.Exports(r.State)
	if err != nil {
		return nil, away(err)
	}
	if err := s.imported(ctx, r, exports); err != nil {
		return nil, err
	}
	graph, err := plan.Graph()
	if err != nil {
		return nil, away(err)
	}
	before := r.Asked
	state, events, err := r.State.Update(graph, failure)
	if err != nil {
		return nil, refuse("%v", err)
	}
	r.State, r.Before, r.Asked, r.Updated, r.Description = state, &before, wanted, s.Now().UTC().Truncate(time.Second), plan.Template.Description
	return events, nil
}

// same reports whether a stack would be as it is.
func same(a, b stackplan.Asked) bool {
	return sameTemplate(a.Template, b.Template) && reflect.DeepEqual(filled(a.Parameters), filled(b.Parameters)) && reflect.DeepEqual(filled(a.Tags), filled(b.Tags)) &&
		reflect.DeepEqual(filled(a.Stored), filled(b.Stored)) && slices.Equal(a.NotificationARNs, b.NotificationARNs)
}

// sameTemplate reports whether two templates say the same, whatever their white space, comments and form.
func sameTemplate(a, b string) bool {
	if a == b {
		return true
	}
	one, err := stacktemplate.Parse([]byte(a))
	if err != nil {
		return false
	}
	other, err := stacktemplate.Parse([]byte(b))
	return err == nil && reflect.DeepEqual(one, other)
}

// filled is a map that is not nil.
func filled(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// errAgain reports that an operation was begun by the same request before.
var errAgain = errors.New("the operation was begun already")

// operate begins an operation of a stack, once for a client token.
func (s *Stacks) operate(ctx context.Context, call *awsfront.Call, name, token, role string, change func(*stackrecord.Record) ([]stack.Event, error)) (*stackOutput, error) {
	found, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := s.store.Update(ctx, found.ID, func(r *stackrecord.Record) error {
		if token != "" && r.Operation.Token == token && r.Operation.Action == call.Action {
			return errAgain
		}
		had := r.Operation
		if err := s.begin(call, r, token, role); err != nil {
			return err
		}
		events, err := change(r)
		if err != nil {
			return err
		}
		if len(events) == 0 { // it goes on as it was
			r.Operation = had
		}
		r.Tell(s.Now(), events)
		return nil
	})
	if errors.Is(err, errAgain) {
		return &stackOutput{found.ARN}, nil
	}
	if err != nil {
		return nil, away(err)
	}
	s.tell()
	return &stackOutput{r.ARN}, nil
}
