// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cloud/keylock"
)

const service = "autoscaling"

// Config is what the actions need.
type Config struct {
	// Management reads and writes the management plane. It may answer describing actions from memory, which has what
	// was written before.
	Management client.Client
	// Pages seals the tokens of lists.
	Pages  *nexttoken.Sealer
	Region string
}

// api has the actions.
type api struct {
	Config
	region region.Region
	locks  keylock.Locks
}

// Register adds the actions to the front.
func Register(f *awsfront.Front, c Config) error {
	if c.Management == nil || c.Pages == nil {
		return errors.New("the actions of Auto Scaling need a client of the management plane and a sealer of pages")
	}
	own, err := region.Find(c.Region)
	if err != nil {
		return fmt.Errorf("the actions of Auto Scaling: %w", err)
	}
	a := &api{Config: c, region: own}

	awsfront.Register(f, service, "DescribeAutoScalingGroups", a.describeGroups())
	awsfront.Register(f, service, "DescribeAutoScalingInstances", a.describeInstances())
	awsfront.Register(f, service, "DescribeScalingActivities", a.describeActivities())
	awsfront.Register(f, service, "SetDesiredCapacity", a.setDesiredCapacity())
	awsfront.Register(f, service, "UpdateAutoScalingGroup", a.updateGroup())
	awsfront.Register(f, service, "TerminateInstanceInAutoScalingGroup", a.terminateInstance())
	awsfront.Register(f, service, "SetInstanceProtection", a.setInstanceProtection())

	awsfront.Register(f, service, "CreateOrUpdateTags", a.createOrUpdateTags())
	awsfront.Register(f, service, "DeleteTags", a.deleteTags())
	awsfront.Register(f, service, "DescribeTags", a.describeTags())

	awsfront.Register(f, service, "SuspendProcesses", a.suspendProcesses())
	awsfront.Register(f, service, "ResumeProcesses", a.resumeProcesses())
	awsfront.Register(f, service, "EnableMetricsCollection", a.enableMetrics())
	awsfront.Register(f, service, "DisableMetricsCollection", a.disableMetrics())

	awsfront.Register(f, service, "DescribeLaunchConfigurations", a.describeLaunchConfigurations())
	awsfront.Register(f, service, "DescribeLifecycleHooks", a.describeLifecycleHooks())
	awsfront.Register(f, service, "DescribePolicies", a.describePolicies())
	awsfront.Register(f, service, "DescribeInstanceRefreshes", a.describeInstanceRefreshes())
	return nil
}
