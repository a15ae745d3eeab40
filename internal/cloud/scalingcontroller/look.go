// SPDX-License-Identifier: Apache-2.0

package scalingcontroller

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/scalingplan"
	"muster.dev/muster/internal/machine/power"
)

// view is a group, and what there is of its instances.
type view struct {
	g        *v1alpha1.AutoScalingGroup
	machines map[string]*v1alpha1.Machine
	zones    map[v1alpha1.SubnetID]string
	// outdated reports whether the refresh that goes on is to replace an instance; nil if none goes on.
	outdated func(v1alpha1.ScalingInstance) bool
}

// look reads the Machines of a group, and takes those into its status that are not in it.
func (r *groups) look(ctx context.Context, g *v1alpha1.AutoScalingGroup) (*view, error) {
	v := &view{g: g, machines: map[string]*v1alpha1.Machine{}, zones: map[v1alpha1.SubnetID]string{}}
	var subnets v1alpha1.SubnetList
	if err := r.cached.List(ctx, &subnets); err != nil {
		return nil, fmt.Errorf("listing subnets: %w", err)
	}
	for _, s := range subnets.Items {
		v.zones[v1alpha1.SubnetID(s.Name)] = s.Spec.AvailabilityZone
	}
	unhook(g)
	if err := r.join(ctx, g); err != nil {
		return nil, err
	}
	members, err := members(ctx, r.cached, g.UID)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		v.machines[m.Name] = m
		if i := v.find(m.Name); i != nil {
			i.Requested = false
			continue
		}
		g.Status.Instances = append(g.Status.Instances, v1alpha1.ScalingInstance{
			ID: m.Name, State: v1alpha1.LifecyclePending, Since: metav1.NewTime(r.Now()), Launched: m.CreationTimestamp, SubnetID: m.Spec.SubnetID, InstanceType: m.Spec.Type(),
			Weight: weightOf(g.Spec, m.Spec.Type()), Spot: m.Spec.MarketType == v1alpha1.MarketSpot, Cause: m.Annotations[v1alpha1.AnnotationLaunchCause],
		})
	}
	return v, nil
}

// unhook completes what hooks hold that are deleted: launches are abandoned, and terminations go on. DeleteLifecycleHook does
// the same, unless the service is killed between its two writes.
func unhook(g *v1alpha1.AutoScalingGroup) {
	for i := range g.Status.Instances {
		one := &g.Status.Instances[i]
		for k := range one.Actions {
			act := &one.Actions[k]
			if act.Result != "" || slices.ContainsFunc(g.Spec.Hooks, func(h v1alpha1.LifecycleHook) bool { return h.Name == act.Hook }) {
				continue
			}
			act.Result = v1alpha1.LifecycleContinue
			if one.State == v1alpha1.LifecyclePendingWait {
				act.Result = v1alpha1.LifecycleAbandon
			}
		}
	}
}

// join makes the Machines members that the group is to take in.
func (r *groups) join(ctx context.Context, g *v1alpha1.AutoScalingGroup) error {
	for _, w := range g.Spec.Wishes {
		if w.Wish != v1alpha1.WishAttached {
			continue
		}
		m := &v1alpha1.Machine{}
		if err := r.cached.Get(ctx, client.ObjectKey{Name: w.InstanceID}, m); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading machine %s: %w", w.InstanceID, err)
		} else if err != nil || m.Spec.ScalingGroup != nil || m.Spec.NodeGroup != "" || !m.DeletionTimestamp.IsZero() {
			continue
		}
		before := m.DeepCopy()
		m.Spec.ScalingGroup = &v1alpha1.MachineScalingGroup{Name: g.Spec.Name, UID: g.UID}
		if err := r.Management.Patch(ctx, m, locked(before)); err != nil {
			return fmt.Errorf("attaching machine %s: %w", m.Name, err)
		}
		record(g, "attach", w.InstanceID, "Attaching an existing EC2 instance: "+w.InstanceID, w.Cause, r.Now())
	}
	return nil
}

// find is an instance of the status; nil if it is not there.
func (v *view) find(id string) *v1alpha1.ScalingInstance {
	at := slices.IndexFunc(v.g.Status.Instances, func(i v1alpha1.ScalingInstance) bool { return i.ID == id })
	if at < 0 {
		return nil
	}
	return &v.g.Status.Instances[at]
}

// plan is the group as the planner sees it.
func (v *view) plan(now time.Time) scalingplan.Group {
	spec, wanted := v.g.Spec, wantedOf(v.g)
	of := scalingplan.Group{
		Min: int(spec.MinSize), Max: int(spec.MaxSize), Desired: int(spec.DesiredCapacity), Types: typesOf(wanted), Policies: spec.TerminationPolicies,
		Suspended: spec.AutoScaling.SuspendedProcesses, Deleting: !v.g.DeletionTimestamp.IsZero(), OnDemandPercent: 100,
		HoldsLaunch: holds(spec, v1alpha1.TransitionLaunching), HoldsTermination: holds(spec, v1alpha1.TransitionTerminating),
	}
	for _, id := range spec.SubnetIDs {
		of.Subnets = append(of.Subnets, scalingplan.Subnet{ID: string(id), Zone: v.zones[id]})
	}
	for _, f := range v.g.Status.Failures {
		if f.Until.After(now) {
			of.Avoid = append(of.Avoid, scalingplan.Place{Subnet: string(f.SubnetID), Type: f.InstanceType})
		}
	}
	if c := spec.Change; c != nil && c.ID != v.g.Status.Settled {
		of.Change = c.Cause
	}
	if p := wanted.mixed; p != nil {
		of.OnDemandBase = int(p.Distribution.OnDemandBaseCapacity)
		if percent := p.Distribution.OnDemandPercentageAboveBaseCapacity; percent != nil {
			of.OnDemandPercent = int(*percent)
		}
	}
	of.Refresh = v.refresh()
	return of
}

// instances are those of the status as the planner sees them.
func (v *view) instances() []scalingplan.Instance {
	wishes := map[string]v1alpha1.InstanceWish{}
	for _, w := range v.g.Spec.Wishes {
		wishes[w.InstanceID] = w
	}
	current := wantedOf(v.g).template().ID
	var all []scalingplan.Instance
	for _, i := range v.g.Status.Instances {
		one := scalingplan.Instance{
			ID: i.ID, Subnet: string(i.SubnetID), Zone: v.zones[i.SubnetID], Type: scalingplan.Type{Name: i.InstanceType, Weight: int(i.Weight)}, State: i.State, Since: i.Since.Time,
			Launched: i.Launched.Time, Spare: i.Spare, Spot: i.Spot, Actions: i.Actions, Wish: wishes[i.ID].Wish, WishCause: wishes[i.ID].Cause,
		}
		if t := i.LaunchTemplate; t != nil && t.ID == current {
			one.Template, _ = strconv.ParseInt(t.Version, 10, 64) // a number, which was written by note
		}
		m := v.machines[i.ID]
		one.Machine = machineOf(i, m)
		one.Protected = m != nil && m.Spec.ProtectedFromScaleIn
		one.Outdated = v.outdated != nil && v.outdated(i)
		all = append(all, one)
	}
	return all
}

func machineOf(i v1alpha1.ScalingInstance, m *v1alpha1.Machine) scalingplan.Machine {
	switch {
	case m == nil && i.Requested && i.State != v1alpha1.LifecycleTerminating:
		return scalingplan.Requested
	case m == nil:
		return scalingplan.Gone
	case !m.DeletionTimestamp.IsZero():
		return scalingplan.Ending
	case power.IsStopped(m):
		return scalingplan.Stopped
	case m.Status.ProviderID != "":
		return scalingplan.Running
	}
	return scalingplan.Starting
}

func holds(spec v1alpha1.AutoScalingGroupSpec, transition v1alpha1.LifecycleTransition) bool {
	return slices.ContainsFunc(spec.Hooks, func(h v1alpha1.LifecycleHook) bool { return h.Transition == transition })
}

// again is when to look without an event; 0 if nothing is due by the clock.
func (v *view) again(now time.Time) time.Duration {
	next := scalingplan.Wake(v.instances())
	for _, f := range v.g.Status.Failures {
		if f.Until.After(now) && (next.IsZero() || f.Until.Time.Before(next)) {
			next = f.Until.Time
		}
	}
	wait := time.Duration(0)
	if !next.IsZero() {
		wait = max(next.Sub(now), soon)
	}
	if v.refresh() != nil {
		wait = soonest(wait, refreshAgain)
	}
	return wait
}

func same(before, g *v1alpha1.AutoScalingGroup) bool {
	return equality.Semantic.DeepEqual(before.Status, g.Status)
}
