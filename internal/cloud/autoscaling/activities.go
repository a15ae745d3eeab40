// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/scalingplan"
	"muster.dev/muster/internal/machine/terminated"
	"muster.dev/muster/internal/plane/readiness"
)

// activity is a launch or a termination.
type activity struct {
	ActivityID, AutoScalingGroupName, AutoScalingGroupARN, AutoScalingGroupState string
	Cause, Description, Details, StatusCode, StatusMessage                       string
	StartTime, EndTime                                                           time.Time
	Progress                                                                     int32
}

type describeActivitiesInput struct {
	AutoScalingGroupName string
	ActivityIDs          []string
	IncludeDeletedGroups bool
	Filters              []ec2filter.Filter
	MaxRecords           *int32
	NextToken            string
}

type describeActivitiesOutput struct {
	Activities []activity
	NextToken  string
}

func describeActivities(a *api) awsfront.Spec[describeActivitiesInput, describeActivitiesOutput] {
	return awsfront.Spec[describeActivitiesInput, describeActivitiesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeActivitiesInput) (*describeActivitiesOutput, error) {
			filters, err := ec2filter.Rules{Names: []string{"Status"}, Exact: true}.Compile(in.Filters)
			if err != nil {
				return nil, asValidation(err)
			}
			all, known, err := a.activities(ctx, call, in.IncludeDeletedGroups)
			if err != nil {
				return nil, err
			}
			if name := in.AutoScalingGroupName; name != "" && !known[name] {
				return nil, awsfault.Errorf(invalid, "AutoScalingGroup name not found - AutoScalingGroup %.255s not found", name)
			}
			all = slices.DeleteFunc(all, func(one activity) bool {
				return in.AutoScalingGroupName != "" && one.AutoScalingGroupName != in.AutoScalingGroupName || len(in.ActivityIDs) > 0 && !slices.Contains(in.ActivityIDs, one.ActivityID) ||
					!filters.Match(ec2filter.Resource{Values: func(string) []string { return []string{one.StatusCode} }})
			})
			out := &describeActivitiesOutput{}
			out.Activities, out.NextToken, err = awsresource.Page(a.Account, call, []any{in.AutoScalingGroupName, in.ActivityIDs, in.IncludeDeletedGroups, in.Filters}, all, activity.key, in.MaxRecords, in.NextToken)
			return out, err
		},
	}
}

// key orders activities, the newest first.
func (a activity) key() string {
	const largest = 1 << 62
	return fmt.Sprintf("%019d %s", largest-a.StartTime.UnixNano(), a.ActivityID)
}

// activities are those of all groups, the newest first, and which groups there are.
func (a *api) activities(ctx context.Context, call *awsfront.Call, deleted bool) ([]activity, map[string]bool, error) {
	groups, err := a.groups(ctx)
	if err != nil {
		return nil, nil, err
	}
	gone, err := terminated.List(ctx, a.Management)
	if err != nil {
		return nil, nil, away(err)
	}
	var all []activity
	known := map[string]bool{}
	there := map[string]bool{}
	for _, g := range groups {
		known[g.name] = true
		arn := a.arn(call, g.uid(), g.name)
		for _, m := range g.machines {
			there[m.Name] = true
		}
		if g.own != nil {
			all = append(all, g.ownActivities(arn)...)
			continue
		}
		if failed := failing(g, arn); failed != nil {
			all = append(all, *failed)
		}
		for _, m := range g.machines {
			all = append(all, *launching(g.name, arn, m))
			if !m.DeletionTimestamp.IsZero() {
				all = append(all, *ending(g.name, arn, m, nil))
			}
		}
	}
	for i := range gone {
		m := &gone[i].Machine
		name, uid := memberOf(m)
		if name == "" || there[m.Name] || !known[name] && !deleted {
			continue
		}
		arn := a.arn(call, uid, name)
		for _, one := range []*activity{launching(name, arn, m), ending(name, arn, m, &gone[i].At.Time)} {
			if !known[name] {
				one.AutoScalingGroupState = "Deleted"
			}
			all = append(all, *one)
		}
	}
	if deleted {
		for _, one := range all {
			known[one.AutoScalingGroupName] = true
		}
	}
	slices.SortFunc(all, func(x, y activity) int { return cmp.Compare(x.key(), y.key()) })
	return all, known, nil
}

// memberOf is the group that a machine was of, and its UID; empty if it was of none.
func memberOf(m *v1alpha1.Machine) (name, uid string) {
	switch {
	case m.Spec.ScalingGroup != nil:
		return m.Spec.ScalingGroup.Name, string(m.Spec.ScalingGroup.UID)
	case m.Spec.NodeGroup != "" && m.Spec.NodeGroupUID != "":
		return v1alpha1.AutoScalingGroupName(m.Spec.NodeGroup, m.Spec.NodeGroupUID), string(m.Spec.NodeGroupUID)
	}
	return "", ""
}

// launching is the activity by which a machine was launched.
func launching(group, arn string, m *v1alpha1.Machine) *activity {
	one := &activity{
		ActivityID: scalingplan.ActivityID("launch", string(m.UID), m.Name), AutoScalingGroupName: group, AutoScalingGroupARN: arn, Description: "Launching a new EC2 instance: " + m.Name,
		Cause: cmp.Or(m.Annotations[v1alpha1.AnnotationLaunchCause], "An instance was started in response to a difference between desired and actual capacity."), Details: details(m),
		StartTime: m.CreationTimestamp.Time, StatusCode: "PreInService", Progress: 30,
	}
	if m.Status.ProviderID != "" {
		one.StatusCode, one.Progress, one.EndTime = "Successful", 100, m.LaunchedAt()
	} else if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		one.StatusMessage = ready.Message
	}
	return one
}

// ending is the activity by which a machine is terminated, or was at some time.
func ending(group, arn string, m *v1alpha1.Machine, at *time.Time) *activity {
	one := &activity{
		ActivityID: scalingplan.ActivityID("terminate", string(m.UID), m.Name), AutoScalingGroupName: group, AutoScalingGroupARN: arn, Description: "Terminating EC2 instance: " + m.Name,
		Cause: cmp.Or(m.Annotations[v1alpha1.AnnotationTerminationCause], "An instance was taken out of service in response to a request that deleted its machine."), Details: details(m),
		StatusCode: "InProgress", Progress: 50,
	}
	if m.DeletionTimestamp != nil {
		one.StartTime = m.DeletionTimestamp.Time
	}
	if at != nil {
		one.StatusCode, one.Progress, one.EndTime = "Successful", 100, *at
		if one.StartTime.IsZero() {
			one.StartTime = *at
		}
	}
	return one
}

// failing is the activity by which a group cannot launch a machine; nil if nothing keeps it.
func failing(g *group, arn string) *activity {
	obstacle := readiness.Obstacle(g.node)
	if obstacle == "" || int32(len(g.machines)) >= g.node.Spec.ScalingConfig.DesiredSize+g.node.Spec.WarmPoolSize() { //nolint:gosec // G115: at most 5,000
		return nil
	}
	ready := meta.FindStatusCondition(g.node.Status.Conditions, v1alpha1.ConditionReady)
	since := ready.LastTransitionTime.Time
	return &activity{
		ActivityID: scalingplan.ActivityID("fail", string(g.node.UID), since.String()), AutoScalingGroupName: g.name, AutoScalingGroupARN: arn, Description: "Launching a new EC2 instance.  Status Reason: " + obstacle,
		Cause: "An instance was to be started in response to a difference between desired and actual capacity.", StatusCode: "Failed", StatusMessage: obstacle, Progress: 100, StartTime: since, EndTime: since,
		Details: "{}",
	}
}

// details are where a machine is, as JSON.
func details(m *v1alpha1.Machine) string {
	raw, err := json.Marshal(map[string]string{"Subnet ID": string(m.Spec.SubnetID)})
	if err != nil {
		return "{}"
	}
	return string(raw)
}
