// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eventpattern"
)

type putRuleInput struct {
	Name, EventPattern, State, EventBusName string
	Description                             string
	Tags                                    []awstag.Tag
}

type putRuleOutput struct{ RuleARN string }

func (b *Bus) putRule() awsfront.Spec[putRuleInput, putRuleOutput] {
	return awsfront.Spec[putRuleInput, putRuleOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *putRuleInput) ([]awsfront.Target, error) {
			targets, err := b.about(ctx, call, in.EventBusName, in.Name)
			if err == nil {
				targets[0].Conditions = awsresource.RequestTags(targets[0].Conditions, in.Tags)
			}
			return targets, err
		},
		Do: b.doPutRule,
	}
}

// doPutRule makes a rule, or sets one that is there, whose targets and tags stay.
func (b *Bus) doPutRule(ctx context.Context, call *awsfront.Call, in *putRuleInput) (*putRuleOutput, error) {
	switch {
	case in.EventPattern == "":
		return nil, awsfault.Errorf(validation, "Parameter(s) EventPattern or ScheduleExpression must be specified. Muster has no schedules: send EventPattern")
	case in.State != "" && in.State != enabled && in.State != disabled:
		return nil, awsfault.Errorf(validation, "State %.60q is not supported: it must be %s or %s", in.State, enabled, disabled)
	case len(in.Description) > 512:
		return nil, awsfault.Errorf(validation, "The description has %d characters: there may be 512", len(in.Description))
	}
	if _, err := eventpattern.Parse(in.EventPattern); err != nil {
		return nil, awsfault.Errorf(invalidPattern, "Event pattern is not valid. Reason: %v", err)
	}
	tags, err := awstag.Read(service, in.Tags)
	if err != nil {
		return nil, err
	}
	set := func(r *record) error {
		r.Data.Pattern, r.Data.Description, r.Data.State = in.EventPattern, in.Description, enabled
		if in.State != "" {
			r.Data.State = in.State
		}
		return nil
	}
	out := &putRuleOutput{b.arn(call, in.Name)}
	err = b.change(ctx, in.Name, set)
	if fault, is := err.(*awsfault.Error); !is || fault.Code != notFound { //nolint:errorlint // change returns it as it is
		return out, err
	}
	all, err := rules.List(ctx, b.Management)
	if err != nil {
		return nil, away(err)
	}
	if len(all) >= maxRules {
		return nil, awsfault.Errorf(limitExceeded, "The requested resource exceeds the maximum number allowed: an event bus has %d rules", maxRules)
	}
	r := &record{ID: rules.NameOf(in.Name), Name: in.Name, Tags: awsresource.KeptTags(tags)}
	_ = set(r)
	err = rules.Create(ctx, b.Management, r)
	if apierrors.IsAlreadyExists(err) {
		err = b.change(ctx, in.Name, set)
	}
	if err != nil {
		return nil, kept(in.Name, err)
	}
	return out, nil
}

type ruleInput struct{ Name, EventBusName string }

func (b *Bus) aboutRule(ctx context.Context, call *awsfront.Call, in *ruleInput) ([]awsfront.Target, error) {
	return b.about(ctx, call, in.EventBusName, in.Name)
}

// shown is a rule as it is answered.
type shown struct{ Name, ARN, EventPattern, State, Description, EventBusName string }

// described is shown with who made the rule.
type described struct {
	shown
	CreatedBy string
}

func (b *Bus) show(call *awsfront.Call, r *record) shown {
	return shown{Name: r.Name, ARN: b.arn(call, r.Name), EventPattern: r.Data.Pattern, State: r.Data.State, Description: r.Data.Description, EventBusName: defaultBus}
}

func (b *Bus) describeRule() awsfront.Spec[ruleInput, described] {
	return awsfront.Spec[ruleInput, described]{
		About: b.aboutRule,
		Do: func(ctx context.Context, call *awsfront.Call, in *ruleInput) (*described, error) {
			found, err := b.find(ctx, in.Name)
			if err != nil {
				return nil, err
			}
			return &described{b.show(call, found), call.Caller.Account()}, nil
		},
	}
}

type listRulesInput struct {
	NamePrefix, EventBusName, NextToken string
	Limit                               *int32
}

type listRulesOutput struct {
	Rules     []shown
	NextToken string
}

func (b *Bus) listRules() awsfront.Spec[listRulesInput, listRulesOutput] {
	return awsfront.Spec[listRulesInput, listRulesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *listRulesInput) (*listRulesOutput, error) {
			if err := b.checkBus(call, in.EventBusName); err != nil {
				return nil, err
			}
			asked, err := awsresource.AskedPage(b.Account, call, in.NamePrefix, in.Limit, in.NextToken)
			if err != nil {
				return nil, err
			}
			all, err := rules.List(ctx, b.Management)
			if err != nil {
				return nil, away(err)
			}
			var chosen []shown
			for i := range all {
				if strings.HasPrefix(all[i].Name, in.NamePrefix) {
					chosen = append(chosen, b.show(call, &all[i]))
				}
			}
			out := &listRulesOutput{}
			out.Rules, out.NextToken, err = awsresource.Cut(asked, chosen, func(s shown) string { return s.Name })
			return out, err
		},
	}
}

func (b *Bus) switchRule(state string) awsfront.Spec[ruleInput, struct{}] {
	return awsfront.Spec[ruleInput, struct{}]{
		About: b.aboutRule,
		Do: func(ctx context.Context, _ *awsfront.Call, in *ruleInput) (*struct{}, error) {
			return nil, b.change(ctx, in.Name, func(r *record) error { r.Data.State = state; return nil })
		},
	}
}

type deleteRuleInput struct {
	Name, EventBusName string
	Force              bool // for rules of AWS's services, which there are none of
}

func (b *Bus) deleteRule() awsfront.Spec[deleteRuleInput, struct{}] {
	return awsfront.Spec[deleteRuleInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteRuleInput) ([]awsfront.Target, error) {
			return b.about(ctx, call, in.EventBusName, in.Name)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteRuleInput) (*struct{}, error) {
			found, err := rules.Get(ctx, b.Management, rules.NameOf(in.Name))
			if apierrors.IsNotFound(err) { // as EventBridge
				return nil, nil
			}
			if err != nil {
				return nil, away(err)
			}
			if len(found.Data.Targets) > 0 {
				return nil, awsfault.Errorf(validation, "Rule can't be deleted since it has targets. Remove them by RemoveTargets first")
			}
			if err := rules.Delete(ctx, b.Management, found.ID); err != nil && !apierrors.IsNotFound(err) {
				return nil, away(err)
			}
			return nil, nil
		},
	}
}
