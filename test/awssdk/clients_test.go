// SPDX-License-Identifier: Apache-2.0

package awssdk

import (
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

func clients() []client {
	return []client{
		{service: "eks", make: func(config aws.Config) any { return eks.NewFromConfig(config) }},
		{service: "arc-zonal-shift", make: func(config aws.Config) any { return arczonalshift.NewFromConfig(config) }},
		{service: "autoscaling", make: func(config aws.Config) any { return autoscaling.NewFromConfig(config) }},
		{service: "cloudformation", make: func(config aws.Config) any { return cloudformation.NewFromConfig(config) }},
		{service: "ec2", make: func(config aws.Config) any { return ec2.NewFromConfig(config) }},
		{service: "ssm", make: func(config aws.Config) any { return ssm.NewFromConfig(config) }},
		{service: "kms", make: func(config aws.Config) any { return kms.NewFromConfig(config) }},
		{service: "ecr", make: func(config aws.Config) any { return ecr.NewFromConfig(config) }},
		{service: "elasticfilesystem", make: func(config aws.Config) any { return efs.NewFromConfig(config) }},
		{service: "logs", make: func(config aws.Config) any { return cloudwatchlogs.NewFromConfig(config) }},
		{service: "sqs", make: func(config aws.Config) any {
			return sqs.NewFromConfig(config, func(o *sqs.Options) { o.DisableMessageChecksumValidation = true })
		}}, // of messages that were never sent
		{service: "events", make: func(config aws.Config) any { return eventbridge.NewFromConfig(config) }},
		{service: "pricing", make: func(config aws.Config) any { return pricing.NewFromConfig(config) }},
		{service: "fis", make: func(config aws.Config) any { return fis.NewFromConfig(config) }},
		{service: "tagging", make: func(config aws.Config) any { return resourcegroupstaggingapi.NewFromConfig(config) }},
		{service: "elasticloadbalancing", make: func(config aws.Config) any { return elasticloadbalancing.NewFromConfig(config) }},
		{service: "elasticloadbalancingv2", make: func(config aws.Config) any { return elasticloadbalancingv2.NewFromConfig(config) }},
		{service: "sts", make: func(config aws.Config) any { return sts.NewFromConfig(config) }},
		{service: "iam", make: func(config aws.Config) any { return iam.NewFromConfig(config) }, unions: map[reflect.Type]any{
			reflect.TypeFor[types.PolicyIdentifier](): &types.PolicyIdentifierMemberPolicyArn{},
		}},
	}
}
