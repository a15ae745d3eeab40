// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/plan"
	"muster.dev/muster/internal/machine/power"
	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/plane/readiness"
)

// A machine of a warm pool has spec.warmPool. The group's controller sets and clears it; the machines' controller does
// what follows:
//
//	spec.warmPool   the machine                               condition Warmed   what is done
//	set             is new                                    False, Preparing   launched with a lifecycle state that keeps its agent from starting a kubelet
//	set             has a Node: it returns                    False, Leaving     cordoned, drained, shut down; its Node is deleted
//	Running         says that it has booted                   True, Prepared     waits
//	Stopped         says that it has booted                   True, Prepared     shut down (package power)
//	cleared         in whichever state it is                  removed            launched without that state: it boots, or its agent starts the kubelet
//
// All of it is in the objects, so a service that is killed is followed by one that goes on where it was.

// warmAgain is how often a machine that boots for a warm pool is asked whether it has.
const warmAgain = 200 * time.Millisecond

// Reasons of the condition Warmed.
const (
	reasonPreparing = "Preparing"
	reasonLeaving   = "Leaving"
	reasonPrepared  = "Prepared"
)

// planned is what brings a group and its warm pool to their aims. Machines of the pool in shifted subnets wait there.
func planned(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine, to aims, now time.Time) []plan.Action {
	pool := plan.Pool{}
	if of := group.Spec.WarmPool; of != nil && group.DeletionTimestamp.IsZero() {
		pool = plan.Pool{Size: int(group.Spec.WarmPoolSize()), Reuse: of.ReuseOnScaleIn}
	}
	observed := scalable(group, machines)
	for i := range observed {
		m := &machines[i]
		observed[i].Zone = cmp.Or(observed[i].Zone, to.zones[m.Spec.SubnetID])
		observed[i].Shifted = slices.Contains(to.shifted, string(m.Spec.SubnetID))
		observed[i].Spare, observed[i].Late = awaited(m, now)
	}
	return resumed(group, plan.WithPool(to.step.Size, observed, pool, to.balance))
}

// move takes a machine out of the warm pool into the group, or returns it there.
func (r *groups) move(ctx context.Context, group *v1alpha1.NodeGroup, machines []v1alpha1.Machine, action plan.Action) error {
	m := &machines[slices.IndexFunc(machines, func(m v1alpha1.Machine) bool { return m.Name == action.Take+action.Return })]
	before, has := m.DeepCopy(), count(machines)
	kind, note := "TakenFromWarmPool", "machine %s leaves the warm pool for the group: %s"
	if action.Take != "" {
		if power.IsStopped(m) { // it takes room of the host from now on
			left, err := r.room(ctx, group)
			if err != nil {
				return err
			}
			defer left.Release()
			if _, err := fit(left, group, []string{string(m.Spec.SubnetID)}, nil); err != nil {
				return err
			}
		}
		m.Spec.WarmPool = ""
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationLaunchCause, growCause(r.Now(), has, has+1))
	} else {
		kind, note = "ReturnedToWarmPool", "machine %s leaves the group for the warm pool: %s"
		m.Spec.WarmPool = group.Spec.WarmPool.State()
	}
	if err := r.management.Patch(ctx, m, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("moving machine %s between group and warm pool: %w", m.Name, err)
	}
	r.recorder.Eventf(group, nil, corev1.EventTypeNormal, kind, "Scale", note, m.Name, action.Reason)
	return nil
}

// sayWarm says how far the warm pool of a group is; "" for a group without.
func sayWarm(group *v1alpha1.NodeGroup) string {
	size := group.Spec.WarmPoolSize()
	if size == 0 {
		return ""
	}
	return "; in the warm pool: " + readiness.Of(group.Status.WarmReadyReplicas, size, "machine", "machines")
}

// warmGrowCause is why a machine is launched into a warm pool, in the words of Auto Scaling.
func warmGrowCause(now time.Time) string {
	return fmt.Sprintf("At %s an instance was started %s of the warm pool.", now.UTC().Format(time.RFC3339), differs)
}

// warmShrinkCause is why a machine of a warm pool is terminated, in the words of Auto Scaling.
func warmShrinkCause(now time.Time) string {
	return fmt.Sprintf("At %s an instance was taken out of the warm pool %s of the warm pool.", now.UTC().Format(time.RFC3339), differs)
}

// lifecycleOf is the lifecycle state that a machine is told to get to; "" is InService.
func lifecycleOf(m *v1alpha1.Machine) string {
	if m.Spec.WarmPool == "" {
		return ""
	}
	return "Warmed:" + string(m.Spec.WarmPool)
}

// ofPool reports whether a machine waits in a warm pool, or was just taken out of one: its join begins when its own controller has
// noted that, and the time of its launch is that of the pool until then.
func ofPool(m *v1alpha1.Machine) bool {
	return m.Spec.WarmPool != "" || meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionWarmed) != nil
}

// prepared reports whether a machine of a warm pool has booted for it.
func prepared(m *v1alpha1.Machine) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionWarmed)
}

func (t *turn) warmed(status metav1.ConditionStatus, reason, message string) {
	m := t.m
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionWarmed, Status: status, Reason: reason, Message: readiness.Shorten(message), ObservedGeneration: m.Generation,
		LastTransitionTime: metav1.NewTime(t.Now().Truncate(time.Second)),
	})
}

// pooled notes that the machine has entered or left a warm pool. It reports true if nothing else is to be done now: the
// machine is on its way out of the cluster.
func (t *turn) pooled(ctx context.Context) (wait time.Duration, leaves bool, err error) {
	m := t.m
	is := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionWarmed)
	switch {
	case m.Spec.WarmPool == "" && is == nil:
	case m.Spec.WarmPool == "":
		meta.RemoveStatusCondition(&m.Status.Conditions, v1alpha1.ConditionWarmed)
		if t.node == nil { // its join begins now
			m.Status.Join = []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(t.Now())}}
		}
	case t.node != nil, slices.ContainsFunc(m.Status.Join, afterLaunch):
		wait, err := t.leaveCluster(ctx)
		return wait, true, err
	case is == nil, m.Spec.WarmPool == v1alpha1.WarmRunning && t.instance.State != machine.Running:
		t.warmed(metav1.ConditionFalse, reasonPreparing, "the machine boots for the warm pool of its node group")
	}
	return 0, false, nil
}

// sinceLaunch are the steps that the machine was seen to take since it was launched, or was taken out of a warm pool: what
// the logs have of an earlier join of the same machine does not count, nor of one that waits in the pool.
func (t *turn) sinceLaunch() []v1alpha1.JoinRecord {
	m := t.m
	if m.Spec.WarmPool != "" {
		return nil
	}
	i := slices.IndexFunc(m.Status.Join, func(record v1alpha1.JoinRecord) bool { return record.Step == v1alpha1.StepLaunched })
	return slices.DeleteFunc(t.steps.Records(m.Name), func(record v1alpha1.JoinRecord) bool {
		return i >= 0 && record.Time.Time.Before(m.Status.Join[i].Time.Time)
	})
}

// afterLaunch reports whether a step of a join is one that a machine of a warm pool has not taken.
func afterLaunch(record v1alpha1.JoinRecord) bool { return record.Step != v1alpha1.StepLaunched }

// leaveCluster takes the next step of a machine out of the cluster into the warm pool.
func (t *turn) leaveCluster(ctx context.Context) (time.Duration, error) {
	m := t.m
	group, err := t.group(ctx, m)
	if err != nil {
		return 0, err
	}
	t.warmed(metav1.ConditionFalse, reasonLeaving, "the machine returns to the warm pool of its node group: its pods go first")
	wait, err := t.drain(ctx, m, t.provider, t.drainTime(group), fateOf(m, group))
	if err != nil {
		return 0, t.failed(m, "DrainFailed", err)
	}
	t.judge(m, v1alpha1.MachineWarmPending, reasonLeaving, drainedMessage([]v1alpha1.Machine{*m}, m.Name))
	if wait > 0 {
		return wait, nil
	}
	if err := t.withdraw(ctx); err != nil {
		return 0, t.failed(m, "StopFailed", err)
	}
	return catchUp, nil
}

// withdraw shuts the machine down and removes what the cluster knows of it, in the order in which a machine ends.
func (t *turn) withdraw(ctx context.Context) error {
	m := t.m
	if err := t.cutOff(ctx, m, t.provider); err != nil {
		return err
	}
	pods, err := t.podsOf(ctx, m)
	if err != nil {
		return err
	}
	if err := power.Halt(ctx, t.provider, m, t.Now()); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return t.deletePods(ctx, pods) },
		func() error { return t.mountsNothing(ctx, m) },
		func() error { return t.forgetNode(ctx, m) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	t.forget(m.Name)
	m.Status.Join, m.Status.Node = slices.DeleteFunc(m.Status.Join, afterLaunch), nil
	meta.RemoveStatusCondition(&m.Status.Conditions, v1alpha1.ConditionDrained)
	if m.Spec.WarmPool == v1alpha1.WarmStopped { // it has booted before
		t.warmed(metav1.ConditionTrue, reasonPrepared, "the machine has booted, and returned to the warm pool of its node group")
		return nil
	}
	t.warmed(metav1.ConditionFalse, reasonPreparing, "the machine boots for the warm pool of its node group")
	return nil
}

// tendWarm sums up a machine of a warm pool, and returns when to look again, or 0.
func (t *turn) tendWarm() time.Duration {
	m := t.m
	if t.off {
		phase := v1alpha1.MachineWarmStopped
		if power.Was(m) != v1alpha1.ReasonStopped {
			phase = v1alpha1.MachineWarmPending
		}
		t.judge(m, phase, bootreport.Warmed, "the machine is stopped, and waits in the warm pool of its node group")
		return t.wait
	}
	if !prepared(m) && !t.queued && t.hasBooted() {
		t.Boots.end(m.Name)
		t.warmed(metav1.ConditionTrue, reasonPrepared, "the machine has booted for the warm pool of its node group")
		t.recorder.Eventf(m, nil, corev1.EventTypeNormal, "Warmed", "Boot", "the machine has booted, and waits in the warm pool of its node group")
		t.wait = catchUp // its token goes then, and it is shut down if it is to be stopped
	}
	if prepared(m) {
		phase := v1alpha1.MachineWarmRunning
		if m.Spec.WarmPool == v1alpha1.WarmStopped {
			phase = v1alpha1.MachineWarmPending
		}
		t.judge(m, phase, bootreport.Warmed, "the machine runs, and waits in the warm pool of its node group")
		return soonest(t.wait, t.routed)
	}
	said := troubled(m)
	t.judge(m, v1alpha1.MachineWarmPending, reasonPreparing, "the machine boots for the warm pool of its node group")
	if t.queued {
		t.judge(m, v1alpha1.MachineWarmPending, readiness.ReasonQueued, errQueued.Error())
	}
	return soonest(t.wait, t.left, t.routed, warmAgain, t.bootReport(m, t.instance, said))
}

// hasBooted reports whether a machine has booted as far as one of a warm pool does. A machine that makes no reports has
// nothing to boot.
func (t *turn) hasBooted() bool {
	if t.instance.State != machine.Running {
		return false
	}
	reporter, err := machine.Ask[machine.Reporter](t.Providers, t.m.Spec.Provider, v1alpha1.KeepLogs)
	if err != nil {
		return true
	}
	report, ok := reporter.Report(t.m.Name)
	return ok && report.Reason == bootreport.Warmed
}
