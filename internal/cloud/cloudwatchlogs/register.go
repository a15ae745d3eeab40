// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"errors"
	"log/slog"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/platform/lru"
)

const service = "logs"

// Config is what the actions need.
type Config struct {
	awsresource.Account
	// Key says why an account cannot use a KMS key. If it is nil there are no keys.
	Key func(ctx context.Context, account, arn string) error
	// Logs is the log store. If it is nil there is none, and no event is taken.
	Logs Logs
	// Run runs a function until the service ends. If it is nil no query is answered, and no retention enforced.
	Run func(func(context.Context))
	Log *slog.Logger
}

// api has the actions.
type api struct{ Config }

// Register adds the actions to the front.
func Register(f *awsfront.Front, c Config) error {
	if c.Management == nil || c.Pages == nil || c.Region == "" {
		return errors.New("the actions of CloudWatch Logs need a client of the management plane, a sealer of pages and a region")
	}
	if c.Key == nil {
		c.Key = func(context.Context, string, string) error { return errors.New("there are no keys") }
	}
	if c.Logs == nil {
		c.Logs = without{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	a := &api{c}
	s := streams{a}
	e, p, q := events{s}, &puts{streams: s, answered: lru.New[string, int](mostAnswered)}, newQueries(a)

	awsfront.Register(f, service, "CreateLogGroup", a.createLogGroup())
	awsfront.Register(f, service, "DescribeLogGroups", a.describeLogGroups())
	awsfront.Register(f, service, "DeleteLogGroup", a.deleteLogGroup())

	awsfront.Register(f, service, "CreateLogStream", s.create())
	awsfront.Register(f, service, "DescribeLogStreams", s.describe())
	awsfront.Register(f, service, "DeleteLogStream", s.delete())

	awsfront.Register(f, service, "PutLogEvents", p.put())
	awsfront.Register(f, service, "GetLogEvents", e.get())
	awsfront.Register(f, service, "FilterLogEvents", e.filter())

	awsfront.Register(f, service, "StartQuery", q.start())
	awsfront.Register(f, service, "GetQueryResults", q.results())
	awsfront.Register(f, service, "StopQuery", q.stop())
	awsfront.Register(f, service, "DescribeQueries", q.describe())

	awsfront.Register(f, service, "PutRetentionPolicy", a.putRetentionPolicy())
	awsfront.Register(f, service, "DeleteRetentionPolicy", a.deleteRetentionPolicy())
	awsfront.Register(f, service, "PutLogGroupDeletionProtection", a.putDeletionProtection())
	awsfront.Register(f, service, "AssociateKmsKey", a.associateKey())
	awsfront.Register(f, service, "DisassociateKmsKey", a.disassociateKey())

	awsfront.Register(f, service, "ListTagsForResource", a.listTags())
	awsfront.Register(f, service, "TagResource", a.tag())
	awsfront.Register(f, service, "UntagResource", a.untag())
	awsfront.Register(f, service, "ListTagsLogGroup", a.listTagsByName())
	awsfront.Register(f, service, "TagLogGroup", a.tagByName())
	awsfront.Register(f, service, "UntagLogGroup", a.untagByName())
	c.TagSources.Add(service, a.tagged)
	if c.Run != nil {
		c.Run(a.retain)
		for range atOnce {
			c.Run(q.work)
		}
	}
	return nil
}
