// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/queuestore"
)

// Service is the name of SQS in ARNs, and at the front.
const Service = "sqs"

// Config is what the actions need.
type Config struct {
	awsresource.Account
	// Store has the messages.
	Store *queuestore.Store
	// Bind puts the unique ids of users and roles into the policy of a queue, in the place of their names; Show is the
	// reverse. Errors of Bind say what is wrong with the policy.
	Bind func(policy string) (string, error)
	Show func(policy string) string
	Now  func() time.Time
}

// Queues has the actions.
type Queues struct {
	Config
	polls polls
}

// New checks what the actions need.
func New(c Config) (*Queues, error) {
	if c.Management == nil || c.Pages == nil || c.Region == "" || c.Store == nil || c.Bind == nil || c.Show == nil || c.Now == nil {
		return nil, errors.New("the actions of SQS need a client of the management plane, a sealer of pages, a region, a store of messages, a binder of policies and a clock")
	}
	return &Queues{Config: c}, nil
}

// Register adds the actions to the front.
func (q *Queues) Register(f *awsfront.Front) {
	awsfront.Register(f, Service, "CreateQueue", q.createQueue())
	awsfront.Register(f, Service, "DeleteQueue", q.deleteQueue())
	awsfront.Register(f, Service, "PurgeQueue", q.purgeQueue())
	awsfront.Register(f, Service, "GetQueueUrl", q.getQueueURL())
	awsfront.Register(f, Service, "ListQueues", q.listQueues())
	awsfront.Register(f, Service, "GetQueueAttributes", q.getQueueAttributes())
	awsfront.Register(f, Service, "SetQueueAttributes", q.setQueueAttributes())

	awsfront.Register(f, Service, "TagQueue", q.tagQueue())
	awsfront.Register(f, Service, "UntagQueue", q.untagQueue())
	awsfront.Register(f, Service, "ListQueueTags", q.listQueueTags())
	q.TagSources.Add(Service, q.tagged)

	awsfront.Register(f, Service, "SendMessage", q.sendMessage())
	awsfront.Register(f, Service, "SendMessageBatch", q.sendMessageBatch())
	awsfront.Register(f, Service, "ReceiveMessage", q.receiveMessage())
	awsfront.Register(f, Service, "DeleteMessage", q.deleteMessage())
	awsfront.Register(f, Service, "DeleteMessageBatch", q.deleteMessageBatch())
	awsfront.Register(f, Service, "ChangeMessageVisibility", q.changeVisibility())
}

// Sweep removes the messages of queues that are not there any more: a crash may have come between a queue's record and
// its messages. A failure is logged, and the next start of the service tries again.
func (q *Queues) Sweep(ctx context.Context, log *slog.Logger) {
	err := q.Store.Sweep(func() (map[string]bool, error) {
		all, err := queues.List(ctx, q.Management)
		there := map[string]bool{}
		for i := range all {
			there[all[i].Data.Messages] = true
		}
		return there, err
	})
	if err != nil && ctx.Err() == nil {
		log.Warn("the messages of deleted queues were not removed", "error", err)
	}
}
