// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/plane/readiness"
)

// routesAgain is how often a route is made sure of, should the VPC have lost it.
const routesAgain = 30 * time.Second

// machines brings Machines into the cluster, keeps them there, and clears up after them.
type machines struct {
	parts
	relaunch *pacer
	memory   *memory
	ranges   *podRanges
}

// Reconcile brings one machine forward. Its findings go into the status with one patch at the end, if they are news.
func (r *machines) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	m := &v1alpha1.Machine{}
	if err := r.management.Get(ctx, request.NamespacedName, m); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading the machine: %w", err)
	} else if err != nil {
		return again(r.removeOrphans(ctx, request.Name))
	}
	if !r.ours(m) {
		return reconcile.Result{}, nil
	}
	if r.memory.stale(m) {
		return reconcile.Result{RequeueAfter: catchUp}, nil
	}
	if !m.DeletionTimestamp.IsZero() {
		wait, err := r.remove(ctx, m)
		if err != nil {
			return again(err)
		}
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	before := m.DeepCopy()
	if controllerutil.AddFinalizer(m, v1alpha1.FinalizerMachine) {
		if err := r.management.Patch(ctx, m, lockedPatch(before)); err != nil {
			return again(fmt.Errorf("adding the finalizer: %w", err))
		}
		r.memory.wrote(m)
		before = m.DeepCopy()
	}
	next, err := r.bring(ctx, m)
	if written := r.writeStatus(ctx, before, m); written != nil {
		return again(errors.Join(err, written))
	}
	if err != nil {
		return again(err)
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

// bring does what is due for a machine that is to live, and returns when to look again without being told, if at all.
func (r *machines) bring(ctx context.Context, m *v1alpha1.Machine) (time.Duration, error) {
	provider, unknown := r.Providers.Find(m.Spec.Provider)
	if unknown != nil {
		r.judge(m, v1alpha1.MachinePending, "NoProvider", unknown.Error())
		return 0, nil // the machine waits, and says so
	}
	instance, err := provider.Get(ctx, m.Name)
	if err != nil && !errors.Is(err, machine.ErrNotFound) {
		return 0, r.failed(m, "ProviderFailed", fmt.Errorf("asking the provider for the instance: %w", err))
	}
	if err != nil && m.Status.ProviderID != "" {
		return 0, r.lost(ctx, m)
	}
	node, err := r.node(ctx, m)
	if err != nil {
		return 0, r.failed(m, "ClusterFailed", err)
	}
	m.Status.Join = joinlog.Merge(m.Status.Join, r.steps.Records(m.Name)...)
	joined := node != nil || joinlog.Has(m.Status.Join, v1alpha1.StepReady)

	// A machine that has joined gets no further token, even if its certificate expires: pods may read user data by now.
	// A machine with an instance profile joins by its role, and a machine without a group by its own user data.
	var credential credential
	if joined || m.Spec.InstanceProfile != "" || m.Spec.NodeGroup == "" {
		err = r.dropTokens(ctx, m)
	} else {
		credential, err = r.ensureToken(ctx, m, "")
	}
	if err != nil {
		return 0, r.failed(m, "TokenFailed", err)
	}
	var wait time.Duration
	queued := false
	if instance.State != machine.Running || (!joined && credential.token.ID != m.Status.BootstrapTokenID) {
		instance, wait, err = r.launch(ctx, provider, m, instance, credential.token)
		queued = errors.Is(err, errQueued)
		if err != nil && !queued {
			reason := "LaunchFailed"
			switch {
			case errors.Is(err, machine.ErrSubnetFull):
				reason = reasonFull
			case errors.Is(err, machine.ErrNoPodSubnet):
				reason = reasonPodZone
			case errors.Is(err, hostroot.Refused{Cluster: m.Spec.ClusterName}):
				reason = reasonHostRoot
			case errors.Is(err, machine.ErrDiskReserve):
				r.judge(m, v1alpha1.MachineNotReady, reasonReserve, err.Error())
				return reserveAgain, nil
			}
			if instance.State != machine.Running && m.Status.Phase == v1alpha1.MachineReady { // whatever its Node still says
				m.Status.Phase = v1alpha1.MachineNotReady
			}
			return 0, r.failed(m, reason, err)
		}
	}
	var routed time.Duration
	if wait == 0 {
		m.Status.BootstrapTokenID = credential.token.ID
		adopt(m, instance)
		if routed, err = r.route(ctx, m, instance, node); err != nil { // routes go with a machine that stops
			return 0, r.failed(m, "RouteFailed", err)
		}
	}
	group, err := r.group(ctx, m)
	if err != nil {
		return 0, err
	}
	if err := r.labelManaged(ctx, m, node); err != nil {
		return 0, r.failed(m, "NodeFailed", err)
	}
	marked, err := r.mark(ctx, m, node, group)
	if err != nil {
		return 0, r.failed(m, "NodeFailed", err)
	}
	evacuated, err := r.evacuate(ctx, m, provider, node, group)
	if err != nil {
		return 0, r.failed(m, "DrainFailed", err)
	}
	said := troubled(m)
	r.sum(m, instance, node)
	if queued && m.Status.Phase != v1alpha1.MachineReady {
		r.judge(m, m.Status.Phase, readiness.ReasonQueued, errQueued.Error())
	}
	if m.Status.Phase == v1alpha1.MachineReady {
		r.Boots.heard(m.Name, readyOf(node).LastHeartbeatTime.Time)
	}
	reported := r.bootReport(m, instance, said)
	checked := r.admission(ctx, m, instance)
	return soonest(wait, credential.left(r.Now()), routed, marked, evacuated, reported, checked, r.untilLate(m)), nil
}

// lost deletes a Machine whose instance is gone without it: its data cannot come back, and its group replaces it.
func (r *machines) lost(ctx context.Context, m *v1alpha1.Machine) error {
	r.judge(m, v1alpha1.MachineTerminating, "InstanceLost", "the provider no longer has the instance")
	r.recorder.Eventf(m, nil, corev1.EventTypeWarning, "InstanceLost", "Delete",
		"the provider no longer has the instance; deleting the machine, so that its group replaces it")
	if err := r.management.Delete(ctx, m, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the machine: %w", err)
	}
	return nil
}

// failed notes an error in the status, for people, and passes it on, for the queue.
func (r *machines) failed(m *v1alpha1.Machine, reason string, err error) error {
	phase := m.Status.Phase
	if phase == "" {
		phase = v1alpha1.MachinePending
	}
	if phase == v1alpha1.MachineReady && !errors.Is(err, machine.ErrDamaged) {
		return err // a machine that serves goes on serving while something else about it fails
	}
	r.judge(m, phase, reason, err.Error())
	return err
}

// judge sets phase and condition.
func (r *machines) judge(m *v1alpha1.Machine, phase v1alpha1.MachinePhase, reason, message string) {
	status := metav1.ConditionFalse
	if phase == v1alpha1.MachineReady {
		status = metav1.ConditionTrue
	}
	m.Status.Phase = phase
	setReady(&m.Status.Conditions, r.Now(), m.Generation, status, reason, message)
}

func (r *machines) writeStatus(ctx context.Context, before, m *v1alpha1.Machine) error {
	if equality.Semantic.DeepEqual(before.Status, m.Status) {
		return nil
	}
	if err := r.management.Status().Patch(ctx, m, lockedPatch(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of the machine: %w", err)
	}
	r.memory.wrote(m)
	return nil
}

// soonest returns the smallest of the durations that are above 0, or 0.
func soonest(durations ...time.Duration) time.Duration {
	var out time.Duration
	for _, d := range durations {
		if d > 0 && (out == 0 || d < out) {
			out = d
		}
	}
	return out
}

// forget drops what is remembered of a machine that is gone.
func (r *machines) forget(id string) {
	r.steps.Forget(id)
	r.relaunch.forget(id)
	r.Boots.end(id)
}
