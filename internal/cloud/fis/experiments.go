// SPDX-License-Identifier: Apache-2.0

package fis

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
)

type startInput struct {
	ClientToken, ExperimentTemplateID string
	ExperimentOptions                 *struct{ ActionsMode string }
	Tags                              map[string]string
}

type experimentOutput struct{ Experiment *shownExperiment }

func (e *Experiments) startExperiment() awsfront.Spec[startInput, experimentOutput] {
	return awsfront.Spec[startInput, experimentOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *startInput) ([]awsfront.Target, error) {
			targets, err := about(ctx, e, call, templates, templateResource, in.ExperimentTemplateID)
			own := awsfront.Target{Resource: e.ARN(call, experimentResource+"*"), Conditions: awsresource.RequestTags(nil, awstag.Sorted(in.Tags))}
			return append(targets, own), err
		},
		Do: e.doStart,
	}
}

func (e *Experiments) doStart(ctx context.Context, call *awsfront.Call, in *startInput) (*experimentOutput, error) {
	sent, err := tokenOf(call, in.ClientToken)
	if err != nil {
		return nil, err
	}
	tags, err := awstag.Read(Service, awstag.Sorted(in.Tags))
	if err != nil {
		return nil, err
	}
	if o := in.ExperimentOptions; o != nil && o.ActionsMode != "" && o.ActionsMode != runAll {
		return nil, awsfault.Errorf(validation, "The actionsMode is %.50q: Muster runs the actions of an experiment, so it must be %s", o.ActionsMode, runAll)
	}
	r := &experimentRecord{Name: newID(experimentPrefix, sent), Tags: awsresource.KeptTags(tags)}
	r.ID = experiments.NameOf(r.Name)
	again, err := e.started(ctx, call, sent, r)
	if again != nil || err != nil {
		return again, err
	}
	of, err := e.template(ctx, in.ExperimentTemplateID)
	if err != nil {
		return nil, err
	}
	r.Data = running{TemplateID: of.Name, Template: of.Data, Status: initiating, Reason: "Experiment is initiating."}
	all, err := experiments.List(ctx, e.Management)
	if err != nil {
		return nil, away(err)
	}
	if n := len(slices.DeleteFunc(all, func(other experimentRecord) bool { return !other.Data.active() })); n >= maxActive {
		return nil, awsfault.Errorf(quota, "%d experiments are active, which is the most that may be: wait for one, or stop it", n)
	}
	mark := marked(nil, nil)
	sent.Mark(mark)
	r.Labels, r.Annotations = mark.Labels, mark.Annotations
	err = experiments.Create(ctx, e.Management, r)
	if apierrors.IsAlreadyExists(err) { // the same request, at the same time
		if again, err = e.started(ctx, call, sent, r); again != nil {
			return again, nil
		}
	}
	if err != nil {
		return nil, kept(experimentNoun, r.Name, err)
	}
	e.tell()
	return &experimentOutput{e.showExperiment(call, r)}, nil
}

// started is the answer to a request that has started its experiment before; nil for a new request.
func (e *Experiments) started(ctx context.Context, call *awsfront.Call, sent awsresource.Token, r *experimentRecord) (*experimentOutput, error) {
	there, err := experiments.Get(ctx, e.Management, r.ID)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a new request
	}
	if err == nil {
		err = sent.CheckMade(marked(there.Labels, there.Annotations), awsfault.Errorf(conflict, "An experiment of this id exists: use another client token"))
	}
	if err != nil {
		return nil, kept(experimentNoun, r.Name, err)
	}
	return &experimentOutput{e.showExperiment(call, there)}, nil
}

func (e *Experiments) aboutExperiment(ctx context.Context, call *awsfront.Call, in *byID) ([]awsfront.Target, error) {
	return about(ctx, e, call, experiments, experimentResource, in.ID)
}

func (e *Experiments) getExperiment() awsfront.Spec[byID, experimentOutput] {
	return awsfront.Spec[byID, experimentOutput]{
		About: e.aboutExperiment,
		Do: func(ctx context.Context, call *awsfront.Call, in *byID) (*experimentOutput, error) {
			r, err := e.experiment(ctx, in.ID)
			if err != nil {
				return nil, err
			}
			return &experimentOutput{e.showExperiment(call, r)}, nil
		},
	}
}

func (e *Experiments) stopExperiment() awsfront.Spec[byID, experimentOutput] {
	return awsfront.Spec[byID, experimentOutput]{
		About: e.aboutExperiment,
		Do: func(ctx context.Context, call *awsfront.Call, in *byID) (*experimentOutput, error) {
			r, err := experiments.Update(ctx, e.Management, experiments.NameOf(in.ID), func(r *experimentRecord) error {
				if !r.Data.active() {
					return awsfault.Errorf(validation, "The experiment %.64s cannot be stopped: it is %s", r.Name, r.Data.Status)
				}
				r.Data.Status, r.Data.Reason = stopping, "Experiment is being stopped."
				return nil
			})
			if err != nil {
				return nil, kept(experimentNoun, in.ID, err)
			}
			e.tell()
			return &experimentOutput{e.showExperiment(call, r)}, nil
		},
	}
}

type listExperimentsInput struct {
	listInput

	ExperimentTemplateID string
}

type listExperimentsOutput struct {
	Experiments []*experimentSummary
	NextToken   string
}

func (e *Experiments) listExperiments() awsfront.Spec[listExperimentsInput, listExperimentsOutput] {
	return awsfront.Spec[listExperimentsInput, listExperimentsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *listExperimentsInput) (*listExperimentsOutput, error) {
			asked, err := awsresource.AskedPage(e.Account, call, in.ExperimentTemplateID, in.MaxResults, in.NextToken)
			if err != nil {
				return nil, err
			}
			all, err := experiments.List(ctx, e.Management)
			if err != nil {
				return nil, away(err)
			}
			all = slices.DeleteFunc(all, func(r experimentRecord) bool {
				return in.ExperimentTemplateID != "" && r.Data.TemplateID != in.ExperimentTemplateID
			})
			page, next, err := awsresource.Cut(asked, all, func(r experimentRecord) string { return nexttoken.NewestFirst(r.Created, r.Name) })
			out := &listExperimentsOutput{Experiments: []*experimentSummary{}, NextToken: next}
			for i := range page {
				out.Experiments = append(out.Experiments, e.sumExperiment(call, &page[i]))
			}
			return out, err
		},
	}
}
