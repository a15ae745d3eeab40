// SPDX-License-Identifier: Apache-2.0

package fis

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/passrole"
	"muster.dev/muster/internal/cloud/experiment"
)

// stopCondition is what ends an experiment early: nothing, here.
type stopCondition struct{ Source, Value string }

// noCondition is the one source of stop conditions.
const noCondition = "none"

// targetShape is a target as requests and answers have it.
type targetShape struct {
	ResourceType  string
	ResourceARNs  []string
	ResourceTags  map[string]string
	Filters       []filterShape
	SelectionMode string
}

type filterShape struct {
	Path   string
	Values []string
}

type actionShape struct {
	ActionID, Description string
	Parameters, Targets   map[string]string
}

type optionsShape struct{ AccountTargeting, EmptyTargetResolutionMode string }

// oneAccount is the one kind of experiments' accounts.
const oneAccount = "single-account"

type createTemplateInput struct {
	ClientToken, Description, RoleARN string
	StopConditions                    []stopCondition
	Targets                           map[string]targetShape
	Actions                           map[string]actionShape
	Tags                              map[string]string
	ExperimentOptions                 *optionsShape
}

type templateOutput struct{ ExperimentTemplate *shownTemplate }

func (e *Experiments) createTemplate() awsfront.Spec[createTemplateInput, templateOutput] {
	return awsfront.Spec[createTemplateInput, templateOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createTemplateInput) ([]awsfront.Target, error) {
			targets := []awsfront.Target{{Resource: e.ARN(call, templateResource+"*"), Conditions: awsresource.RequestTags(nil, awstag.Sorted(in.Tags))}}
			asked := map[string]bool{}
			for _, a := range in.Actions {
				asked[a.ActionID] = true
			}
			for _, id := range slices.Sorted(maps.Keys(asked)) {
				targets = append(targets, awsfront.Target{Resource: e.ARN(call, "action/"+id)})
			}
			pass, err := passrole.Targets(ctx, e.Management, in.RoleARN, Principal, "")
			if err != nil {
				return nil, away(err)
			}
			return append(targets, pass...), nil
		},
		Do: e.doCreateTemplate,
	}
}

func (e *Experiments) doCreateTemplate(ctx context.Context, call *awsfront.Call, in *createTemplateInput) (*templateOutput, error) {
	sent, err := tokenOf(call, in.ClientToken)
	if err != nil {
		return nil, err
	}
	tags, err := awstag.Read(Service, awstag.Sorted(in.Tags))
	if err != nil {
		return nil, err
	}
	r := &templateRecord{Name: newID(templatePrefix, sent), Tags: awsresource.KeptTags(tags)}
	r.ID = templates.NameOf(r.Name)
	if r.Data, err = in.template(); err != nil {
		return nil, err
	}
	if err := e.checkRole(ctx, in.RoleARN); err != nil {
		return nil, err
	}
	mark := marked(nil, nil)
	sent.Mark(mark)
	r.Labels, r.Annotations = mark.Labels, mark.Annotations
	all, err := templates.List(ctx, e.Management)
	if err != nil {
		return nil, away(err)
	}
	if len(all) >= maxTemplates && !slices.ContainsFunc(all, func(other templateRecord) bool { return other.ID == r.ID }) {
		return nil, awsfault.Errorf(quota, "There are %d experiment templates, which is the most that there may be: delete one", len(all))
	}
	err = templates.Create(ctx, e.Management, r)
	if apierrors.IsAlreadyExists(err) {
		if r, err = e.template(ctx, r.Name); err == nil {
			err = sent.CheckMade(marked(r.Labels, r.Annotations), awsfault.Errorf(conflict, "An experiment template of this id exists: use another client token"))
		}
	}
	if err != nil {
		return nil, kept(templateNoun, newID(templatePrefix, sent), err)
	}
	return &templateOutput{e.showTemplate(call, r)}, nil
}

// template reads a request.
func (in *createTemplateInput) template() (experiment.Template, error) {
	t := experiment.Template{Description: in.Description, RoleARN: in.RoleARN, Empty: experiment.EmptyFails, Targets: map[string]experiment.Target{}, Actions: map[string]experiment.Action{}}
	if o := in.ExperimentOptions; o != nil {
		if o.AccountTargeting != "" && o.AccountTargeting != oneAccount {
			return t, awsfault.Errorf(validation, "The accountTargeting is %.50q: Muster's experiments are of a %s", o.AccountTargeting, oneAccount)
		}
		if o.EmptyTargetResolutionMode != "" {
			t.Empty = o.EmptyTargetResolutionMode
		}
	}
	if len(in.StopConditions) != 1 || in.StopConditions[0] != (stopCondition{Source: noCondition}) {
		return t, awsfault.Errorf(validation, "Muster has no alarms that stop an experiment: the stopConditions must be one, of the source %s, without a value", noCondition)
	}
	for name, target := range in.Targets {
		kept := experiment.Target{ResourceType: target.ResourceType, ARNs: target.ResourceARNs, Tags: target.ResourceTags, Mode: target.SelectionMode}
		for _, f := range target.Filters {
			kept.Filters = append(kept.Filters, experiment.Filter(f))
		}
		t.Targets[name] = kept
	}
	for name, a := range in.Actions {
		t.Actions[name] = experiment.Action{ID: a.ActionID, Description: a.Description, Parameters: a.Parameters, Targets: a.Targets}
	}
	if err := t.Check(); err != nil {
		return t, awsfault.Errorf(validation, "%v", err)
	}
	return t, nil
}

// checkRole refuses a role that is not there, or does not let the service in.
func (e *Experiments) checkRole(ctx context.Context, text string) error {
	role, err := passrole.Find(ctx, e.Management, text)
	switch {
	case err != nil:
		return away(err)
	case role == nil:
		return awsfault.Errorf(validation, "The roleArn is %.200q: there is no such role", text)
	case !passrole.LetsIn(role, e.Region, Principal, "sts:AssumeRole", map[string][]string{"aws:sourceaccount": {e.AccountID}, "aws:sourcearn": {e.experimentARN("*")}}):
		return awsfault.Errorf(validation, "The trust policy of the role %.200s does not let %s assume it", text, Principal)
	}
	return nil
}

func (e *Experiments) getTemplate() awsfront.Spec[byID, templateOutput] {
	return awsfront.Spec[byID, templateOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *byID) ([]awsfront.Target, error) {
			return about(ctx, e, call, templates, templateResource, in.ID)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *byID) (*templateOutput, error) {
			r, err := e.template(ctx, in.ID)
			if err != nil {
				return nil, err
			}
			return &templateOutput{e.showTemplate(call, r)}, nil
		},
	}
}

func (e *Experiments) deleteTemplate() awsfront.Spec[byID, templateOutput] {
	return awsfront.Spec[byID, templateOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *byID) ([]awsfront.Target, error) {
			return about(ctx, e, call, templates, templateResource, in.ID)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *byID) (*templateOutput, error) {
			r, err := e.template(ctx, in.ID)
			if err != nil {
				return nil, err
			}
			if err := templates.Delete(ctx, e.Management, r.ID); err != nil {
				return nil, kept(templateNoun, in.ID, err)
			}
			return &templateOutput{e.showTemplate(call, r)}, nil
		},
	}
}

type listInput struct {
	MaxResults *int32
	NextToken  string
}

type listTemplatesOutput struct {
	ExperimentTemplates []*templateSummary
	NextToken           string
}

func (e *Experiments) listTemplates() awsfront.Spec[listInput, listTemplatesOutput] {
	return awsfront.Spec[listInput, listTemplatesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *listInput) (*listTemplatesOutput, error) {
			asked, err := awsresource.AskedPage(e.Account, call, nil, in.MaxResults, in.NextToken)
			if err != nil {
				return nil, err
			}
			all, err := templates.List(ctx, e.Management)
			if err != nil {
				return nil, away(err)
			}
			page, next, err := awsresource.Cut(asked, all, func(r templateRecord) string { return r.Name })
			out := &listTemplatesOutput{ExperimentTemplates: []*templateSummary{}, NextToken: next}
			for i := range page {
				out.ExperimentTemplates = append(out.ExperimentTemplates, e.sumTemplate(call, &page[i]))
			}
			return out, err
		},
	}
}
