// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

// The codes of EventBridge.
const (
	notFound       = "ResourceNotFoundException"
	invalidPattern = "InvalidEventPatternException"
	validation     = "ValidationException"
	limitExceeded  = "LimitExceededException"
)

// The states of rules.
const (
	enabled  = "ENABLED"
	disabled = "DISABLED"
)

const (
	defaultBus = "default"
	rulePrefix = "rule/"
	maxRules   = 300 // of a bus, as EventBridge's
	maxTargets = 5   // of a rule, as EventBridge's
)

var rules = awsrecord.Kind[rule]{Type: "events-rule"}

// rule is what is kept of a rule. The record's name is the rule's.
type rule struct {
	Pattern     string   `json:"pattern"`
	State       string   `json:"state"`
	Description string   `json:"description,omitempty"`
	Targets     []target `json:"targets,omitempty"`
}

// target is a queue that the events of a rule are sent to.
type target struct {
	ID  string `json:"id"`
	ARN string `json:"arn"`
	// Input is sent in place of the event, if it is not empty.
	Input string `json:"input,omitempty"`
}

// rulesResource is what errors about rules that are not there name.
var rulesResource = schema.GroupResource{Resource: "rules"}

// record is a rule with its name and tags.
type record = awsrecord.Record[rule]

// away turns what the API server says into an answer that clients try again where that helps.
func away(err error) error {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &awsfault.Error{Code: validation, Message: err.Error(), Cause: err}
	case apierrors.IsConflict(err):
		return &awsfault.Error{Code: "ConcurrentModificationException", Message: "The rule was changed by somebody else meanwhile: try again", Cause: err}
	}
	return &awsfault.Error{Code: "ServiceUnavailable", Status: 503, Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
}

// kept passes refusals on, and turns other errors of a read or a write into an answer.
func kept(name string, err error) error {
	fault, refused := err.(*awsfault.Error) //nolint:errorlint // the change returned it as it is
	switch {
	case err == nil:
		return nil
	case refused:
		return fault
	case apierrors.IsNotFound(err):
		return awsfault.Errorf(notFound, "Rule %s does not exist on EventBus %s.", name, defaultBus)
	}
	return away(err)
}

// checkName checks the name of a rule.
func checkName(name string) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	if name == "" || len(name) > 64 || strings.Trim(name, letters) != "" {
		return awsfault.Errorf(validation, "1 validation error detected: Value '%.100s' at 'name' failed to satisfy constraint: Member must have from 1 to 64 characters and satisfy regular expression pattern: [\\.\\-_A-Za-z0-9]+", name)
	}
	return nil
}

// checkBus refuses a bus other than the default one, which a request names by its name or its ARN, or not at all.
func (b *Bus) checkBus(call *awsfront.Call, bus string) error {
	if bus == "" || bus == defaultBus || bus == b.ARN(call, "event-bus/"+defaultBus) {
		return nil
	}
	return awsfault.Errorf(notFound, "Event bus %.100s does not exist. Muster has the event bus %s only.", bus, defaultBus)
}

func (b *Bus) arn(call *awsfront.Call, name string) string { return b.ARN(call, rulePrefix+name) }

// find reads a rule by its name.
func (b *Bus) find(ctx context.Context, name string) (*record, error) {
	found, err := rules.Get(ctx, b.Management, rules.NameOf(name))
	return found, kept(name, err)
}

// about is a rule as IAM is asked about it. A missing rule has no tags.
func (b *Bus) about(ctx context.Context, call *awsfront.Call, bus, name string) ([]awsfront.Target, error) {
	if err := b.checkBus(call, bus); err != nil {
		return nil, err
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	t := awsfront.Target{Resource: b.arn(call, name), Conditions: map[string][]string{}}
	found, err := rules.Get(ctx, b.Management, rules.NameOf(name))
	switch {
	case err == nil:
		t.Conditions = awsresource.ResourceTags(t.Conditions, found.Tags)
	case !apierrors.IsNotFound(err):
		return nil, away(err)
	}
	return []awsfront.Target{t}, nil
}

// change changes a rule.
func (b *Bus) change(ctx context.Context, name string, change func(*record) error) error {
	_, err := rules.Update(ctx, b.Management, rules.NameOf(name), change)
	return kept(name, err)
}

// ruleOf is the name of the rule of an ARN.
func (b *Bus) ruleOf(call *awsfront.Call, text string) (string, error) {
	parsed, err := arn.Parse(text)
	name, is := strings.CutPrefix(parsed.Resource, rulePrefix)
	if err != nil || parsed.Service != service || !is {
		return "", awsfault.Errorf(validation, "The ARN %.300q is not one of a rule, like %s", text, b.arn(call, "NAME"))
	}
	name = strings.TrimPrefix(name, defaultBus+"/")
	if parsed.Region != b.Region || parsed.Account != call.Caller.Account() {
		return "", kept(name, apierrors.NewNotFound(rulesResource, name))
	}
	return name, checkName(name)
}
