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
	InstanceID, AvailabilityZone, AvailabilityZoneID string
	InstanceState                                    instanceState
	InstanceStatus, SystemStatus                     statusSummary
	Events                                           []struct{}

	tags map[string]string
}

type statusSummary struct {
	Status  string
	Details []statusDetail
}

type statusDetail struct{ Name, Status string }

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
		Rules: ec2filter.Rules{Names: []string{
			"availability-zone", "availability-zone-id", "event.code", "event.description", "event.instance-event-id", "event.not-after", "event.not-before",
			"event.not-before-deadline", "instance-state-code", "instance-state-name", "instance-status.reachability", "instance-status.status",
			"operator.managed", "operator.principal", "system-status.reachability", "system-status.status", "attached-ebs-status.status",
		}, Tags: true},
		Values: func(s *instanceStatus, name string) []string {
			switch name {
			case "availability-zone":
				return []string{s.AvailabilityZone}
			case "availability-zone-id":
				return []string{s.AvailabilityZoneID}
			case "instance-state-code":
				return []string{ec2resource.Number(s.InstanceState.Code)}
			case "instance-state-name":
				return []string{s.InstanceState.Name}
			case "instance-status.status", "system-status.status":
				return []string{s.InstanceStatus.Status}
			case "instance-status.reachability", "system-status.reachability":
				for _, d := range s.InstanceStatus.Details {
					return []string{d.Status}
				}
			case "operator.managed":
				return []string{"false"}
			}
			return nil
		},
	}
}
