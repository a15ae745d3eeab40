// SPDX-License-Identifier: Apache-2.0

package filesystemcontroller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/storage/filestore"
)

// The reasons of the condition Ready.
const (
	ReasonAvailable = "Available"
	ReasonInUse     = "InUse"
	ReasonFailed    = "Failed"
)

// The reasons of the condition DiskPressure, those of a Node.
const (
	ReasonHasPressure = "HostHasDiskPressure"
	ReasonNoPressure  = "HostHasNoDiskPressure"
)

// spaceInterval is how often it is looked what the disk has left.
const spaceInterval = 10 * time.Second

// Store makes and removes the directories of file systems.
type Store interface {
	Ensure(id string) error
	Remove(id string) error
	// DiscardPlace removes a snapshot, if it is there.
	DiscardPlace(at filestore.Place) error
	// Space returns the size and the free room of the disk with the file systems.
	Space() (filestore.Space, error)
	// Sweep removes what an earlier process of the service left.
	Sweep() error
}

// Add adds the controller to a manager of the management plane.
func Add(mgr manager.Manager, store Store, log *slog.Logger) error {
	if store == nil || log == nil {
		return errors.New("the controller of file systems needs a store and a log")
	}
	err := builder.ControllerManagedBy(mgr).Named("filesystem").For(&v1alpha1.FileSystem{}).
		Watches(&v1alpha1.AccessPoint{}, handler.EnqueueRequestsFromMapFunc(systemOf)).
		Watches(&v1alpha1.VolumeSnapshot{}, handler.EnqueueRequestsFromMapFunc(systemOf)).
		Complete(&reconciler{store: store, api: mgr.GetClient(), live: mgr.GetAPIReader()})
	if err != nil {
		return fmt.Errorf("adding the controller of file systems: %w", err)
	}
	begin := manager.RunnableFunc(func(ctx context.Context) error {
		if err := store.Sweep(); err != nil {
			log.WarnContext(ctx, "data of volumes that are gone may be left", "error", err)
		}
		return First(ctx, mgr.GetClient())
	})
	if err := mgr.Add(begin); err != nil {
		return fmt.Errorf("adding what makes the default file system: %w", err)
	}
	return nil
}

// First makes the file system that every account has, unless it is there.
func First(ctx context.Context, api client.Client) error {
	err := api.Create(ctx, &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultFileSystemID(account.DefaultID)},
		Spec:       v1alpha1.FileSystemSpec{Name: v1alpha1.DefaultFileSystem, CreationToken: v1alpha1.DefaultFileSystem},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the default file system: %w", err)
	}
	return nil
}

func systemOf(_ context.Context, object client.Object) []reconcile.Request {
	var system string
	switch object := object.(type) {
	case *v1alpha1.AccessPoint:
		system = object.Spec.FileSystemID
	case *v1alpha1.VolumeSnapshot:
		system = object.Spec.FileSystemID
	default:
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: system}}}
}

type reconciler struct {
	store Store
	api   client.Client
	live  client.Reader // without a cache
}

// Reconcile implements [reconcile.Reconciler].
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	unsnapped := r.removeSnapshots(ctx, request.Name)
	system := &v1alpha1.FileSystem{}
	if err := r.api.Get(ctx, request.NamespacedName, system); err != nil {
		return reconcile.Result{}, errors.Join(client.IgnoreNotFound(err), unsnapped)
	}
	if !system.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, errors.Join(r.remove(ctx, system), unsnapped)
	}
	before := system.DeepCopy()
	if controllerutil.AddFinalizer(system, v1alpha1.FinalizerFileSystem) {
		if err := r.api.Patch(ctx, system, locked(before)); err != nil {
			return reconcile.Result{}, fmt.Errorf("adding the finalizer of %s: %w", system.Name, err)
		}
	}
	if err := r.store.Ensure(system.Name); err != nil {
		return reconcile.Result{}, errors.Join(err, r.say(ctx, system, metav1.ConditionFalse, ReasonFailed, err.Error()))
	}
	if err := r.say(ctx, system, metav1.ConditionTrue, ReasonAvailable, "the file system can be mounted"); err != nil {
		return reconcile.Result{}, err
	}
	space, err := r.store.Space()
	if err == nil {
		err = r.write(ctx, system, pressure(space))
	}
	return reconcile.Result{RequeueAfter: spaceInterval}, errors.Join(err, unsnapped)
}

// pressure is the condition DiskPressure. Its message depends only on the size of the disk, so it does not change while
// the condition lasts.
func pressure(space filestore.Space) metav1.Condition {
	if space.Room() > 0 {
		return metav1.Condition{
			Type: v1alpha1.ConditionDiskPressure, Status: metav1.ConditionFalse, Reason: ReasonNoPressure, Message: "the host's disk has room for new volumes",
		}
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionDiskPressure, Status: metav1.ConditionTrue, Reason: ReasonHasPressure,
		Message: fmt.Sprintf("the host's disk has less than %d MiB, or a hundredth of its files, left: no volumes are made, and writes fail when it has none; free some, or delete claims that nothing uses", space.Reserve()>>20),
	}
}

// removeSnapshots removes the data of snapshots of a file system that people delete. Data that no object names stays:
// it may belong to objects that were made after the backup from which the management plane was restored.
func (r *reconciler) removeSnapshots(ctx context.Context, system string) error {
	all := &v1alpha1.VolumeSnapshotList{}
	if err := r.api.List(ctx, all); err != nil {
		return fmt.Errorf("listing snapshots of volumes: %w", err)
	}
	var errs []error
	for i := range all.Items {
		one := &all.Items[i]
		if one.Spec.FileSystemID != system || one.DeletionTimestamp.IsZero() {
			continue
		}
		// The API server's own: a cache may not know yet that this one is gone, and a new one of its name has data by
		// now.
		err := r.live.Get(ctx, client.ObjectKeyFromObject(one), one)
		if apierrors.IsNotFound(err) || err == nil && (one.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(one, v1alpha1.FinalizerVolumeSnapshot)) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("reading snapshot %s: %w", one.Name, err))
			continue
		}
		if err := r.store.DiscardPlace(filestore.Place{FileSystemID: system, Path: "/" + one.Name, Snapshot: true}); err != nil {
			errs = append(errs, fmt.Errorf("removing snapshot %s: %w", one.Name, err))
			continue
		}
		before := one.DeepCopy()
		controllerutil.RemoveFinalizer(one, v1alpha1.FinalizerVolumeSnapshot)
		if err := r.api.Patch(ctx, one, locked(before)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("removing the finalizer of %s: %w", one.Name, err))
		}
	}
	return errors.Join(errs...)
}

// remove removes a file system that no access point or snapshot names. The lists are the API server's own: a cache may
// not know of a new one yet.
func (r *reconciler) remove(ctx context.Context, system *v1alpha1.FileSystem) error {
	if !controllerutil.ContainsFinalizer(system, v1alpha1.FinalizerFileSystem) {
		return nil
	}
	points, snapshots := &v1alpha1.AccessPointList{}, &v1alpha1.VolumeSnapshotList{}
	if err := r.live.List(ctx, points); err != nil {
		return fmt.Errorf("listing access points: %w", err)
	}
	if err := r.live.List(ctx, snapshots); err != nil {
		return fmt.Errorf("listing snapshots of volumes: %w", err)
	}
	left, example := 0, ""
	for i := range points.Items {
		if points.Items[i].Spec.FileSystemID == system.Name {
			left, example = left+1, points.Items[i].Name
		}
	}
	for i := range snapshots.Items {
		if snapshots.Items[i].Spec.FileSystemID == system.Name {
			left, example = left+1, snapshots.Items[i].Name
		}
	}
	if left > 0 {
		return r.say(ctx, system, metav1.ConditionFalse, ReasonInUse, fmt.Sprintf("it is being deleted, and has %d access points and snapshots, such as %s: delete them, or the claims and VolumeSnapshots that they are of", left, example))
	}
	if err := r.store.Remove(system.Name); err != nil {
		return errors.Join(err, r.say(ctx, system, metav1.ConditionFalse, ReasonFailed, err.Error()))
	}
	before := system.DeepCopy()
	controllerutil.RemoveFinalizer(system, v1alpha1.FinalizerFileSystem)
	if err := r.api.Patch(ctx, system, locked(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of %s: %w", system.Name, err)
	}
	return nil
}

func locked(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// say writes the condition Ready, if it changes.
func (r *reconciler) say(ctx context.Context, system *v1alpha1.FileSystem, s metav1.ConditionStatus, reason, message string) error {
	return r.write(ctx, system, metav1.Condition{Type: v1alpha1.ConditionReady, Status: s, Reason: reason, Message: message})
}

// write writes a condition, if it changes.
func (r *reconciler) write(ctx context.Context, system *v1alpha1.FileSystem, condition metav1.Condition) error {
	before := system.DeepCopy()
	condition.ObservedGeneration = system.Generation
	changed := meta.SetStatusCondition(&system.Status.Conditions, condition)
	if !changed && system.Status.ObservedGeneration == system.Generation {
		return nil
	}
	system.Status.ObservedGeneration = system.Generation
	if err := r.api.Status().Patch(ctx, system, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of %s: %w", system.Name, err)
	}
	return nil
}
