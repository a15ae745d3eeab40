// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

// service is the name of EventBridge in ARNs, and at the front. queues is that of the service of targets.
const (
	service = "events"
	queues  = "sqs"
)

// Principal is EventBridge as policies name it.
const Principal = "events.amazonaws.com"

// ErrRefused is the error of Deliver for a queue that takes nothing from a rule.
var ErrRefused = errors.New("the queue takes nothing from the rule")

// Config is what the actions need.
type Config struct {
	awsresource.Account
	// AccountID is the account whose instances the bus hears of.
	AccountID string
	// Deliver sends a message to a queue for a rule; ErrRefused if the queue does not take it.
	Deliver func(ctx context.Context, to, rule arn.ARN, body string) error
	// State is the state of an instance in EC2's words.
	State func(*v1alpha1.Machine) string
	Log   *slog.Logger
	Now   func() time.Time
}

// Bus has the actions, and sends events.
type Bus struct {
	Config
	// failed is how often an event of an instance could not be sent, by the event. It is of Watch alone.
	failed map[string]int
}

// New checks what the actions need.
func New(c Config) (*Bus, error) {
	if c.Management == nil || c.Pages == nil || c.Region == "" || c.AccountID == "" || c.Deliver == nil || c.State == nil || c.Now == nil {
		return nil, errors.New("the actions of EventBridge need a client of the management plane, a sealer of pages, a region, an account, queues, states of instances and a clock")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Bus{Config: c}, nil
}

// Register adds the actions to the front.
func (b *Bus) Register(f *awsfront.Front) {
	awsfront.Register(f, service, "PutRule", b.putRule())
	awsfront.Register(f, service, "DescribeRule", b.describeRule())
	awsfront.Register(f, service, "ListRules", b.listRules())
	awsfront.Register(f, service, "EnableRule", b.switchRule(enabled))
	awsfront.Register(f, service, "DisableRule", b.switchRule(disabled))
	awsfront.Register(f, service, "DeleteRule", b.deleteRule())

	awsfront.Register(f, service, "PutTargets", b.putTargets())
	awsfront.Register(f, service, "RemoveTargets", b.removeTargets())
	awsfront.Register(f, service, "ListTargetsByRule", b.listTargets())

	awsfront.Register(f, service, "TagResource", b.tag())
	awsfront.Register(f, service, "UntagResource", b.untag())
	awsfront.Register(f, service, "ListTagsForResource", b.listTags())

	b.TagSources.Add(service, func(ctx context.Context, call *awsfront.Call) ([]awsresource.Tagged, error) {
		return rules.Tagged(ctx, b.Management, service+":rule", func(r *awsrecord.Record[rule]) string { return b.arn(call, r.Name) })
	})

	awsfront.Register(f, service, "PutEvents", b.putEvents())
	awsfront.Register(f, service, "TestEventPattern", b.testPattern())
}
