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
	"muster.dev/muster/internal/machine/machine"
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
		r.memory.wrote(m, r.Now())
		before = m.DeepCopy()
	}
	next, err := r.bring(ctx, m)
	if wait := r.memory.gather(before, m, r.Now()); wait > 0 && err == nil {
		return reconcile.Result{RequeueAfter: soonest(next, wait)}, nil
	}
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
	missing := errors.Is(err, machine.ErrNotFound)
	if missing && m.Status.ProviderID != "" {
		return 0, r.lost(ctx, m)
	}
	t := &turn{machines: r, m: m, provider: provider, instance: instance}
	again := time.Duration(0)
	if err != nil && !missing {
		err = r.failed(m, "ProviderFailed", fmt.Errorf("asking the provider for the instance: %w", err))
	} else {
		again, err = t.run(ctx)
	}
	evacuated, failed := t.evacuate(ctx) // also of a machine that cannot run: a rollout waits for it
	return soonest(again, evacuated), errors.Join(err, failed)
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
	if status == metav1.ConditionFalse {
		message = r.withCause(symptom(m, r.Now(), v1alpha1.ConditionReady, reason, message))
	}
	setReady(&m.Status.Conditions, r.Now(), m.Generation, status, reason, message)
}

// writeStatus writes the status of a machine if it is news. Nobody else writes it, and a write about another version than
// was read is refused, so it is replaced as a whole: for a patch the API server would encode the object, merge and decode
// it first, and the service would encode it twice to tell the difference.
func (r *machines) writeStatus(ctx context.Context, before, m *v1alpha1.Machine) error {
	if equality.Semantic.DeepEqual(before.Status, m.Status) {
		return nil
	}
	if err := r.management.Status().Update(ctx, m); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of the machine: %w", err)
	}
	r.memory.wrote(m, r.Now())
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
