// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	awsaccount "muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/instance"
	"muster.dev/muster/internal/cloud/events"
	"muster.dev/muster/internal/cloud/fis"
	"muster.dev/muster/internal/cloud/queuestore"
	"muster.dev/muster/internal/cloud/sqs"
	"muster.dev/muster/internal/iam/identityservice"
)

// registerEvents adds the actions of SQS, EventBridge and FIS, has the bus watch instances, and brings experiments forward.
func registerEvents(front *awsfront.Front, account awsresource.Account, c Config) error {
	queues, err := sqs.New(sqs.Config{
		Account: account, Store: queuestore.New(c.Queues, time.Now), Now: time.Now,
		Bind: func(policy string) (string, error) { return identityservice.BindPolicy(c.Identity, policy) }, Show: func(policy string) string { return identityservice.ShowPolicy(c.Identity, policy) },
	})
	if err != nil {
		return err
	}
	queues.Register(front)
	bus, err := events.New(events.Config{Account: account, AccountID: awsaccount.DefaultID, Deliver: deliver(queues), State: instance.StateName, Log: c.Log, Now: time.Now})
	if err != nil {
		return err
	}
	bus.Register(front)
	experiments, err := fis.New(fis.Config{Account: account, AccountID: awsaccount.DefaultID, Role: roleOf(c.Identity), State: instance.StateName, Log: c.Log, Now: time.Now})
	if err != nil {
		return err
	}
	experiments.Register(front)
	if c.Run != nil {
		c.Run(func(ctx context.Context) { queues.Sweep(ctx, c.Log) })
		c.Run(bus.Watch)
		c.Run(experiments.Watch)
	}
	return nil
}

// roleOf asks IAM about the roles of experiments.
func roleOf(identity *identityservice.Service) fis.Role {
	return func(ctx context.Context, use fis.Use) error {
		return identityservice.CheckRole(ctx, identity, identityservice.RoleOfService{
			Role: use.Role, Service: fis.Principal, Source: use.Experiment, Action: use.Action, Resource: use.Resource, Conditions: use.Conditions,
		})
	}
}

// deliver has a rule's message sent by EventBridge.
func deliver(queues *sqs.Queues) func(ctx context.Context, to, rule arn.ARN, body string) error {
	return func(ctx context.Context, to, rule arn.ARN, body string) error {
		err := queues.Deliver(ctx, to, sqs.From{Principal: events.Principal, ARN: rule}, body)
		if errors.Is(err, sqs.ErrRefused) {
			return fmt.Errorf("%w: %w", events.ErrRefused, err)
		}
		return err
	}
}
