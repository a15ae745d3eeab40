// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"errors"
	"fmt"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/keylock"
)

const service = "autoscaling"

// api has the actions.
type api struct {
	awsresource.Account
	region region.Region
	locks  keylock.Locks
}

// Register adds the actions to the front.
func Register(f *awsfront.Front, account awsresource.Account) error {
	if account.Management == nil || account.Pages == nil {
		return errors.New("the actions of Auto Scaling need a client of the management plane and a sealer of pages")
	}
	own, err := region.Find(account.Region)
	if err != nil {
		return fmt.Errorf("the actions of Auto Scaling: %w", err)
	}
	a := &api{Account: account, region: own}

	awsfront.Register(f, service, "DescribeAutoScalingGroups", a.describeGroups())
	awsfront.Register(f, service, "DescribeAutoScalingInstances", a.describeInstances())
	awsfront.Register(f, service, "DescribeScalingActivities", a.describeActivities())
	awsfront.Register(f, service, "SetDesiredCapacity", a.setDesiredCapacity())
	awsfront.Register(f, service, "UpdateAutoScalingGroup", a.updateGroup())
	awsfront.Register(f, service, "TerminateInstanceInAutoScalingGroup", a.terminateInstance())
	awsfront.Register(f, service, "SetInstanceProtection", a.setInstanceProtection())

	awsfront.Register(f, service, "PutWarmPool", a.putWarmPool())
	awsfront.Register(f, service, "DescribeWarmPool", a.describeWarmPool())
	awsfront.Register(f, service, "DeleteWarmPool", a.deleteWarmPool())

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
