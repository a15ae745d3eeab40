// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
)

// processes are those that can be suspended.
func processes() []string {
	return []string{"Launch", "Terminate", "AddToLoadBalancer", "AlarmNotification", "AZRebalance", "HealthCheck", "InstanceRefresh", "ReplaceUnhealthy", "ScheduledActions"}
}

// metrics are those that can be enabled.
func metrics() []string {
	return []string{
		"GroupMinSize", "GroupMaxSize", "GroupDesiredCapacity", "GroupInServiceInstances", "GroupPendingInstances", "GroupStandbyInstances", "GroupTerminatingInstances",
		"GroupTotalInstances", "GroupInServiceCapacity", "GroupPendingCapacity", "GroupStandbyCapacity", "GroupTerminatingCapacity", "GroupTotalCapacity",
		"WarmPoolDesiredCapacity", "WarmPoolWarmedCapacity", "WarmPoolPendingCapacity", "WarmPoolTerminatingCapacity", "WarmPoolTotalCapacity",
		"GroupAndWarmPoolDesiredCapacity", "GroupAndWarmPoolTotalCapacity",
	}
}

type processesInput struct {
	AutoScalingGroupName string
	ScalingProcesses     []string
}

func suspendProcesses(a *api) awsfront.Spec[processesInput, struct{}] {
	return a.processesAction(true)
}

func resumeProcesses(a *api) awsfront.Spec[processesInput, struct{}] {
	return a.processesAction(false)
}

func (a *api) processesAction(suspend bool) awsfront.Spec[processesInput, struct{}] {
	return awsfront.Spec[processesInput, struct{}]{
		About: aboutGroup(a, func(in *processesInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *processesInput) (*struct{}, error) {
			return nil, a.keepNames(ctx, in.AutoScalingGroupName, in.ScalingProcesses, processes(), suspend, func(s *v1alpha1.AutoScaling) *[]string { return &s.SuspendedProcesses })
		},
	}
}

// keepNames adds names to a list that is kept and read back, or takes them away. An empty list of names means all.
func (a *api) keepNames(ctx context.Context, name string, names, known []string, add bool, list func(*v1alpha1.AutoScaling) *[]string) error {
	for _, n := range names {
		if !slices.Contains(known, n) {
			return awsfault.Errorf(invalid, "%.64q is not valid: it must be one of %q", n, known)
		}
	}
	if len(names) == 0 {
		names = known
	}
	return a.change(ctx, name, func(g *group) error {
		kept := list(g.scaling())
		*kept = slices.DeleteFunc(*kept, func(n string) bool { return slices.Contains(names, n) })
		if add {
			*kept = append(*kept, names...)
			slices.Sort(*kept)
			*kept = slices.Compact(*kept)
		}
		return nil
	})
}

type enableMetricsInput struct {
	AutoScalingGroupName, Granularity string
	Metrics                           []string
}

func enableMetrics(a *api) awsfront.Spec[enableMetricsInput, struct{}] {
	return awsfront.Spec[enableMetricsInput, struct{}]{
		About: aboutGroup(a, func(in *enableMetricsInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *enableMetricsInput) (*struct{}, error) {
			if in.Granularity != "1Minute" {
				return nil, awsfault.Errorf(invalid, "The granularity %.40q is not valid: it must be 1Minute", in.Granularity)
			}
			return nil, a.keepNames(ctx, in.AutoScalingGroupName, in.Metrics, metrics(), true, func(s *v1alpha1.AutoScaling) *[]string { return &s.EnabledMetrics })
		},
	}
}

type disableMetricsInput struct {
	AutoScalingGroupName string
	Metrics              []string
}

func disableMetrics(a *api) awsfront.Spec[disableMetricsInput, struct{}] {
	return awsfront.Spec[disableMetricsInput, struct{}]{
		About: aboutGroup(a, func(in *disableMetricsInput) string { return in.AutoScalingGroupName }),
		Do: func(ctx context.Context, _ *awsfront.Call, in *disableMetricsInput) (*struct{}, error) {
			return nil, a.keepNames(ctx, in.AutoScalingGroupName, in.Metrics, metrics(), false, func(s *v1alpha1.AutoScaling) *[]string { return &s.EnabledMetrics })
		},
	}
}

// Actions about resources that an account never has.

type describeLaunchConfigurationsInput struct {
	LaunchConfigurationNames []string
	MaxRecords               *int32
	NextToken                string
}

type describeLaunchConfigurationsOutput struct{ LaunchConfigurations []struct{} }

func describeLaunchConfigurations() awsfront.Spec[describeLaunchConfigurationsInput, describeLaunchConfigurationsOutput] {
	return awsfront.Spec[describeLaunchConfigurationsInput, describeLaunchConfigurationsOutput]{
		Do: func(context.Context, *awsfront.Call, *describeLaunchConfigurationsInput) (*describeLaunchConfigurationsOutput, error) {
			return &describeLaunchConfigurationsOutput{[]struct{}{}}, nil
		},
	}
}

type describePoliciesInput struct {
	AutoScalingGroupName     string
	PolicyNames, PolicyTypes []string
	MaxRecords               *int32
	NextToken                string
}

type describePoliciesOutput struct{ ScalingPolicies []struct{} }

func describePolicies(a *api) awsfront.Spec[describePoliciesInput, describePoliciesOutput] {
	return awsfront.Spec[describePoliciesInput, describePoliciesOutput]{
		Do: func(ctx context.Context, _ *awsfront.Call, in *describePoliciesInput) (*describePoliciesOutput, error) {
			if in.AutoScalingGroupName != "" {
				if _, err := a.group(ctx, in.AutoScalingGroupName); err != nil {
					return nil, err
				}
			}
			return &describePoliciesOutput{[]struct{}{}}, nil
		},
	}
}
