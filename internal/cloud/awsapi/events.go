// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"time"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/queuestore"
	"muster.dev/muster/internal/cloud/sqs"
	"muster.dev/muster/internal/iam/identityservice"
)

// registerEvents adds the actions of SQS.
func registerEvents(front *awsfront.Front, account awsresource.Account, c Config) error {
	queues, err := sqs.New(sqs.Config{
		Account: account, Store: queuestore.New(c.Queues, time.Now), Now: time.Now,
		Bind: func(policy string) (string, error) { return identityservice.BindPolicy(c.Identity, policy) }, Show: func(policy string) string { return identityservice.ShowPolicy(c.Identity, policy) },
	})
	if err != nil {
		return err
	}
	queues.Register(front)
	if c.Run != nil {
		c.Run(func(ctx context.Context) { queues.Sweep(ctx, c.Log) })
	}
	return nil
}
