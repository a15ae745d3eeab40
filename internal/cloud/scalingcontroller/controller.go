// SPDX-License-Identifier: Apache-2.0

package scalingcontroller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/scalinglaunch"
	"muster.dev/muster/internal/cloud/scalingplan"
)

const (
	// soon is the time until a look after a conflict, which says that the group was changed meanwhile.
	soon = 20 * time.Millisecond
	// refreshAgain is how often a refresh is looked at: an instance becomes healthy by the clock.
	refreshAgain = time.Second
)

// Config configures the controller.
type Config struct {
	// Management writes, and reads past all memory.
	Management client.Client
	Launcher   scalinglaunch.Launcher
	Log        *slog.Logger
	Now        func() time.Time // the clock if nil
}

// Add adds the controller to a manager of the management plane.
func Add(mgr manager.Manager, c Config) error {
	if c.Management == nil || c.Launcher == nil || c.Log == nil {
		return errors.New("the controller of Auto Scaling groups needs a client of the management plane, a launcher and a log")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	err := builder.ControllerManagedBy(mgr).Named("autoscalinggroup").For(&v1alpha1.AutoScalingGroup{}).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(groupOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
		Complete(&groups{c, mgr.GetClient()})
	if err != nil {
		return fmt.Errorf("adding the controller of Auto Scaling groups: %w", err)
	}
	c.Management = mgr.GetClient() // every write is refused if the node group was changed since
	err = builder.ControllerManagedBy(mgr).Named("nodegroup-schedule").
		For(&v1alpha1.NodeGroup{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).Complete(&schedules{c})
	if err != nil {
		return fmt.Errorf("adding the controller of scheduled actions: %w", err)
	}
	return nil
}

// groupOf is the group of a Machine.
func groupOf(_ context.Context, object client.Object) []reconcile.Request {
	m, ok := object.(*v1alpha1.Machine)
	if !ok || m.Spec.ScalingGroup == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: v1alpha1.AutoScalingGroupSlug(m.Spec.ScalingGroup.Name)}}}
}

// groups reconciles AutoScalingGroups. A read has the change that caused it, because both come from one cache. The cache may be
// behind the controller's own writes: these are refused if the group was changed since, and else do nothing a second time. A Machine
// that was seen once is not unseen.
type groups struct {
	Config
	cached client.Reader
}

// Reconcile implements [reconcile.Reconciler].
func (r *groups) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	g := &v1alpha1.AutoScalingGroup{}
	err := r.cached.Get(ctx, request.NamespacedName, g)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading Auto Scaling group %s: %w", request.Name, err)
	}
	if err := r.endOrphans(ctx, request.Name, g.UID); err != nil || g.UID == "" {
		return settle(0, err)
	}
	if g.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(g, v1alpha1.FinalizerAutoScalingGroup) {
		before := g.DeepCopy()
		controllerutil.AddFinalizer(g, v1alpha1.FinalizerAutoScalingGroup)
		if err := r.Management.Patch(ctx, g, locked(before)); err != nil {
			return settle(0, fmt.Errorf("adding the finalizer: %w", err))
		}
	}
	return settle(r.bring(ctx, g))
}

// bring takes the next step of a group, and returns when to look again; 0 for when something changes.
func (r *groups) bring(ctx context.Context, g *v1alpha1.AutoScalingGroup) (time.Duration, error) {
	wait, changed, err := r.schedule(ctx, g)
	if err != nil || changed {
		return soon, err
	}
	before := g.DeepCopy()
	v, err := r.look(ctx, g)
	if err != nil {
		return 0, err
	}
	if err := r.takeRefresh(ctx, v); err != nil {
		return 0, err
	}
	actions := scalingplan.Next(v.plan(r.Now()), v.instances(), r.Now())
	if err := r.note(ctx, v, actions); err != nil {
		return 0, err
	}
	v.sum(r.Now())
	if err := r.write(ctx, before, g); err != nil {
		return 0, err
	}
	if err := r.carryOut(ctx, v, actions); err != nil {
		return 0, err
	}
	if !g.DeletionTimestamp.IsZero() && len(g.Status.Instances) == 0 {
		return 0, r.release(ctx, g)
	}
	return soonest(wait, v.again(r.Now())), nil
}

// release lets a deleted group go if no Machine is a member of it any more.
func (r *groups) release(ctx context.Context, g *v1alpha1.AutoScalingGroup) error {
	members, err := members(ctx, r.Management, g.UID)
	if err != nil || len(members) > 0 || !controllerutil.ContainsFinalizer(g, v1alpha1.FinalizerAutoScalingGroup) {
		return err
	}
	before := g.DeepCopy()
	controllerutil.RemoveFinalizer(g, v1alpha1.FinalizerAutoScalingGroup)
	if err := r.Management.Patch(ctx, g, locked(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer: %w", err)
	}
	return nil
}

// members are the Machines of a group.
func members(ctx context.Context, reader client.Reader, uid types.UID) ([]*v1alpha1.Machine, error) {
	var all v1alpha1.MachineList
	if err := reader.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing machines: %w", err)
	}
	var members []*v1alpha1.Machine
	for i := range all.Items {
		if m := &all.Items[i]; m.Spec.ScalingGroup != nil && m.Spec.ScalingGroup.UID == uid {
			members = append(members, m)
		}
	}
	return members, nil
}

// endOrphans deletes the Machines that name a group of a name, if they are not of the one that has it now. It believes the API
// server only: a cache may not show the group yet.
func (r *groups) endOrphans(ctx context.Context, name string, cached types.UID) error {
	var all v1alpha1.MachineList
	if err := r.cached.List(ctx, &all); err != nil {
		return fmt.Errorf("listing machines: %w", err)
	}
	now := &v1alpha1.AutoScalingGroup{}
	asked := false
	for i := range all.Items {
		m := &all.Items[i]
		of := m.Spec.ScalingGroup
		if of == nil || of.UID == cached || v1alpha1.AutoScalingGroupSlug(of.Name) != name || !m.DeletionTimestamp.IsZero() {
			continue
		}
		if !asked {
			if err := r.Management.Get(ctx, client.ObjectKey{Name: name}, now); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("asking whether the group of machine %s exists: %w", m.Name, err)
			}
			asked = true
		}
		if of.UID == now.UID {
			continue
		}
		r.Log.WarnContext(ctx, "deleting a machine whose Auto Scaling group is gone", "machine", m.Name, "group", of.Name)
		if err := r.Management.Delete(ctx, m, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting machine %s, whose Auto Scaling group is gone: %w", m.Name, err)
		}
	}
	return nil
}

func (r *groups) write(ctx context.Context, before, g *v1alpha1.AutoScalingGroup) error {
	if same(before, g) {
		return nil
	}
	if err := r.Management.Status().Patch(ctx, g, locked(before)); err != nil {
		return fmt.Errorf("writing the status of the group: %w", err)
	}
	return nil
}

// newID makes the id of an instance.
func newID() string {
	var random [ec2id.Entropy]byte
	_, _ = rand.Read(random[:]) // never fails
	return ec2id.Instance.New(random)
}

// newUUID makes a token of a lifecycle action.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// locked is a patch that fails if the object changed since it was read.
func locked(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// soonest is the shorter of two waits. 0 means no wait.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// settle turns a conflict into another look.
func settle(again time.Duration, err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: again}, nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), errors.Is(err, errAgain):
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{}, err
}
