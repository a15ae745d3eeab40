// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

// The codes of SQS.
const (
	notFound         = "QueueDoesNotExist"
	nameExists       = "QueueNameExists"
	invalidAddress   = "InvalidAddress"
	invalidName      = "InvalidAttributeName"
	invalidValue     = "InvalidAttributeValue"
	invalidParameter = "InvalidParameterValue"
	accessDenied     = "AccessDeniedException"
)

var queues = awsrecord.Kind[queue]{Type: "sqs-queue"}

// queue is what is kept of a queue. The record's name is the queue's.
type queue struct {
	// Messages is the id of the queue's messages in the store: another one each time that a queue of the name is made.
	Messages string `json:"messages"`
	// Attributes are those that were set, without the policy.
	Attributes map[string]string `json:"attributes,omitempty"`
	// Policy is the queue's policy, bound; empty if it has none.
	Policy string `json:"policy,omitempty"`
	// Modified is when attributes were set last, in seconds since 1970.
	Modified int64 `json:"modified"`
}

// record is a queue with its name and tags.
type record = awsrecord.Record[queue]

// about is a queue that a request names by its URL.
type about struct{ QueueURL string }

// url is that of a queue, in AWS's form. Clients send it back as text, and no request goes to its host.
func (q *Queues) url(account, name string) string {
	return "https://sqs." + q.Region + ".amazonaws.com/" + account + "/" + name
}

// nameOf is the name of the queue of a URL.
func nameOf(call *awsfront.Call, text string) (string, error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" {
		return "", awsfault.Errorf(invalidAddress, "The address %.300s is not valid for this endpoint.", text)
	}
	account, name, found := strings.Cut(strings.TrimPrefix(parsed.Path, "/"), "/")
	if !found || checkName(name) != nil {
		return "", awsfault.Errorf(invalidAddress, "The address %.300s is not valid for this endpoint.", text)
	}
	if own := call.Caller.Account(); account != own {
		return "", awsfault.Errorf(accessDenied, "The queue %.300s is of the account %.20s, and the caller is of %s: queues of other accounts cannot be used here", text, account, own)
	}
	return name, nil
}

func checkName(name string) error {
	if strings.HasSuffix(name, ".fifo") {
		return awsfault.Errorf(invalidParameter, "Muster has no FIFO queues: leave .fifo out of the name %.100q", name)
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if name == "" || len(name) > 80 || strings.Trim(name, letters) != "" {
		return awsfault.Errorf(invalidParameter, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length: %.100q", name)
	}
	return nil
}

func missing() error {
	return awsfault.Errorf(notFound, "The specified queue does not exist.")
}

// away turns what the API server says into an answer that clients try again where that helps.
func away(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return &awsfault.Error{Code: invalidParameter, Message: err.Error(), Cause: err}
	}
	return &awsfault.Error{Code: "ServiceUnavailable", Status: 503, Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
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

// broken is an error of the store, which nobody but the log is told.
func broken(err error) error {
	return &awsfault.Error{Code: "InternalFailure", Status: 500, Message: "The messages of the queue cannot be read or written; the log of the service says why", Cause: err}
}

// find reads the queue of a URL.
func (q *Queues) find(ctx context.Context, call *awsfront.Call, url string) (*record, error) {
	name, err := nameOf(call, url)
	if err != nil {
		return nil, err
	}
	found, err := queues.Get(ctx, q.Management, queues.NameOf(name))
	return found, kept(err)
}

// targets is the queue of a URL as IAM is asked about it, for an action if that is not the call's. A missing queue has
// neither tags nor a policy.
func (q *Queues) targets(ctx context.Context, call *awsfront.Call, url, action string) ([]awsfront.Target, error) {
	name, err := nameOf(call, url)
	if err != nil {
		return nil, err
	}
	return q.target(ctx, call, name, action)
}

func (q *Queues) target(ctx context.Context, call *awsfront.Call, name, action string) ([]awsfront.Target, error) {
	t := awsfront.Target{Action: action, Resource: q.ARN(call, name)}
	found, err := queues.Get(ctx, q.Management, queues.NameOf(name))
	switch {
	case apierrors.IsNotFound(err):
		return []awsfront.Target{t}, nil
	case err != nil:
		return nil, away(err)
	}
	t.Policy, t.Conditions = found.Data.Policy, awsresource.ResourceTags(nil, found.Tags)
	return []awsfront.Target{t}, nil
}

// of is an About for inputs that name a queue by its URL.
func of[In any](q *Queues, url func(*In) string, action string) func(context.Context, *awsfront.Call, *In) ([]awsfront.Target, error) {
	return func(ctx context.Context, call *awsfront.Call, in *In) ([]awsfront.Target, error) {
		return q.targets(ctx, call, url(in), action)
	}
}
