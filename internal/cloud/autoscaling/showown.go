// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/scalingplan"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/power"
)

// showOwn shows what a group of its own says itself.
func showOwn(shown *shownGroup, g *v1alpha1.AutoScalingGroup) {
	spec := g.Spec
	shown.HealthCheckType, shown.HealthCheckGracePeriod, shown.DefaultInstanceWarmup = cmp.Or(spec.HealthCheckType, healthCheck), spec.HealthCheckGracePeriod, spec.DefaultInstanceWarmup
	if spec.DefaultCooldown != nil {
		shown.DefaultCooldown = *spec.DefaultCooldown
	}
	shown.CapacityRebalance = spec.CapacityRebalance
	shown.ServiceLinkedRoleARN = cmp.Or(spec.ServiceLinkedRoleARN, shown.ServiceLinkedRoleARN)
	if shown.TerminationPolicies = spec.TerminationPolicies; len(spec.TerminationPolicies) == 0 {
		shown.TerminationPolicies = []string{"Default"}
	}
	if spec.LaunchTemplate != nil {
		shown.LaunchTemplate = showReference(*spec.LaunchTemplate)
	}
	if spec.MixedInstancesPolicy != nil {
		shown.MixedInstancesPolicy = showMixed(spec.MixedInstancesPolicy)
	}
}

// showInstances shows the instances of a group, sorted by id.
func (a *api) showInstances(g *group, zones map[string]string) []shownInstance {
	var all []shownInstance
	if g.own == nil {
		for _, m := range g.machines {
			all = append(all, a.showInstance(g, m, zones))
		}
		return all
	}
	for _, i := range g.own.Status.Instances {
		all = append(all, a.showMember(g, i, zones))
	}
	slices.SortFunc(all, func(x, y shownInstance) int { return cmp.Compare(x.InstanceID, y.InstanceID) })
	return all
}

// machine is a machine of the group; nil if it is not there.
func (g *group) machine(id string) *v1alpha1.Machine {
	for _, m := range g.machines {
		if m.Name == id {
			return m
		}
	}
	return nil
}

// instance is an instance of a group of its own; nil if it is not there.
func (g *group) instance(id string) *v1alpha1.ScalingInstance {
	for i := range g.own.Status.Instances {
		if one := &g.own.Status.Instances[i]; one.ID == id {
			return one
		}
	}
	return nil
}

// wish is what was asked of an instance; nil if nothing was.
func (g *group) wish(id string) *v1alpha1.InstanceWish {
	for i := range g.own.Spec.Wishes {
		if w := &g.own.Spec.Wishes[i]; w.InstanceID == id {
			return w
		}
	}
	return nil
}

func (a *api) showMember(g *group, i v1alpha1.ScalingInstance, zones map[string]string) shownInstance {
	shown := shownInstance{
		InstanceID: i.ID, InstanceType: cmp.Or(i.InstanceType, machine.DefaultType), AvailabilityZone: zones[string(i.SubnetID)], LifecycleState: string(i.State), HealthStatus: "Healthy",
	}
	if zone, err := a.region.Zone(shown.AvailabilityZone); err == nil {
		shown.AvailabilityZoneID = zone.ID
	}
	if i.LaunchTemplate != nil {
		shown.LaunchTemplate = showReference(*i.LaunchTemplate)
	}
	if p := g.own.Spec.MixedInstancesPolicy; p != nil && len(p.Overrides) > 0 && p.Overrides[0].WeightedCapacity > 0 {
		shown.WeightedCapacity = strconv.Itoa(int(i.Weight))
	}
	m := g.machine(i.ID)
	if m != nil {
		shown.ProtectedFromScaleIn, shown.ImageID = m.Spec.ProtectedFromScaleIn, m.Spec.ImageID
	}
	stopped := m != nil && power.IsStopped(m) && !g.own.Spec.AutoScaling.Suspends(v1alpha1.ProcessHealthCheck)
	if w := g.wish(i.ID); w != nil && w.Wish == v1alpha1.WishUnhealthy || stopped || i.State == v1alpha1.LifecycleTerminating {
		shown.HealthStatus = "Unhealthy"
	}
	return shown
}

// ownActivities are those of a group of its own.
func (g *group) ownActivities(arn string) []activity {
	var all []activity
	for _, i := range g.own.Status.Instances {
		m := g.machine(i.ID)
		if m == nil {
			m = &v1alpha1.Machine{Spec: v1alpha1.MachineSpec{SubnetID: i.SubnetID}}
			m.Name, m.CreationTimestamp = i.ID, i.Launched
		}
		launch := launching(g.name, arn, m)
		switch i.State { //nolint:exhaustive // the Machine tells of the others
		case v1alpha1.LifecyclePendingWait:
			launch.StatusCode, launch.Progress, launch.EndTime = "MidLifecycleAction", 75, time.Time{}
		case v1alpha1.LifecyclePending:
			launch.Cause = cmp.Or(i.Cause, launch.Cause)
			launch.StatusCode, launch.Progress, launch.EndTime = "PreInService", 30, time.Time{}
		}
		all = append(all, *launch)
		if !i.Ending && m.DeletionTimestamp.IsZero() {
			continue
		}
		end := ending(g.name, arn, m, nil)
		if i.Ending {
			end.Cause, end.StartTime = i.Cause, i.Since.Time
		}
		if i.State == v1alpha1.LifecycleTerminatingWait {
			end.StatusCode, end.Progress = "MidLifecycleAction", 60
		}
		all = append(all, *end)
	}
	for _, one := range g.own.Status.Activities {
		shown := activity{
			ActivityID: one.ID, AutoScalingGroupName: g.name, AutoScalingGroupARN: arn, Description: one.Description, Cause: one.Cause, StatusCode: one.StatusCode,
			StatusMessage: one.StatusMessage, StartTime: one.StartTime.Time, EndTime: one.StartTime.Time, Progress: 100, Details: "{}",
		}
		if one.SubnetID != "" {
			shown.Details = details(&v1alpha1.Machine{Spec: v1alpha1.MachineSpec{SubnetID: one.SubnetID}})
		}
		all = append(all, shown)
	}
	return all
}

// doneAt is the activity of a request about an instance, as its group's controller will tell it.
func (g *group) doneAt(arn, kind, id, description, cause string, now time.Time) activity {
	return activity{
		ActivityID: scalingplan.ActivityID(kind, g.uid(), id+cause), AutoScalingGroupName: g.name, AutoScalingGroupARN: arn, Description: description, Cause: cause, StatusCode: "InProgress", Progress: 50,
		Details: "{}", StartTime: now,
	}
}
