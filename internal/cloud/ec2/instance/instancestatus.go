// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"slices"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// instanceStatus is the health of an instance. Nobody but the instance's own Node knows more of it than that it runs.
type instanceStatus struct {
	InstanceID         string
	AvailabilityZone   string        `filter:"availability-zone"`
	AvailabilityZoneID string        `filter:"availability-zone-id"`
	InstanceState      instanceState `filter:""`
	InstanceStatus     statusSummary `filter:"instance-status."`
	SystemStatus       statusSummary `filter:"system-status."`
	Events             []struct{}

	tags map[string]string
	_    bool `filter:"operator.managed"`
}

type statusSummary struct {
	Status  string         `filter:"status"`
	Details []statusDetail `filter:""`
}

type statusDetail struct {
	Name   string
	Status string `filter:"reachability"`
}

type describeInstanceStatusInput struct {
	ec2resource.Paged
	InstanceIDs                                  []string
	IncludeAllInstances, IncludeManagedResources bool
}

type describeInstanceStatusOutput struct {
	InstanceStatuses []instanceStatus
	NextToken        string
}

func (a *Actions) describeInstanceStatus() awsfront.Spec[describeInstanceStatusInput, describeInstanceStatusOutput] {
	return awsfront.Spec[describeInstanceStatusInput, describeInstanceStatusOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeInstanceStatusInput) (*describeInstanceStatusOutput, error) {
			instances, err := a.instances(ctx, call)
			if err != nil {
				return nil, err
			}
			all := make([]instanceStatus, 0, len(instances))
			for i := range instances {
				s := statusOf(&instances[i])
				if s.InstanceState == stateRunning || in.IncludeAllInstances || slices.Contains(in.InstanceIDs, s.InstanceID) {
					all = append(all, s)
				}
			}
			out := &describeInstanceStatusOutput{}
			out.InstanceStatuses, out.NextToken, err = ec2resource.Choose(a.ec2, call, statusNoun(), all, in.InstanceIDs, in.Paged)
			if !in.IncludeAllInstances {
				out.InstanceStatuses = slices.DeleteFunc(out.InstanceStatuses, func(s instanceStatus) bool { return s.InstanceState != stateRunning })
			}
			return out, err
		},
	}
}

func statusOf(i *instance) instanceStatus {
	s := instanceStatus{
		InstanceID: i.InstanceID, AvailabilityZone: i.Placement.AvailabilityZone, AvailabilityZoneID: i.Placement.AvailabilityZoneID,
		InstanceState: i.State, Events: []struct{}{}, tags: awsresource.TagMap(i.Tags),
	}
	switch i.State {
	case stateRunning:
		s.InstanceStatus = statusSummary{"ok", []statusDetail{{"reachability", "passed"}}}
	case statePending:
		s.InstanceStatus = statusSummary{"initializing", []statusDetail{{"reachability", "initializing"}}}
	default:
		s.InstanceStatus = statusSummary{"not-applicable", []statusDetail{}}
	}
	s.SystemStatus = s.InstanceStatus
	return s
}

func statusNoun() ec2resource.Noun[instanceStatus] {
	return ec2resource.Noun[instanceStatus]{
		Kind: ec2id.Instance, ID: func(s *instanceStatus) string { return s.InstanceID }, Tags: func(s *instanceStatus) map[string]string { return s.tags },
		Fields: awsresource.FiltersOf[instanceStatus](),
		Rules: ec2filter.Rules{Names: []string{
			"event.code", "event.description", "event.instance-event-id", "event.not-after", "event.not-before", "event.not-before-deadline",
			"operator.principal", "attached-ebs-status.status",
		}}, // there are no events and no operators
	}
}
