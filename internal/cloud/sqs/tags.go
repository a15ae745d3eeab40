// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
)

// tagged are the queues with their tags.
func (q *Queues) tagged(ctx context.Context, call *awsfront.Call) ([]awsresource.Tagged, error) {
	return queues.Tagged(ctx, q.Management, Service+":queue", func(r *record) string { return q.ARN(call, r.Name) })
}

type tagInput struct {
	QueueURL string
	Tags     map[string]string
}

func (q *Queues) tagQueue() awsfront.Spec[tagInput, struct{}] {
	return awsfront.Spec[tagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *tagInput) ([]awsfront.Target, error) {
			targets, err := q.targets(ctx, call, in.QueueURL, "")
			if err == nil {
				targets[0].Conditions = awsresource.RequestTags(targets[0].Conditions, awstag.Sorted(in.Tags))
			}
			return targets, err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *tagInput) (*struct{}, error) {
			set, err := awstag.Read(Service, awstag.Sorted(in.Tags))
			if err != nil {
				return nil, err
			}
			return nil, q.change(ctx, call, in.QueueURL, func(r *record) error {
				all, err := awstag.Merge(Service, awsresource.PlainTags(r.Tags), set)
				r.Tags = awsresource.KeptTags(all)
				return err
			})
		},
	}
}

type untagInput struct {
	QueueURL string
	TagKeys  []string
}

func (q *Queues) untagQueue() awsfront.Spec[untagInput, struct{}] {
	return awsfront.Spec[untagInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *untagInput) ([]awsfront.Target, error) {
			targets, err := q.targets(ctx, call, in.QueueURL, "")
			if err == nil && len(in.TagKeys) > 0 {
				if targets[0].Conditions == nil {
					targets[0].Conditions = map[string][]string{}
				}
				targets[0].Conditions["aws:TagKeys"] = in.TagKeys
			}
			return targets, err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *untagInput) (*struct{}, error) {
			return nil, q.change(ctx, call, in.QueueURL, func(r *record) error {
				left, err := awstag.Remove(Service, awsresource.PlainTags(r.Tags), awsresource.Removals(in.TagKeys))
				r.Tags = awsresource.KeptTags(left)
				return err
			})
		},
	}
}

type tagsOutput struct{ Tags map[string]string }

func (q *Queues) listQueueTags() awsfront.Spec[about, tagsOutput] {
	return awsfront.Spec[about, tagsOutput]{
		About: of(q, func(in *about) string { return in.QueueURL }, ""),
		Do: func(ctx context.Context, call *awsfront.Call, in *about) (*tagsOutput, error) {
			found, err := q.find(ctx, call, in.QueueURL)
			if err != nil {
				return nil, err
			}
			return &tagsOutput{awsresource.PlainTags(found.Tags)}, nil
		},
	}
}
