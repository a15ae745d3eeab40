// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"errors"
	"fmt"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/keylock"
	"muster.dev/muster/internal/cloud/scalinglaunch"
)

const service = "autoscaling"

// api has the actions.
type api struct {
	awsresource.Account
	launcher Launcher
	region   region.Region
	locks    keylock.Locks
}

// Launcher is EC2, which launches instances of launch templates.
type Launcher interface {
	scalinglaunch.Launcher
	// Template reads a launch template by its id or its name.
	Template(ctx context.Context, id, name string) (*v1alpha1.LaunchTemplate, error)
	// About are the questions to IAM about a launch, those that RunInstances asks.
	About(ctx context.Context, call *awsfront.Call, o scalinglaunch.Order) ([]awsfront.Target, error)
}

// Register adds the actions to the front.
func Register(f *awsfront.Front, account awsresource.Account, launcher Launcher) error {
	if account.Management == nil || account.Pages == nil || launcher == nil {
		return errors.New("the actions of Auto Scaling need a client of the management plane, a sealer of pages and a launcher")
	}
	own, err := region.Find(account.Region)
	if err != nil {
		return fmt.Errorf("the actions of Auto Scaling: %w", err)
	}
	a := &api{Account: account, region: own, launcher: launcher}

	awsfront.Register(f, service, "CreateAutoScalingGroup", createGroup(a))
	awsfront.Register(f, service, "DeleteAutoScalingGroup", deleteGroup(a))
	awsfront.Register(f, service, "EnterStandby", enterStandby(a))
	awsfront.Register(f, service, "ExitStandby", exitStandby(a))
	awsfront.Register(f, service, "AttachInstances", attachInstances(a))
	awsfront.Register(f, service, "DetachInstances", detachInstances(a))
	awsfront.Register(f, service, "SetInstanceHealth", setInstanceHealth(a))

	awsfront.Register(f, service, "PutWarmPool", putWarmPool(a))
	awsfront.Register(f, service, "DescribeWarmPool", describeWarmPool(a))
	awsfront.Register(f, service, "DeleteWarmPool", deleteWarmPool(a))

	awsfront.Register(f, service, "PutScheduledUpdateGroupAction", putScheduledAction(a))
	awsfront.Register(f, service, "BatchPutScheduledUpdateGroupAction", batchPutScheduled(a))
	awsfront.Register(f, service, "DeleteScheduledAction", deleteScheduledAction(a))
	awsfront.Register(f, service, "BatchDeleteScheduledAction", batchDeleteScheduled(a))
	awsfront.Register(f, service, "DescribeScheduledActions", describeScheduledActions(a))

	awsfront.Register(f, service, "PutLifecycleHook", putLifecycleHook(a))
	awsfront.Register(f, service, "DeleteLifecycleHook", deleteLifecycleHook(a))
	awsfront.Register(f, service, "CompleteLifecycleAction", completeLifecycleAction(a))
	awsfront.Register(f, service, "RecordLifecycleActionHeartbeat", recordHeartbeat(a))

	awsfront.Register(f, service, "StartInstanceRefresh", startInstanceRefresh(a))
	awsfront.Register(f, service, "CancelInstanceRefresh", cancelInstanceRefresh(a))
	awsfront.Register(f, service, "RollbackInstanceRefresh", rollbackInstanceRefresh(a))

	awsfront.Register(f, service, "DescribeAutoScalingGroups", describeGroups(a))
	awsfront.Register(f, service, "DescribeAutoScalingInstances", describeInstances(a))
	awsfront.Register(f, service, "DescribeScalingActivities", describeActivities(a))
	awsfront.Register(f, service, "SetDesiredCapacity", setDesiredCapacity(a))
	awsfront.Register(f, service, "UpdateAutoScalingGroup", updateGroup(a))
	awsfront.Register(f, service, "TerminateInstanceInAutoScalingGroup", terminateInstance(a))
	awsfront.Register(f, service, "SetInstanceProtection", setInstanceProtection(a))

	awsfront.Register(f, service, "CreateOrUpdateTags", createOrUpdateTags(a))
	awsfront.Register(f, service, "DeleteTags", deleteTags(a))
	awsfront.Register(f, service, "DescribeTags", describeTags(a))

	awsfront.Register(f, service, "SuspendProcesses", suspendProcesses(a))
	awsfront.Register(f, service, "ResumeProcesses", resumeProcesses(a))
	awsfront.Register(f, service, "EnableMetricsCollection", enableMetrics(a))
	awsfront.Register(f, service, "DisableMetricsCollection", disableMetrics(a))

	awsfront.Register(f, service, "DescribeLaunchConfigurations", describeLaunchConfigurations())
	awsfront.Register(f, service, "DescribeLifecycleHooks", describeLifecycleHooks(a))
	awsfront.Register(f, service, "DescribePolicies", describePolicies(a))
	awsfront.Register(f, service, "DescribeInstanceRefreshes", describeInstanceRefreshes(a))
	return nil
}
