// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

// The codes of CloudWatch Logs.
const (
	invalidParameter = "InvalidParameterException"
	notFound         = "ResourceNotFoundException"
	alreadyExists    = "ResourceAlreadyExistsException"
	validation       = "ValidationException"
	unavailable      = "ServiceUnavailableException"
)

// The classes of log groups.
const (
	classStandard   = "STANDARD"
	classInfrequent = "INFREQUENT_ACCESS"
	classDelivery   = "DELIVERY"
)

const (
	// groupPrefix begins the resource of a log group's ARN, and allStreams ends it where the ARN is of all its streams.
	groupPrefix = "log-group:"
	allStreams  = ":*"
	maxName     = 512
)

var groups = awsrecord.Kind[group]{Type: "log-group"}

// group is what is kept of a log group. The record's name is the group's.
type group struct {
	Class     string `json:"class,omitempty"`
	Retention int32  `json:"retention,omitempty"` // in days; 0 is forever
	Key       string `json:"key,omitempty"`       // the ARN of a KMS key
	Protected bool   `json:"protected,omitempty"`
}

func (g group) class() string {
	if g.Class == "" {
		return classStandard
	}
	return g.Class
}

// away turns what the API server says into an answer that clients try again where that helps.
func away(err error) error {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &awsfault.Error{Code: invalidParameter, Message: err.Error(), Cause: err}
	case apierrors.IsConflict(err):
		return &awsfault.Error{Code: "OperationAbortedException", Message: "The log group was changed by somebody else meanwhile: try again", Cause: err}
	}
	return &awsfault.Error{Code: unavailable, Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
}

func missing() error {
	return awsfault.Errorf(notFound, "The specified log group does not exist.")
}

// kept passes refusals on, and turns other errors of a read or a write into an answer.
func kept(err error) error {
	fault, refused := err.(*awsfault.Error) //nolint:errorlint // the change returned it as it is
	switch {
	case err == nil:
		return nil
	case refused:
		return fault
	case apierrors.IsNotFound(err):
		return missing()
	}
	return away(err)
}

// checkName checks the name of a log group.
func checkName(name string) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/#-"
	if name == "" || len(name) > maxName || strings.Trim(name, letters) != "" {
		return awsfault.Errorf(invalidParameter, "1 validation error detected: Value '%.100s' at 'logGroupName' failed to satisfy constraint: "+
			"Member must have from 1 to %d characters and satisfy regular expression pattern: [\\.\\-_/#A-Za-z0-9]+", name, maxName)
	}
	return nil
}

func (a *api) arn(call *awsfront.Call, name string) string {
	return a.ARN(call, groupPrefix+name)
}

// nameOf is the name of the log group that an ARN is of, with or without its streams.
func (a *api) nameOf(call *awsfront.Call, text string) (string, error) {
	parsed, err := arn.Parse(text)
	if err != nil || parsed.Service != service || !strings.HasPrefix(parsed.Resource, groupPrefix) {
		return "", awsfault.Errorf(invalidParameter, "The ARN %.300q is not one of a log group, like %s", text, a.arn(call, "NAME"))
	}
	if parsed.Region != a.Region || parsed.Account != call.Caller.Account() {
		return "", missing()
	}
	name := strings.TrimSuffix(strings.TrimPrefix(parsed.Resource, groupPrefix), allStreams)
	return name, checkName(name)
}

// identified is the name of the log group that an identifier, a name or an ARN, is of.
func (a *api) identified(call *awsfront.Call, text string) (string, error) {
	if strings.HasPrefix(text, "arn:") {
		return a.nameOf(call, text)
	}
	return text, checkName(text)
}

// find reads a log group by its name.
func (a *api) find(ctx context.Context, name string) (*awsrecord.Record[group], error) {
	found, err := groups.Get(ctx, a.Management, groups.NameOf(name))
	return found, kept(err)
}

// about is a log group as IAM is asked about it. A missing log group has no tags.
func (a *api) about(ctx context.Context, call *awsfront.Call, name string, conditions map[string][]string) ([]awsfront.Target, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	found, err := groups.Get(ctx, a.Management, groups.NameOf(name))
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, away(err)
	}
	if err == nil {
		conditions = awsresource.ResourceTags(conditions, found.Tags)
	}
	return []awsfront.Target{{Resource: a.resource(call, name), Conditions: conditions}}, nil
}

// named is about the log group of a name.
func (a *api) named(ctx context.Context, call *awsfront.Call, name string) ([]awsfront.Target, error) {
	return a.about(ctx, call, name, nil)
}

// resource is a log group as policies name it: log-group:NAME for the actions about the tags of an ARN, and
// log-group:NAME:* for all others.
func (a *api) resource(call *awsfront.Call, name string) string {
	if slices.Contains([]string{"ListTagsForResource", "TagResource", "UntagResource"}, call.Action) {
		return a.arn(call, name)
	}
	return a.arn(call, name) + ":log-stream:"
}

// change changes a log group.
func (a *api) change(ctx context.Context, name string, change func(*awsrecord.Record[group]) error) error {
	_, err := groups.Update(ctx, a.Management, groups.NameOf(name), change)
	return kept(err)
}

// set changes what is kept of a log group.
func (a *api) set(ctx context.Context, name string, set func(*group)) error {
	return a.change(ctx, name, func(r *awsrecord.Record[group]) error { set(&r.Data); return nil })
}
