// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"errors"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

const service = "logs"

// Config is what the actions need.
type Config struct {
	awsresource.Account
	// Key says why an account cannot use a KMS key. If it is nil there are no keys.
	Key func(ctx context.Context, account, arn string) error
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
	a := &api{c}

	awsfront.Register(f, service, "CreateLogGroup", a.createLogGroup())
	awsfront.Register(f, service, "DescribeLogGroups", a.describeLogGroups())
	awsfront.Register(f, service, "DeleteLogGroup", a.deleteLogGroup())

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
	return nil
}
