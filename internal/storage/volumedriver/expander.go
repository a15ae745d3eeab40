// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"muster.dev/muster/internal/storage/efs"
)

// Reasons of Events, those of upstream's external resizer.
const (
	reasonResizing     = "Resizing"
	reasonResized      = "VolumeResizeSuccessful"
	reasonResizeFailed = "VolumeResizeFailed"
)

// expander makes the volumes of claims larger that ask for more than they have: what upstream's external resizer does
// beside a driver. The API server lets a claim ask for more only if its StorageClass allows that, and never for less
// than it has.
type expander struct {
	cluster kubernetes.Interface
	volumes csi.ControllerServer
	events  record.EventRecorder
}

// expand makes volumes larger until the context ends.
func expand(ctx context.Context, cluster kubernetes.Interface, volumes csi.ControllerServer) {
	recorder, stop := events(ctx, cluster)
	defer stop()
	e := &expander{cluster, volumes, recorder}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstPause, longestPause))
	factory := informers.NewSharedInformerFactory(cluster, 0)
	claims := factory.Core().V1().PersistentVolumeClaims().Informer()
	add := func(object any) {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && asksForMore(claim) {
			queue.Add(cache.ObjectName{Namespace: claim.Namespace, Name: claim.Name})
		}
	}
	if _, err := claims.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, is any) { add(is) }}); err != nil {
		klog.FromContext(ctx).Error(err, "volumes are not expanded")
		return
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	go func() {
		<-ctx.Done()
		queue.ShutDown()
	}()
	for {
		name, ended := queue.Get()
		if ended {
			return
		}
		if err := e.expand(ctx, name); err != nil {
			klog.FromContext(ctx).V(1).Info("a volume is not expanded; it is tried again", "claim", name, "error", err)
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// asksForMore reports whether a claim asks for more than its volume has.
func asksForMore(claim *corev1.PersistentVolumeClaim) bool {
	has := claim.Status.Capacity[corev1.ResourceStorage]
	return claim.Status.Phase == corev1.ClaimBound && claim.Spec.VolumeName != "" && claim.DeletionTimestamp.IsZero() && claim.Spec.Resources.Requests.Storage().Cmp(has) > 0
}

// expand makes the volume of a claim as large as it asks, then says so in the volume and in the claim. Every step may
// come again.
func (e *expander) expand(ctx context.Context, name cache.ObjectName) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	claim, err := e.cluster.CoreV1().PersistentVolumeClaims(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !asksForMore(claim) {
		return nil
	}
	volume, err := e.cluster.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	source := volume.Spec.CSI
	if source == nil || source.Driver != efs.Driver || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID {
		return nil
	}
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if claim, err = e.say(ctx, claim, begun(claim.Status, wanted, metav1.Now())); err != nil {
		return err
	}
	e.events.Eventf(claim, corev1.EventTypeNormal, reasonResizing, "expanding volume %s to %s", volume.Name, wanted.String())
	response, err := e.volumes.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
		VolumeId: source.VolumeHandle, CapacityRange: &csi.CapacityRange{RequiredBytes: wanted.Value()},
	})
	if err != nil {
		said := status.Convert(err).Message()
		e.events.Event(claim, corev1.EventTypeWarning, reasonResizeFailed, said)
		_, sayErr := e.say(ctx, claim, failed(claim.Status, status.Code(err), said, metav1.Now()))
		return errors.Join(errors.New(said), sayErr)
	}
	size := *resource.NewQuantity(response.GetCapacityBytes(), resource.BinarySI)
	if has := volume.Spec.Capacity[corev1.ResourceStorage]; has.Cmp(size) < 0 {
		volume = volume.DeepCopy()
		volume.Spec.Capacity[corev1.ResourceStorage] = size
		if _, err := e.cluster.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("writing the size of volume %s: %w", volume.Name, err)
		}
	}
	if _, err := e.say(ctx, claim, done(claim.Status, size)); err != nil {
		return err
	}
	e.events.Eventf(claim, corev1.EventTypeNormal, reasonResized, "volume %s has %s", volume.Name, size.String())
	return nil
}

// say writes the status of a claim.
func (e *expander) say(ctx context.Context, claim *corev1.PersistentVolumeClaim, s corev1.PersistentVolumeClaimStatus) (*corev1.PersistentVolumeClaim, error) {
	claim = claim.DeepCopy()
	claim.Status = s
	written, err := e.cluster.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("writing the status of claim %s: %w", claim.Name, err)
	}
	return written, nil
}

// begun is the status of a claim whose volume is being expanded.
func begun(s corev1.PersistentVolumeClaimStatus, size resource.Quantity, now metav1.Time) corev1.PersistentVolumeClaimStatus {
	s = *s.DeepCopy()
	s.AllocatedResources = with(s.AllocatedResources, size)
	s.AllocatedResourceStatuses = with(s.AllocatedResourceStatuses, corev1.PersistentVolumeClaimControllerResizeInProgress)
	s.Conditions = without(s.Conditions, corev1.PersistentVolumeClaimResizing)
	s.Conditions = append(s.Conditions, corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue, LastTransitionTime: now})
	return s
}

// failed is the status of a claim whose volume could not be expanded: not at all, or not yet.
func failed(s corev1.PersistentVolumeClaimStatus, code codes.Code, message string, now metav1.Time) corev1.PersistentVolumeClaimStatus {
	s = *s.DeepCopy()
	switch code { //nolint:exhaustive // the others pass
	case codes.InvalidArgument, codes.OutOfRange, codes.NotFound, codes.ResourceExhausted, codes.FailedPrecondition:
		s.AllocatedResourceStatuses = with(s.AllocatedResourceStatuses, corev1.PersistentVolumeClaimControllerResizeInfeasible)
	}
	s.Conditions = without(s.Conditions, corev1.PersistentVolumeClaimControllerResizeError)
	s.Conditions = append(s.Conditions, corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue, LastTransitionTime: now, Message: message,
	})
	return s
}

// done is the status of a claim whose volume has been expanded.
func done(s corev1.PersistentVolumeClaimStatus, size resource.Quantity) corev1.PersistentVolumeClaimStatus {
	s = *s.DeepCopy()
	s.Capacity = with(s.Capacity, size)
	delete(s.AllocatedResourceStatuses, corev1.ResourceStorage)
	s.Conditions = without(s.Conditions, corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimControllerResizeError)
	return s
}

func with[M ~map[corev1.ResourceName]V, V any](all M, value V) M {
	copied := M{}
	maps.Copy(copied, all)
	copied[corev1.ResourceStorage] = value
	return copied
}

func without(all []corev1.PersistentVolumeClaimCondition, types ...corev1.PersistentVolumeClaimConditionType) []corev1.PersistentVolumeClaimCondition {
	return slices.DeleteFunc(slices.Clone(all), func(c corev1.PersistentVolumeClaimCondition) bool { return slices.Contains(types, c.Type) })
}
