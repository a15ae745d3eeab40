// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
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
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

// envNames says that this runs on a machine or in a pod.
const envNames = "MUSTER_LIVE_NAMES"

// TestServicesByTheirNames reaches every service as on AWS: no endpoint is set, so that the SDK takes the service's own
// name. The answers are for the other tests.
func TestServicesByTheirNames(t *testing.T) {
	if file := os.Getenv("AWS_CONFIG_FILE"); file != "" || os.Getenv("AWS_ENDPOINT_URL") != "" {
		t.Fatalf("the environment has an endpoint, or %q does", file)
	}
	c, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"sts": func() error {
			_, err := sts.NewFromConfig(c).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
			return err
		},
		"iam": func() error { _, err := iam.NewFromConfig(c).ListUsers(t.Context(), &iam.ListUsersInput{}); return err },
		"eks": func() error {
			_, err := eks.NewFromConfig(c).ListClusters(t.Context(), &eks.ListClustersInput{})
			return err
		},
		"eks, dual stack": func() error {
			_, err := eks.NewFromConfig(c, func(o *eks.Options) { o.EndpointOptions.UseDualStackEndpoint = aws.DualStackEndpointStateEnabled }).ListClusters(t.Context(), &eks.ListClustersInput{})
			return err
		},
		"ec2": func() error {
			_, err := ec2.NewFromConfig(c).DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
			return err
		},
		"autoscaling": func() error {
			_, err := autoscaling.NewFromConfig(c).DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{})
			return err
		},
		"ssm": func() error {
			_, err := ssm.NewFromConfig(c).GetParameters(t.Context(), &ssm.GetParametersInput{Names: []string{"x"}})
			return err
		},
		"sqs": func() error {
			_, err := sqs.NewFromConfig(c).ListQueues(t.Context(), &sqs.ListQueuesInput{})
			return err
		},
		"events": func() error {
			_, err := eventbridge.NewFromConfig(c).ListRules(t.Context(), &eventbridge.ListRulesInput{})
			return err
		},
		"cloudformation": func() error {
			_, err := cloudformation.NewFromConfig(c).ListStacks(t.Context(), &cloudformation.ListStacksInput{})
			return err
		},
		"tagging": func() error {
			_, err := resourcegroupstaggingapi.NewFromConfig(c).GetResources(t.Context(), &resourcegroupstaggingapi.GetResourcesInput{})
			return err
		},
		"elasticloadbalancing": func() error {
			_, err := elasticloadbalancing.NewFromConfig(c).DescribeLoadBalancers(t.Context(), &elasticloadbalancing.DescribeLoadBalancersInput{})
			return err
		},
		"elasticloadbalancingv2": func() error {
			_, err := elasticloadbalancingv2.NewFromConfig(c).DescribeLoadBalancers(t.Context(), &elasticloadbalancingv2.DescribeLoadBalancersInput{})
			return err
		},
		"fis": func() error {
			_, err := fis.NewFromConfig(c).ListExperiments(t.Context(), &fis.ListExperimentsInput{})
			return err
		},
		"pricing": func() error {
			_, err := pricing.NewFromConfig(c).GetProducts(t.Context(), &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2")})
			return err
		},
		"kms": func() error { _, err := kms.NewFromConfig(c).ListKeys(t.Context(), &kms.ListKeysInput{}); return err },
		"ecr": func() error {
			_, err := ecr.NewFromConfig(c).DescribeRepositories(t.Context(), &ecr.DescribeRepositoriesInput{})
			return err
		},
		"arc-zonal-shift": func() error {
			_, err := arczonalshift.NewFromConfig(c).ListZonalShifts(t.Context(), &arczonalshift.ListZonalShiftsInput{})
			return err
		},
		"elasticfilesystem": func() error {
			_, err := efs.NewFromConfig(c).DescribeFileSystems(t.Context(), &efs.DescribeFileSystemsInput{})
			return err
		},
		"logs": func() error {
			_, err := cloudwatchlogs.NewFromConfig(c).DescribeLogGroups(t.Context(), &cloudwatchlogs.DescribeLogGroupsInput{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := call()
			_, answered := errors.AsType[smithy.APIError](err)
			if err != nil && (!answered || name == "sts") {
				t.Error(err)
			}
		})
	}
}
