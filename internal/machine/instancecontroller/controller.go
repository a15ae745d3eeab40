// SPDX-License-Identifier: Apache-2.0

package instancecontroller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/loginkey"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/power"
	"muster.dev/muster/internal/machine/terminated"
	"muster.dev/muster/internal/node/sshserver"
	"muster.dev/muster/internal/plane/readiness"
)

// The reasons of the condition Ready that are written here.
const (
	reasonRunning     = "Running"
	reasonNoProvider  = "NoProvider"
	reasonFailed      = "LaunchFailed"
	reasonStopped     = "InstanceStopped"
	reasonStopFailed  = "StopFailed"
	reasonTermination = "TerminationFailed"
	reasonReserve     = "DiskReserve"
	reasonDamaged     = "RecordDamaged"
)

const (
	// lookAgain is the time between two looks at an instance that runs: one that stopped is booted again.
	lookAgain = 5 * time.Second
	// failedAgain is the time until a launch that failed is tried again.
	failedAgain = 10 * time.Second
	// sweepAgain is the time between two looks for terminated instances to forget.
	sweepAgain = time.Minute
	// soon is the time until a look with a newer cache.
	soon = 20 * time.Millisecond
	// workers is how many instances are brought forward at once.
	workers = 4
)

// Config configures the controller.
type Config struct {
	// Providers of machines. A machine of a provider that is not here waits.
	Providers machine.Providers
	// Room is what the host offers local machines; nil refuses nothing. A machine that is started asks for it.
	Room *hostroom.Room
	Log  *slog.Logger
	Now  func() time.Time // the clock if nil
}

// Add adds the controller to a manager of the management plane.
func Add(mgr manager.Manager, c Config) error {
	if c.Log == nil {
		return errors.New("the controller of instances needs a log")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	ofNoCluster := predicate.NewPredicateFuncs(func(object client.Object) bool {
		m, ok := object.(*v1alpha1.Machine)
		return ok && m.Spec.ClusterName == ""
	})
	err := builder.ControllerManagedBy(mgr).Named("instances").
		For(&v1alpha1.Machine{}, builder.WithPredicates(ofNoCluster, predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(&instances{Config: c, api: mgr.GetClient(), live: mgr.GetAPIReader(), events: mgr.GetEventRecorder("muster")})
	if err != nil {
		return fmt.Errorf("adding the controller of instances: %w", err)
	}
	forget := manager.RunnableFunc(func(ctx context.Context) error { sweep(ctx, mgr.GetClient(), c); return nil })
	if err := mgr.Add(forget); err != nil {
		return fmt.Errorf("adding what forgets terminated instances: %w", err)
	}
	return nil
}

// sweep forgets terminated instances until the context ends.
func sweep(ctx context.Context, api client.Client, c Config) {
	ticker := time.NewTicker(sweepAgain)
	defer ticker.Stop()
	for {
		if err := terminated.Sweep(ctx, api, c.Now()); err != nil && ctx.Err() == nil {
			c.Log.WarnContext(ctx, "terminated instances are remembered for longer", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// instances reconciles Machines of no cluster.
type instances struct {
	Config
	api    client.Client
	live   client.Reader // not from the cache
	events events.EventRecorder
}

// Reconcile implements [reconcile.Reconciler].
func (r *instances) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	m := &v1alpha1.Machine{}
	if err := r.api.Get(ctx, request.NamespacedName, m); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if m.Spec.ClusterName != "" {
		return reconcile.Result{}, nil
	}
	if !m.DeletionTimestamp.IsZero() {
		return settle(0, r.end(ctx, m))
	}
	before := m.DeepCopy()
	if controllerutil.AddFinalizer(m, v1alpha1.FinalizerMachine) {
		if err := r.api.Patch(ctx, m, locked(before)); err != nil {
			return settle(0, fmt.Errorf("adding the finalizer to machine %s: %w", m.Name, err))
		}
		before = m.DeepCopy()
	}
	again, err := r.bring(ctx, m)
	return settle(again, errors.Join(err, r.write(ctx, before, m)))
}

// bring launches an instance that does not run, and returns when to look again.
func (r *instances) bring(ctx context.Context, m *v1alpha1.Machine) (time.Duration, error) {
	provider, unknown := r.Providers.Find(m.Spec.Provider)
	if unknown != nil {
		r.judge(m, v1alpha1.MachinePending, reasonNoProvider, unknown.Error())
		return 0, nil // the machine waits, and says so
	}
	instance, err := provider.Get(ctx, m.Name)
	switch {
	case errors.Is(err, machine.ErrNotFound) && m.Status.ProviderID != "":
		r.Log.WarnContext(ctx, "the provider no longer has the instance; deleting the machine", "machine", m.Name)
		return 0, client.IgnoreNotFound(r.api.Delete(ctx, m, client.Preconditions{UID: &m.UID}))
	case errors.Is(err, machine.ErrDamaged):
		r.judge(m, cmp.Or(m.Status.Phase, v1alpha1.MachinePending), reasonDamaged, err.Error())
		return failedAgain, nil
	case err != nil && !errors.Is(err, machine.ErrNotFound):
		return 0, fmt.Errorf("asking the provider for instance %s: %w", m.Name, err)
	}
	step, err := power.Down(ctx, provider, m, instance, r.Now())
	if err != nil {
		r.judge(m, cmp.Or(m.Status.Phase, v1alpha1.MachinePending), reasonStopFailed, err.Error())
		return 0, err
	}
	if step.Off {
		r.judge(m, v1alpha1.MachineStopped, power.Was(m), "the instance does not run, as its spec says")
		if step.Again {
			return soon, nil
		}
		return lookAgain, nil
	}
	return r.launch(ctx, provider, m, instance)
}

// launch has an instance run, and returns when to look again.
func (r *instances) launch(ctx context.Context, provider machine.Provider, m *v1alpha1.Machine, instance machine.Instance) (time.Duration, error) {
	if instance.State != machine.Running {
		if instance.State == machine.Stopped && power.Was(m) == "" {
			r.judge(m, v1alpha1.MachineNotReady, reasonStopped, "the instance had stopped and is booted again")
		}
		if instance.State == machine.Stopped && power.Was(m) == v1alpha1.ReasonStopped {
			err := r.Room.Start(ctx, r.live, m)
			if errors.Is(err, hostroom.ErrFull) {
				r.judge(m, v1alpha1.MachineNotReady, hostroom.Code, err.Error())
				return lookAgain, nil
			}
			if err != nil {
				return 0, err
			}
		}
		groups, err := r.securityGroups(ctx, m)
		if err != nil {
			return 0, err
		}
		key, err := loginkey.Of(ctx, r.live, m, instance)
		if err != nil {
			r.judge(m, v1alpha1.MachinePending, reasonFailed, err.Error())
			return failedAgain, nil
		}
		instance, err = provider.Launch(ctx, machine.LaunchRequest{
			ID: m.Name, UserData: m.Spec.UserData, SubnetID: string(m.Spec.SubnetID),
			Type: m.Spec.Type(), DiskSize: int(m.Spec.Disk()), HopLimit: int(m.Spec.Metadata().HTTPPutResponseHopLimit), ImageID: m.Spec.ImageID, SecurityGroups: groups, Key: key,
			Scaled: m.Spec.ScalingGroup != nil, Spot: m.Spec.MarketType == v1alpha1.MarketSpot,
		})
		if errors.Is(err, machine.ErrDiskReserve) {
			r.judge(m, v1alpha1.MachineNotReady, reasonReserve, err.Error())
			return lookAgain, nil
		}
		if err != nil {
			r.Log.WarnContext(ctx, "launching an instance failed", "machine", m.Name, "error", err)
			r.judge(m, v1alpha1.MachinePending, reasonFailed, err.Error())
			return failedAgain, nil
		}
		if instance.NoSSHServer {
			r.events.Eventf(m, nil, corev1.EventTypeWarning, loginkey.NoServer, "Launch", "nobody can log in by key pair %s: %s", m.Spec.KeyName, sshserver.Missing)
		}
	}
	power.Up(m, r.Now())
	power.Settle(m, r.Now())
	adopt(m, instance)
	r.judge(m, v1alpha1.MachineReady, reasonRunning, "the instance runs; it is of no cluster")
	return lookAgain, nil
}

// securityGroups are those that an instance boots in; what its object says later is put in force while it runs.
func (r *instances) securityGroups(ctx context.Context, m *v1alpha1.Machine) ([]string, error) {
	if len(m.Spec.SecurityGroupIDs) > 0 || m.Spec.SubnetID == "" {
		return m.Spec.SecurityGroupIDs, nil
	}
	subnet := &v1alpha1.Subnet{}
	if err := r.api.Get(ctx, client.ObjectKey{Name: string(m.Spec.SubnetID)}, subnet); err != nil {
		return nil, fmt.Errorf("reading subnet %s of machine %s: %w", m.Spec.SubnetID, m.Name, err)
	}
	return []string{v1alpha1.DefaultSecurityGroupID(subnet.Spec.VPCID)}, nil
}

// end terminates an instance and lets its Machine go.
func (r *instances) end(ctx context.Context, m *v1alpha1.Machine) error {
	if !controllerutil.ContainsFinalizer(m, v1alpha1.FinalizerMachine) {
		return nil
	}
	before := m.DeepCopy()
	provider, unknown := r.Providers.Find(m.Spec.Provider)
	if unknown != nil {
		r.judge(m, v1alpha1.MachineTerminating, reasonNoProvider, unknown.Error()+", so it cannot end this one")
		return r.write(ctx, before, m)
	}
	r.judge(m, v1alpha1.MachineTerminating, readiness.ReasonTerminating, "the machine is being deleted")
	if err := provider.Terminate(ctx, m.Name); err != nil {
		r.judge(m, v1alpha1.MachineTerminating, reasonTermination, err.Error())
		return errors.Join(fmt.Errorf("terminating instance %s: %w", m.Name, err), r.write(ctx, before, m))
	}
	if err := terminated.Remember(ctx, r.api, m, r.Now()); err != nil {
		return err
	}
	before = m.DeepCopy()
	controllerutil.RemoveFinalizer(m, v1alpha1.FinalizerMachine)
	if err := r.api.Patch(ctx, m, locked(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of machine %s: %w", m.Name, err)
	}
	return nil
}

// adopt copies what the provider assigned.
func adopt(m *v1alpha1.Machine, instance machine.Instance) {
	m.Status.ProviderID = v1alpha1.ProviderID(instance.Zone, m.Name)
	m.Status.NodeName = instance.PrivateDNSName
	m.Status.DiskSize = int32(instance.DiskSize) //nolint:gosec // G115: it is at most MaxDisk
	m.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: instance.PrivateIP.String()},
		{Type: corev1.NodeInternalDNS, Address: instance.PrivateDNSName},
	}
	if len(m.Status.Join) == 0 && !instance.LaunchTime.IsZero() {
		m.Status.Join = []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(instance.LaunchTime)}}
	}
}

// judge sets phase and condition.
func (r *instances) judge(m *v1alpha1.Machine, phase v1alpha1.MachinePhase, reason, message string) {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: readiness.Shorten(message),
		ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(r.Now().Truncate(time.Second)),
	}
	if phase == v1alpha1.MachineReady {
		condition.Status = metav1.ConditionTrue
	}
	m.Status.Phase = phase
	meta.SetStatusCondition(&m.Status.Conditions, condition)
}

func (r *instances) write(ctx context.Context, before, m *v1alpha1.Machine) error {
	if equality.Semantic.DeepEqual(before.Status, m.Status) {
		return nil
	}
	if err := r.api.Status().Patch(ctx, m, locked(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of machine %s: %w", m.Name, err)
	}
	return nil
}

// locked is a patch that fails if the object changed since it was read, as from a cache that is behind.
func locked(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// settle turns a conflict, which says that the cache is behind, into another look.
func settle(again time.Duration, err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: again}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{}, err
}
