// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
)

type createInput struct {
	QueueName  string
	Attributes map[string]string
	Tags       map[string]string
}

type urlOutput struct{ QueueURL string }

func (q *Queues) createQueue() awsfront.Spec[createInput, urlOutput] {
	return awsfront.Spec[createInput, urlOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *createInput) ([]awsfront.Target, error) {
			return []awsfront.Target{{Resource: q.ARN(call, in.QueueName), Conditions: awsresource.RequestTags(nil, awstag.Sorted(in.Tags))}}, checkName(in.QueueName)
		},
		Do: q.doCreate,
	}
}

// doCreate makes a queue, or finds the one of the name that has the attributes of the request.
func (q *Queues) doCreate(ctx context.Context, call *awsfront.Call, in *createInput) (*urlOutput, error) {
	tags, err := awstag.Read(Service, awstag.Sorted(in.Tags))
	if err != nil {
		return nil, err
	}
	r := &record{ID: queues.NameOf(in.QueueName), Name: in.QueueName, Tags: awsresource.KeptTags(tags)}
	r.Data.Messages, r.Data.Modified = uuid.NewString(), call.Now.Unix()
	if err := q.set(&r.Data, in.Attributes); err != nil {
		return nil, err
	}
	err = queues.Create(ctx, q.Management, r)
	if apierrors.IsAlreadyExists(err) {
		err = q.same(ctx, r, in.Attributes)
	}
	if err != nil {
		return nil, kept(err)
	}
	return &urlOutput{q.url(call.Caller.Account(), in.QueueName)}, nil
}

// same refuses a request to make a queue that is there with other attributes.
func (q *Queues) same(ctx context.Context, want *record, attributes map[string]string) error {
	found, err := queues.Get(ctx, q.Management, want.ID)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		equal := found.Data.get(name) == want.Data.get(name)
		switch name {
		case attributePolicy:
			equal = found.Data.Policy == want.Data.Policy
		case attributeEncrypted:
			equal = found.Data.encrypted() == want.Data.encrypted()
		}
		if !equal {
			return awsfault.Errorf(nameExists, "A queue already exists with the same name and a different value for attribute %s", name)
		}
	}
	return nil
}

func (q *Queues) deleteQueue() awsfront.Spec[about, struct{}] {
	return awsfront.Spec[about, struct{}]{
		About: of(q, func(in *about) string { return in.QueueURL }, ""),
		Do: func(ctx context.Context, call *awsfront.Call, in *about) (*struct{}, error) {
			found, err := q.find(ctx, call, in.QueueURL)
			if err != nil {
				return nil, err
			}
			if err := queues.Delete(ctx, q.Management, found.ID); err != nil {
				return nil, kept(err)
			}
			if err := q.Store.Remove(found.Data.Messages); err != nil {
				return nil, broken(err)
			}
			return nil, nil
		},
	}
}

func (q *Queues) purgeQueue() awsfront.Spec[about, struct{}] {
	return awsfront.Spec[about, struct{}]{
		About: of(q, func(in *about) string { return in.QueueURL }, ""),
		Do: func(ctx context.Context, call *awsfront.Call, in *about) (*struct{}, error) {
			found, err := q.find(ctx, call, in.QueueURL)
			if err != nil {
				return nil, err
			}
			if err := q.Store.Purge(found.Data.Messages); err != nil {
				return nil, broken(err)
			}
			return nil, nil
		},
	}
}

type getURLInput struct{ QueueName, QueueOwnerAWSAccountID string }

func (q *Queues) getQueueURL() awsfront.Spec[getURLInput, urlOutput] {
	return awsfront.Spec[getURLInput, urlOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *getURLInput) ([]awsfront.Target, error) {
			if owner, own := in.QueueOwnerAWSAccountID, call.Caller.Account(); owner != "" && owner != own {
				return nil, awsfault.Errorf(accessDenied, "The queue %.80s is of the account %.20s, and the caller is of %s: queues of other accounts cannot be used here", in.QueueName, owner, own)
			}
			if err := checkName(in.QueueName); err != nil {
				return nil, err
			}
			return q.target(ctx, call, in.QueueName, "")
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *getURLInput) (*urlOutput, error) {
			url := q.url(call.Caller.Account(), in.QueueName)
			if _, err := q.find(ctx, call, url); err != nil {
				return nil, err
			}
			return &urlOutput{url}, nil
		},
	}
}

type listInput struct {
	QueueNamePrefix string
	MaxResults      *int32
	NextToken       string
}

type listOutput struct {
	QueueUrls []string
	NextToken string
}

func (q *Queues) listQueues() awsfront.Spec[listInput, listOutput] {
	return awsfront.Spec[listInput, listOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *listInput) (*listOutput, error) {
			asked, err := awsresource.AskedPage(q.Account, call, in.QueueNamePrefix, in.MaxResults, in.NextToken)
			if err != nil {
				return nil, err
			}
			all, err := queues.List(ctx, q.Management)
			if err != nil {
				return nil, away(err)
			}
			var names []string
			for i := range all {
				if strings.HasPrefix(all[i].Name, in.QueueNamePrefix) {
					names = append(names, all[i].Name)
				}
			}
			page, next, err := awsresource.Cut(asked, names, awsresource.Itself)
			out := &listOutput{QueueUrls: []string{}, NextToken: next}
			for _, name := range page {
				out.QueueUrls = append(out.QueueUrls, q.url(call.Caller.Account(), name))
			}
			return out, err
		},
	}
}
