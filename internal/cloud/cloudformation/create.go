// SPDX-License-Identifier: Apache-2.0

package cloudformation

import (
	"context"
	"maps"
	"regexp"
	"slices"

	"github.com/google/uuid"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
	"muster.dev/muster/internal/cloud/cloudformation/stackrecord"
	"muster.dev/muster/internal/cloud/eks/passrole"
)

// parameter is a parameter of a request.
type parameter struct {
	ParameterKey, ParameterValue string
	UsePreviousValue             *bool
}

// triggers are what would roll a stack back by alarms.
type triggers struct {
	MonitoringTimeInMinutes *int32
	RollbackTriggers        []struct{ Arn, Type string }
}

// given reports whether a request asks for alarms.
func (t *triggers) given() bool {
	return t != nil && (len(t.RollbackTriggers) > 0 || t.MonitoringTimeInMinutes != nil && *t.MonitoringTimeInMinutes > 0)
}

type createInput struct {
	StackName, TemplateBody, TemplateURL, RoleARN, ClientRequestToken, OnFailure, StackPolicyBody, StackPolicyURL string
	Parameters                                                                                                    []parameter
	Capabilities, NotificationARNs, ResourceTypes                                                                 []string
	Tags                                                                                                          []awstag.Tag
	DisableRollback, EnableTerminationProtection, RetainExceptOnCreate                                            *bool
	RollbackConfiguration                                                                                         *triggers
	TimeoutInMinutes                                                                                              *int32
}

type stackOutput struct{ StackID string }

func (s *Stacks) createStack() awsfront.Spec[createInput, stackOutput] {
	return awsfront.Spec[createInput, stackOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createInput) ([]awsfront.Target, error) {
			conditions := awsresource.RequestTags(nil, in.Tags)
			asks(conditions, in.RoleARN, in.TemplateURL, in.StackPolicyURL, in.ResourceTypes)
			return s.withRole(ctx, []awsfront.Target{{Resource: s.ARN(call, "stack/"+in.StackName+"/*"), Conditions: conditions}}, in.RoleARN)
		},
		Do: s.doCreate,
	}
}

// asks adds the condition keys of a request.
func asks(conditions map[string][]string, role, templateURL, policyURL string, types []string) {
	for key, value := range map[string]string{"cloudformation:RoleArn": role, "cloudformation:TemplateUrl": templateURL, "cloudformation:StackPolicyUrl": policyURL} {
		if value != "" {
			conditions[key] = []string{value}
		}
	}
	if len(types) > 0 {
		conditions["cloudformation:ResourceTypes"] = types
	}
}

// withRole adds the question whether the caller may pass the role.
func (s *Stacks) withRole(ctx context.Context, targets []awsfront.Target, role string) ([]awsfront.Target, error) {
	if role == "" {
		return targets, nil
	}
	pass, err := passrole.Targets(ctx, s.Management, role, Principal, "")
	if err != nil {
		return nil, unavailable(err)
	}
	return append(targets, pass...), nil
}

// stackName is what a stack may be called.
var stackName = regexp.MustCompile(`^[a-zA-Z][-a-zA-Z0-9]{0,127}$`)

func (s *Stacks) doCreate(ctx context.Context, call *awsfront.Call, in *createInput) (*stackOutput, error) {
	if !stackName.MatchString(in.StackName) {
		return nil, refuse("1 validation error detected: Value '%.140s' at 'stackName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*, with at most 128 characters", in.StackName)
	}
	if err := notHere(map[string]bool{
		"TemplateURL": in.TemplateURL != "", "StackPolicyBody": in.StackPolicyBody != "", "StackPolicyURL": in.StackPolicyURL != "", "ResourceTypes": len(in.ResourceTypes) > 0,
		"RollbackConfiguration": in.RollbackConfiguration.given(), "TimeoutInMinutes": in.TimeoutInMinutes != nil, "RetainExceptOnCreate": in.RetainExceptOnCreate != nil && *in.RetainExceptOnCreate,
	}); err != nil {
		return nil, err
	}
	failure, err := onFailure(in.OnFailure, in.DisableRollback)
	if err != nil {
		return nil, err
	}
	defer s.names.Hold(in.StackName)()
	if had, err := s.store.Named(ctx, in.StackName); err != nil {
		return nil, away(err)
	} else if had != nil {
		if in.ClientRequestToken != "" && had.Operation.Token == in.ClientRequestToken && had.Operation.Action == call.Action {
			return &stackOutput{had.ARN}, nil
		}
		return nil, awsfault.Errorf("AlreadyExistsException", "Stack [%s] already exists", in.StackName)
	}
	r := &stackrecord.Record{ID: uuid.NewString(), Name: in.StackName, TerminationProtection: in.EnableTerminationProtection != nil && *in.EnableTerminationProtection}
	r.ARN = stackrecord.ARNOf(s.Region, call.Caller.Account(), r.Name, r.ID)
	if err := s.begin(call, r, in.ClientRequestToken, in.RoleARN); err != nil {
		return nil, err
	}
	if r.Asked, err = asked(in.TemplateBody, in.Parameters, nil, in.Tags); err != nil {
		return nil, err
	}
	r.Asked.Capabilities, r.Asked.NotificationARNs = in.Capabilities, in.NotificationARNs
	events, err := s.establish(ctx, r, r.Asked, failure)
	if err != nil {
		return nil, err
	}
	r.Tell(s.Now(), events)
	if err := s.store.Create(ctx, r); err != nil {
		return nil, away(err)
	}
	s.tell()
	return &stackOutput{r.ARN}, nil
}

// establish begins the creation of what is asked for.
func (s *Stacks) establish(ctx context.Context, r *stackrecord.Record, wanted stackplan.Asked, failure stack.OnFailure) ([]stack.Event, error) {
	plan, err := s.resolve(ctx, r, &wanted)
	if err != nil {
		return nil, err
	}
	graph, err := plan.Graph()
	if err != nil {
		return nil, away(err)
	}
	r.Asked, r.Description = wanted, plan.Template.Description
	var events []stack.Event
	r.State, events = stack.Create(graph, failure)
	return events, nil
}

// onFailure is what follows a failure of a creation.
func onFailure(given string, disabled *bool) (stack.OnFailure, error) {
	switch {
	case given != "" && disabled != nil:
		return "", refuse("Only one of OnFailure and DisableRollback may be specified")
	case disabled != nil && *disabled:
		return stack.DoNothing, nil
	case given == "":
		return stack.Rollback, nil
	}
	for _, known := range []stack.OnFailure{stack.Rollback, stack.DoNothing, stack.Delete} {
		if given == string(known) {
			return known, nil
		}
	}
	return "", refuse("OnFailure is %.50q: it must be ROLLBACK, DO_NOTHING or DELETE", given)
}

// begin records who asks for an operation.
func (s *Stacks) begin(call *awsfront.Call, r *stackrecord.Record, token, role string) error {
	if role == "" {
		role = r.Operation.RoleARN // of an earlier operation: the stack goes on with it
	}
	o := stackrecord.Operation{ID: uuid.NewString(), Action: call.Action, Token: token, RoleARN: role}
	if role == "" {
		kept, err := s.Keep(call.Caller)
		if err != nil {
			return err
		}
		o.Caller = kept
	}
	r.Operation = o
	r.Sow()
	if err := s.Check(s.by(r)); err != nil {
		return refuse("Role %s is invalid or cannot be assumed: %v", role, err)
	}
	return nil
}

// by is for whom a stack makes requests.
func (s *Stacks) by(r *stackrecord.Record) By {
	return By{StackID: r.ARN, RoleARN: r.Operation.RoleARN, Caller: r.Operation.Caller, Secrets: secrets(r)}
}

// mostAsked is how many bytes the template, parameters and tags of a stack have together: they are several times in the stack's object,
// as they are, as they were, and in change sets, and etcd takes no object above 1.5 MiB.
const mostAsked = 192 << 10

// asked reads what a request asks a stack to be. The stack is as had before an update; nil for a new one.
func asked(body string, parameters []parameter, had *stackplan.Asked, tags []awstag.Tag) (stackplan.Asked, error) {
	if body == "" {
		return stackplan.Asked{}, refuse("Either Template URL or Template Body must be specified.")
	}
	a := stackplan.Asked{Template: body, Parameters: map[string]string{}}
	var kept []string
	for _, p := range parameters {
		if _, twice := a.Parameters[p.ParameterKey]; twice || p.ParameterKey == "" {
			return a, refuse("Parameter key %.255q is empty or there twice", p.ParameterKey)
		}
		if p.UsePreviousValue == nil || !*p.UsePreviousValue {
			a.Parameters[p.ParameterKey] = p.ParameterValue
			continue
		}
		if p.ParameterValue != "" || had == nil {
			return a, refuse("Invalid input for parameter key %s. Cannot specify usePreviousValue as true for a parameter key not in the previous template, or with a value", p.ParameterKey)
		}
		kept = append(kept, p.ParameterKey)
		if value, ok := had.Parameters[p.ParameterKey]; ok { // else the default of the template, as before
			a.Parameters[p.ParameterKey] = value
		}
	}
	if had != nil && had.Template != body {
		if name := stackplan.Exposed(had.Template, body, kept); name != "" {
			return a, refuse("Parameters.%s: the parameter had NoEcho and would be shown: leave NoEcho true, or give a value in place of UsePreviousValue", name)
		}
	}
	read, err := awstag.Read(Service, tags)
	a.Tags = read
	if size := a.Size(); err == nil && size > mostAsked {
		return a, refuse("The template, parameters and tags have %d bytes: a stack takes %d; shorten the values of parameters", size, mostAsked)
	}
	return a, err
}

// resolve finds everything that is wrong with what is asked of a stack. It fills in what Systems Manager has for parameters.
func (s *Stacks) resolve(ctx context.Context, r *stackrecord.Record, a *stackplan.Asked) (*stackplan.Plan, error) {
	if err := s.lookUp(ctx, r, a); err != nil {
		return nil, err
	}
	place, imported := s.place(ctx, r)
	plan, err := stackplan.Read(*a, place)
	if err != nil {
		return nil, away(err)
	}
	if needed, reason := plan.Missing(); len(needed) > 0 {
		return nil, awsfault.Errorf("InsufficientCapabilitiesException", "Requires capabilities : %v. %s", needed, reason)
	}
	err = plan.Check(r.State)
	if imported.away != nil {
		return nil, unavailable(imported.away)
	}
	if err != nil {
		return nil, away(err)
	}
	return plan, s.exportable(ctx, r, plan)
}

// lookUp asks Systems Manager for the parameters that the template names there, for whom the stack acts.
func (s *Stacks) lookUp(ctx context.Context, r *stackrecord.Record, a *stackplan.Asked) error {
	names, err := stackplan.Stored(*a)
	if err != nil {
		return away(err)
	}
	a.Stored = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(names)) {
		out, err := s.Do(ctx, s.by(r), "ssm", "GetParameter", map[string]any{"Name": names[key]})
		if err != nil {
			return refuse("Parameters.%s: Systems Manager does not give %s: %v", key, names[key], err)
		}
		found, _ := out["Parameter"].(awsshape.Object)
		if value, ok := found["Value"].(string); ok {
			a.Stored[key] = value
		}
	}
	return nil
}

// exportable refuses names of exports that another stack has.
func (s *Stacks) exportable(ctx context.Context, r *stackrecord.Record, plan *stackplan.Plan) error {
	names, err := plan.Exports(r.State)
	if err != nil || len(names) == 0 {
		return away(err)
	}
	taken, err := s.takenBy(ctx, r, names)
	if err == nil && taken != "" {
		return refuse("%s", taken)
	}
	return away(err)
}
