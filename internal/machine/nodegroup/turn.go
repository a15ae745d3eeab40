// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/power"
	"muster.dev/muster/internal/plane/readiness"
)

// turn is one look at a machine that is to live.
type turn struct {
	*machines
	m        *v1alpha1.Machine
	provider machine.Provider
	instance machine.Instance
	node     *corev1.Node

	off    bool          // the machine is shut down, or being shut down
	queued bool          // the host boots as many machines as it can
	wait   time.Duration // until the machine may boot, or the next step of its shutdown
	left   time.Duration // until its bootstrap token has expired
	routed time.Duration // until the routes to its pods are made sure of again
}

// run has the machine run or not, as its spec says, and do its part in the cluster, in the trouble of its drill if it has
// one. A drill that cannot be carried out keeps nothing else from it. It returns when to look again, or 0.
func (t *turn) run(ctx context.Context) (time.Duration, error) {
	drilled, ends, err := t.drill(ctx)
	if ends {
		return drilled, err
	}
	again, failed := t.live(ctx)
	return soonest(drilled, again), errors.Join(err, failed)
}

// live has the machine run or not, as its spec says, and do its part in the cluster. It returns when to look again, or 0.
func (t *turn) live(ctx context.Context) (time.Duration, error) {
	var err error
	if t.node, err = t.machines.node(ctx, t.m); err != nil {
		return 0, t.failed(t.m, "ClusterFailed", err)
	}
	t.m.Status.Join = joinlog.Merge(t.m.Status.Join, t.sinceLaunch()...)
	if wait, waits, err := t.pooled(ctx); err != nil || waits {
		return wait, err
	}
	off, err := t.down(ctx)
	if err != nil {
		return 0, err
	}
	if !off {
		if on, err := t.up(ctx); err != nil || !on {
			return t.wait, err
		}
	}
	return t.tend(ctx)
}

// down shuts the machine down if its spec wants that, and reports whether it is not to run now.
func (t *turn) down(ctx context.Context) (bool, error) {
	step, err := power.Down(ctx, t.provider, t.m, t.instance, t.Now())
	if err != nil {
		return false, t.failed(t.m, "StopFailed", err)
	}
	if !step.Off {
		return false, nil
	}
	t.off = true
	if step.Again {
		t.wait = catchUp
	}
	if step.Ended {
		t.instance.State = machine.Stopped
		t.relaunch.forget(t.m.Name) // it did not die by itself
		t.Boots.end(t.m.Name)
		if power.Was(t.m) == v1alpha1.ReasonStopped {
			t.recorder.Eventf(t.m, nil, corev1.EventTypeNormal, "Stopped", "Stop", "the instance was stopped; it keeps its disk, addresses and identity")
		}
	}
	if err := t.dropTokens(ctx, t.m); err != nil {
		return false, t.failed(t.m, "TokenFailed", err)
	}
	t.m.Status.BootstrapTokenID = ""
	return true, nil
}

// up has the machine run, with what it needs to join. It reports false if nothing else is to be done for the machine now.
func (t *turn) up(ctx context.Context) (on bool, err error) {
	m := t.m
	credential, err := t.credential(ctx)
	if err != nil {
		return false, t.failed(m, "TokenFailed", err)
	}
	t.left = credential.left(t.Now())
	if t.instance.State != machine.Running || t.instance.Lifecycle != lifecycleOf(m) || !credential.token.IsZero() && credential.token.ID != m.Status.BootstrapTokenID {
		if err := t.room(ctx); err != nil {
			return false, t.launchFailed(err)
		}
		t.instance, t.wait, err = t.launch(ctx, t.provider, m, t.instance, credential.token)
		t.queued = errors.Is(err, errQueued)
		if err != nil && !t.queued {
			return false, t.launchFailed(err)
		}
	}
	if t.wait > 0 {
		return true, nil
	}
	power.Up(m, t.Now())
	m.Status.BootstrapTokenID = credential.token.ID
	adopt(m, t.instance)
	if t.routed, err = t.route(ctx, m, t.instance, t.node); err != nil { // routes go with a machine that stops
		return false, t.failed(m, "RouteFailed", err)
	}
	return true, nil
}

// room takes room on the host for a machine that was stopped.
func (t *turn) room(ctx context.Context) error {
	if t.instance.State != machine.Stopped || power.Was(t.m) != v1alpha1.ReasonStopped {
		return nil
	}
	return t.Room.Start(ctx, t.managementLive, t.m)
}

// credential is the token by which the machine is to join now, if any. A machine with an instance profile joins by its
// role, and a machine without a group by its own user data. A machine that has joined gets no further token while it
// runs, even if its certificate expires: pods may read user data by now. A machine that is started after it was stopped
// gets another until its node is Ready: its certificate may have expired, and its disk may be lost. No pod runs before its
// kubelet has a certificate, and nobody else gets one by the token while that is good.
func (t *turn) credential(ctx context.Context) (credential, error) {
	m := t.m
	joined := t.node != nil || joinlog.Has(m.Status.Join, v1alpha1.StepReady)
	again := power.Starts(m)
	switch {
	case m.Spec.WarmPool != "" && prepared(m):
		return credential{}, t.dropTokens(ctx, m)
	case m.Spec.InstanceProfile != "" || m.Spec.NodeGroup == "", joined && !again:
		return credential{}, t.dropTokens(ctx, m)
	case joined:
		return t.ensureToken(ctx, m, m.Status.NodeName)
	}
	return t.ensureToken(ctx, m, "")
}

// launchFailed notes why a launch failed, and returns the error if that is to be tried again by it.
func (t *turn) launchFailed(err error) error {
	reason := "LaunchFailed"
	switch {
	case errors.Is(err, machine.ErrSubnetFull):
		reason = reasonFull
	case errors.Is(err, machine.ErrNoPodSubnet):
		reason = reasonPodZone
	case errors.Is(err, hostroot.Refused{Cluster: t.m.Spec.ClusterName}):
		reason = reasonHostRoot
	case errors.Is(err, hostroom.ErrFull):
		t.judge(t.m, v1alpha1.MachineNotReady, hostroom.Code, err.Error())
		t.wait = roomAgain
		return nil
	case errors.Is(err, machine.ErrDiskReserve):
		t.judge(t.m, v1alpha1.MachineNotReady, reasonReserve, err.Error())
		t.wait = reserveAgain
		return nil
	}
	if t.instance.State != machine.Running && t.m.Status.Phase == v1alpha1.MachineReady { // whatever its Node still says
		t.m.Status.Phase = v1alpha1.MachineNotReady
	}
	return t.failed(t.m, reason, err)
}

// tend does what the machine's Node needs, sums the machine up, and returns when to look again, or 0.
func (t *turn) tend(ctx context.Context) (time.Duration, error) {
	m := t.m
	if m.Spec.WarmPool != "" {
		return t.tendWarm(), nil
	}
	group, err := t.group(ctx, m)
	if err != nil {
		return 0, err
	}
	if err := t.labelManaged(ctx, m, t.node); err != nil {
		return 0, t.failed(m, "NodeFailed", err)
	}
	marked, err := t.mark(ctx, m, t.node, group)
	if err != nil {
		return 0, t.failed(m, "NodeFailed", err)
	}
	if err := t.taintShutdown(ctx, t.off && power.Was(m) != v1alpha1.ReasonRebooting); err != nil {
		return 0, t.failed(m, "NodeFailed", err)
	}
	if t.off {
		t.judge(m, v1alpha1.MachineStopped, power.Was(m), stoppedMessage(m))
		return soonest(t.wait, marked), nil
	}
	said := troubled(m)
	t.sum(m, t.instance, t.node)
	if t.queued && m.Status.Phase != v1alpha1.MachineReady {
		t.judge(m, m.Status.Phase, readiness.ReasonQueued, errQueued.Error())
	}
	settled := t.settle()
	if m.Status.Phase == v1alpha1.MachineReady {
		t.Boots.heard(m.Name, readyOf(t.node).LastHeartbeatTime.Time)
	}
	reported := t.bootReport(m, t.instance, said)
	checked := t.admission(ctx, m, t.instance)
	return soonest(t.wait, t.left, t.routed, marked, reported, checked, settled, t.untilLate(m)), nil
}

// settleAgain is how often it is looked whether the node of a machine that was started is Ready: a kubelet that says so
// as before is not heard of otherwise.
const settleAgain = 2 * time.Second

// settle notes that the node of a machine that was started is Ready since then. It returns when to look again, or 0.
func (t *turn) settle() time.Duration {
	if !power.Starts(t.m) {
		return 0
	}
	if t.m.Status.Phase != v1alpha1.MachineReady {
		return settleAgain
	}
	if ready := readyOf(t.node); ready.LastHeartbeatTime.Before(t.m.Status.StartedAt) {
		return settleAgain
	}
	power.Settle(t.m, t.Now())
	return catchUp // its token goes then
}

// stoppedMessage says why a machine does not run that is not to.
func stoppedMessage(m *v1alpha1.Machine) string {
	switch power.Was(m) {
	case v1alpha1.ReasonStopped:
		return "the machine is stopped, as its spec.powerState says"
	case v1alpha1.ReasonStopping:
		return "the machine is being shut down, as its spec.powerState says"
	}
	return "the machine reboots"
}
