// SPDX-License-Identifier: Apache-2.0

package scalingcontroller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/cloud/scalinglaunch"
	"muster.dev/muster/internal/cloud/scalingplan"
	"muster.dev/muster/internal/plane/readiness"
)

// note writes the actions into the status, before they are carried out.
func (r *groups) note(ctx context.Context, v *view, actions []scalingplan.Action) error {
	for _, a := range actions {
		if a.Kind == scalingplan.Launch {
			if err := r.request(ctx, v, a); err != nil {
				return err
			}
			continue
		}
		i := v.find(a.Instance)
		if i == nil {
			continue
		}
		switch a.Kind { //nolint:exhaustive // launches are requested above
		case scalingplan.Move:
			r.moved(v, i, a)
		case scalingplan.End:
			i.State, i.Since, i.Actions = v1alpha1.LifecycleTerminating, metav1.NewTime(r.Now()), nil
			if !i.Ending { // else the hooks of the termination held it
				i.Cause, i.Ending = a.Cause, true
			}
		case scalingplan.Leave: // it is forgotten when its Machine has left: until then it is here that somebody asked for that
			record(v.g, "detach", i.ID, "Detaching EC2 instance: "+i.ID, a.Cause, r.Now())
		case scalingplan.Forget:
			v.forget(i.ID)
		}
	}
	return nil
}

func (v *view) forget(id string) {
	v.g.Status.Instances = slices.DeleteFunc(v.g.Status.Instances, func(i v1alpha1.ScalingInstance) bool { return i.ID == id })
}

// moved has an instance be in another state, and begins the hooks of a state that waits.
func (r *groups) moved(v *view, i *v1alpha1.ScalingInstance, a scalingplan.Action) {
	from, now := i.State, r.Now()
	i.State, i.Since, i.Actions = a.State, metav1.NewTime(now), nil
	switch {
	case a.State == v1alpha1.LifecyclePendingWait:
		i.Actions = begin(v.g.Spec.Hooks, v1alpha1.TransitionLaunching, now)
	case a.State == v1alpha1.LifecycleTerminatingWait:
		i.Cause, i.Ending = a.Cause, true
		i.Actions = begin(v.g.Spec.Hooks, v1alpha1.TransitionTerminating, now)
	case a.State == v1alpha1.LifecycleTerminating:
		i.Cause, i.Ending = a.Cause, true
	case a.State == v1alpha1.LifecycleStandby:
		record(v.g, "standby", i.ID, "Moving EC2 instance to Standby: "+i.ID, a.Cause, now)
	case from == v1alpha1.LifecycleStandby:
		record(v.g, "service", i.ID, "Moving EC2 instance out of Standby: "+i.ID, "At "+now.UTC().Format(time.RFC3339)+" instance "+i.ID+" was moved out of standby in response to a user request.", now)
	}
}

// maxHeld is how long a hook holds an instance at most, and maxHeartbeats how many times its own timeout that may be.
const (
	maxHeld       = 48 * time.Hour
	maxHeartbeats = 100
)

func begin(hooks []v1alpha1.LifecycleHook, transition v1alpha1.LifecycleTransition, now time.Time) []v1alpha1.LifecycleAction {
	var all []v1alpha1.LifecycleAction
	for _, h := range hooks {
		if h.Transition == transition {
			beat := time.Duration(h.HeartbeatTimeout) * time.Second
			all = append(all, v1alpha1.LifecycleAction{
				Hook: h.Name, Token: newUUID(), DefaultResult: h.DefaultResult, Deadline: metav1.NewTime(now.Add(beat)), Last: metav1.NewTime(now.Add(min(maxHeld, maxHeartbeats*beat))),
			})
		}
	}
	return all
}

// request writes an instance into the status that is to be launched, or why it cannot be.
func (r *groups) request(ctx context.Context, v *view, a scalingplan.Action) error {
	of, err := r.Launcher.Resolve(ctx, scalinglaunch.Order{Template: wantedOf(v.g).templateOf(a.Type.Name), InstanceType: a.Type.Name, SubnetID: a.Subnet, Mixed: wantedOf(v.g).mixed != nil})
	if err != nil {
		return r.failed(v, v1alpha1.SubnetID(a.Subnet), a.Type.Name, a.Cause, err)
	}
	now := metav1.NewTime(r.Now())
	v.g.Status.Instances = append(v.g.Status.Instances, v1alpha1.ScalingInstance{
		ID: newID(), State: v1alpha1.LifecyclePending, Since: now, Launched: now, Requested: true, SubnetID: v1alpha1.SubnetID(a.Subnet), InstanceType: of.InstanceType, Named: a.Type.Name,
		Weight: int32(a.Type.Weight), LaunchTemplate: &of.Template, Spot: a.Spot || of.Spot, Spare: a.Spare, Cause: a.Cause, Refresh: launchedBy(v.g), //nolint:gosec // G115: at most 999
	})
	return nil
}

// carryOut does what the status says: it makes the Machines that were asked for, and ends and lets go others.
func (r *groups) carryOut(ctx context.Context, v *view, actions []scalingplan.Action) error {
	for _, a := range actions {
		m := v.machines[a.Instance]
		if m == nil {
			continue
		}
		switch a.Kind { //nolint:exhaustive // nothing is to be done for others
		case scalingplan.End:
			if err := r.end(ctx, m, cmp.Or(causeOf(v, a.Instance), a.Cause)); err != nil {
				return err
			}
		case scalingplan.Leave:
			before := m.DeepCopy()
			m.Spec.ScalingGroup = nil
			if err := r.Management.Patch(ctx, m, locked(before)); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("detaching machine %s: %w", m.Name, err)
			}
		}
	}
	if !v.g.DeletionTimestamp.IsZero() {
		return nil
	}
	before := v.g.DeepCopy()
	for _, i := range before.Status.Instances {
		if i.Requested && i.State == v1alpha1.LifecyclePending {
			if err := r.launch(ctx, v, i); err != nil {
				return errors.Join(err, r.write(ctx, before, v.g))
			}
		}
	}
	return r.write(ctx, before, v.g)
}

func causeOf(v *view, id string) string {
	if i := v.find(id); i != nil && i.Ending {
		return i.Cause
	}
	return ""
}

// end deletes a Machine, and keeps with it why.
func (r *groups) end(ctx context.Context, m *v1alpha1.Machine, cause string) error {
	before := m.DeepCopy()
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationTerminationCause, cause)
	if err := r.Management.Patch(ctx, m, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting why machine %s goes: %w", m.Name, err)
	}
	if err := r.Management.Delete(ctx, m, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting machine %s: %w", m.Name, err)
	}
	return nil
}

// launch makes the Machine of an instance. A Machine that was made and is gone again is not made a second time.
func (r *groups) launch(ctx context.Context, v *view, i v1alpha1.ScalingInstance) error {
	ended := &v1alpha1.AWSRecord{}
	switch err := r.Management.Get(ctx, client.ObjectKey{Name: i.ID}, ended); {
	case err == nil:
		v.forget(i.ID)
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("looking whether instance %s was terminated: %w", i.ID, err)
	}
	order := scalinglaunch.Order{
		ID: i.ID, Template: *i.LaunchTemplate, InstanceType: i.InstanceType, SubnetID: string(i.SubnetID), Group: v1alpha1.MachineScalingGroup{Name: v.g.Spec.Name, UID: v.g.UID},
		Tags: v1alpha1.Tags{}, Protected: v.g.Spec.AutoScaling.ProtectNewMachines, Spot: i.Spot, Mixed: wantedOf(v.g).mixed != nil, Cause: i.Cause,
	}
	for _, t := range v.g.Spec.AutoScaling.Tags {
		if t.PropagateAtLaunch {
			order.Tags[t.Key] = t.Value
		}
	}
	err := r.Launcher.Launch(ctx, order)
	if err != nil {
		if err := r.failed(v, i.SubnetID, i.Named, i.Cause, err); err != nil {
			return err
		}
		v.forget(i.ID)
		return nil
	}
	v.g.Status.Failures = slices.DeleteFunc(v.g.Status.Failures, func(f v1alpha1.LaunchFailure) bool { return f.SubnetID == i.SubnetID && f.InstanceType == i.Named })
	return nil
}

// The pauses after launches that failed.
const (
	firstPause = 10 * time.Second
	lastPause  = 5 * time.Minute
)

// failed notes why a launch is not tried in its place for a while. Launches that were begun together and fail in one place are
// one failure. An error that says nothing about the launch is returned.
func (r *groups) failed(v *view, subnet v1alpha1.SubnetID, kind, cause string, err error) error {
	fault := (*awsfault.Error)(nil)
	if !errors.As(err, &fault) || fault.Status == 503 {
		return err
	}
	now := r.Now()
	count := int32(1)
	for _, f := range v.g.Status.Failures {
		if f.SubnetID != subnet || f.InstanceType != kind {
			continue
		}
		if f.Until.After(now) { // of several launches at once each fails there, which is one try
			return nil
		}
		count = f.Count + 1
	}
	v.g.Status.Failures = slices.DeleteFunc(v.g.Status.Failures, func(f v1alpha1.LaunchFailure) bool { return f.SubnetID == subnet && f.InstanceType == kind })
	pause := min(firstPause<<min(count-1, 8), lastPause)
	v.g.Status.Failures = append(v.g.Status.Failures, v1alpha1.LaunchFailure{SubnetID: subnet, InstanceType: kind, Count: count, Until: metav1.NewTime(now.Add(pause))})
	message := readiness.Shorten(fault.Message)
	add(v.g, v1alpha1.ScalingActivity{
		ID: scalingplan.ActivityID("fail", string(v.g.UID), string(subnet)+kind+now.String()), Description: "Launching a new EC2 instance.  Status Reason: " + message + " Launching EC2 instance failed.",
		Cause: cause, StatusCode: "Failed", StatusMessage: message + " Launching EC2 instance failed.", StartTime: metav1.NewTime(now), SubnetID: subnet,
	})
	return nil
}

// record adds an activity about an instance that is done.
func record(g *v1alpha1.AutoScalingGroup, kind, id, description, cause string, now time.Time) {
	add(g, v1alpha1.ScalingActivity{
		ID: scalingplan.ActivityID(kind, string(g.UID), id+cause), Description: description, Cause: cause, StatusCode: "Successful", StartTime: metav1.NewTime(now),
	})
}

// maxActivities is how many activities a group keeps.
const maxActivities = 100

func add(g *v1alpha1.AutoScalingGroup, a v1alpha1.ScalingActivity) {
	if slices.ContainsFunc(g.Status.Activities, func(had v1alpha1.ScalingActivity) bool { return had.ID == a.ID }) {
		return
	}
	g.Status.Activities = append(g.Status.Activities, a)
	if more := len(g.Status.Activities) - maxActivities; more > 0 {
		g.Status.Activities = g.Status.Activities[more:]
	}
}

// sum writes down how the group stands.
func (v *view) sum(now time.Time) {
	g := v.g
	g.Status.ObservedGeneration, g.Status.InService = g.Generation, 0
	for _, i := range g.Status.Instances {
		if i.State == v1alpha1.LifecycleInService {
			g.Status.InService++
		}
	}
	have, wants := scalingplan.Capacity(v.instances()), int(g.Spec.DesiredCapacity)
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: readiness.ReasonScaling, ObservedGeneration: g.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		Message: fmt.Sprintf("the group has a capacity of %d, and is to have %d; %d instances are in service", have, wants, g.Status.InService),
	}
	switch {
	case !g.DeletionTimestamp.IsZero():
		condition.Reason = readiness.ReasonDeleting
	case have < wants && len(g.Status.Failures) > 0 && len(g.Status.Activities) > 0:
		condition.Reason, condition.Message = "LaunchFailed", lastFailure(g)
	case have == wants && !slices.ContainsFunc(g.Status.Instances, func(i v1alpha1.ScalingInstance) bool {
		return i.State == v1alpha1.LifecyclePending || i.State == v1alpha1.LifecyclePendingWait
	}):
		condition.Status, condition.Reason = metav1.ConditionTrue, readiness.ReasonReady
		if g.Spec.Change != nil {
			g.Status.Settled = g.Spec.Change.ID
		}
		for i := range g.Status.Instances { // the rebalancing is over
			g.Status.Instances[i].Spare = false
		}
	}
	meta.SetStatusCondition(&g.Status.Conditions, condition)
}
