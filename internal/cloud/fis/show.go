// SPDX-License-Identifier: Apache-2.0

package fis

import (
	"time"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/experiment"
)

// templateSummary is a template in a list.
type templateSummary struct {
	ID, ARN, Description         string
	CreationTime, LastUpdateTime time.Time
	Tags                         map[string]string
}

// shownTemplate is a template as FIS shows it.
type shownTemplate struct {
	templateSummary

	RoleARN           string
	Targets           map[string]targetShape
	Actions           map[string]actionShape
	StopConditions    []stopCondition
	ExperimentOptions *optionsShape
}

func (e *Experiments) sumTemplate(call *awsfront.Call, r *templateRecord) *templateSummary {
	return &templateSummary{
		ID: r.Name, ARN: e.ARN(call, templateResource+r.Name), Description: r.Data.Description, CreationTime: r.Created, LastUpdateTime: r.Created,
		Tags: awsresource.PlainTags(r.Tags),
	}
}

func (e *Experiments) showTemplate(call *awsfront.Call, r *templateRecord) *shownTemplate {
	shown := &shownTemplate{
		templateSummary: *e.sumTemplate(call, r), RoleARN: r.Data.RoleARN, Targets: targetsOf(r.Data, nil), Actions: map[string]actionShape{},
		StopConditions: []stopCondition{{Source: noCondition}}, ExperimentOptions: &optionsShape{oneAccount, r.Data.Empty},
	}
	for name, a := range r.Data.Actions {
		shown.Actions[name] = shapeOf(a)
	}
	return shown
}

func shapeOf(a experiment.Action) actionShape {
	return actionShape{ActionID: a.ID, Description: a.Description, Parameters: a.Parameters, Targets: a.Targets}
}

// targetsOf are the targets of a template; a resolved target has the ARNs of its instances.
func targetsOf(t experiment.Template, resolved map[string][]string) map[string]targetShape {
	all := map[string]targetShape{}
	for name, target := range t.Targets {
		shape := targetShape{ResourceType: target.ResourceType, ResourceARNs: target.ARNs, ResourceTags: target.Tags, SelectionMode: target.Mode}
		if arns, ok := resolved[name]; ok {
			shape.ResourceARNs = arns
		}
		for _, f := range target.Filters {
			shape.Filters = append(shape.Filters, filterShape(f))
		}
		all[name] = shape
	}
	return all
}

// stateShape is how far an experiment or an action is, and why.
type stateShape struct{ Status, Reason string }

// shownAction is an action of an experiment.
type shownAction struct {
	actionShape

	State              *stateShape
	StartTime, EndTime *time.Time
}

// experimentSummary is an experiment in a list.
type experimentSummary struct {
	ID, ARN, ExperimentTemplateID string
	State                         *stateShape
	CreationTime                  time.Time
	Tags                          map[string]string
	ExperimentOptions             *runOptions
}

// runOptions are the options of an experiment: those of its template, and that its actions are run.
type runOptions struct {
	optionsShape

	ActionsMode string
}

// runAll is the one mode of the actions of experiments.
const runAll = "run-all"

// shownExperiment is an experiment as FIS shows it.
type shownExperiment struct {
	experimentSummary

	RoleARN            string
	Targets            map[string]targetShape
	Actions            map[string]shownAction
	StopConditions     []stopCondition
	StartTime, EndTime *time.Time
}

func (e *Experiments) sumExperiment(call *awsfront.Call, r *experimentRecord) *experimentSummary {
	return &experimentSummary{
		ID: r.Name, ARN: e.ARN(call, experimentResource+r.Name), ExperimentTemplateID: r.Data.TemplateID, State: &stateShape{r.Data.Status, r.Data.Reason},
		CreationTime: r.Created, Tags: awsresource.PlainTags(r.Tags), ExperimentOptions: &runOptions{optionsShape{oneAccount, r.Data.Template.Empty}, runAll},
	}
}

func (e *Experiments) showExperiment(call *awsfront.Call, r *experimentRecord) *shownExperiment {
	resolved := map[string][]string{}
	for name, ids := range r.Data.Resolved {
		for _, id := range ids {
			resolved[name] = append(resolved[name], e.instanceARN(id))
		}
	}
	created := r.Created
	shown := &shownExperiment{
		experimentSummary: *e.sumExperiment(call, r), RoleARN: r.Data.Template.RoleARN, Targets: targetsOf(r.Data.Template, resolved), Actions: map[string]shownAction{},
		StopConditions: []stopCondition{{Source: noCondition}}, StartTime: &created, EndTime: r.Data.Ended,
	}
	for name, a := range r.Data.Template.Actions {
		shown.Actions[name] = shownAction{shapeOf(a), actionState(&r.Data), r.Data.Began, endOf(&r.Data)}
	}
	return shown
}

// actionState is how far the actions of an experiment are: all begin and end with it.
func actionState(r *running) *stateShape {
	switch {
	case r.Began == nil && r.Status == initiating:
		return &stateShape{"pending", "Initial state"}
	case r.Began == nil:
		return &stateShape{cancelled, "Action was cancelled."}
	}
	return &stateShape{r.Status, r.Reason}
}

// endOf is when the actions of an experiment ended; nil if they did not begin, or go on.
func endOf(r *running) *time.Time {
	if r.Began == nil {
		return nil
	}
	return r.Ended
}
