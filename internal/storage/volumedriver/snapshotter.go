// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/storage/efs"
)

// Reasons, finalizers and annotations that upstream's csi-snapshotter and snapshot-controller share.
const (
	reasonSnapshotFailed      = "SnapshotCreationFailed"
	reasonSnapshotCheckFailed = "SnapshotContentCheckandUpdateFailed"
	reasonSnapshotStays       = "SnapshotDeleteError"

	finalizerContent        = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
	annotationBeingDeleted  = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted"
	parametersOfSidecars    = "csi.storage.k8s.io/"
	deletionPolicyOfContent = "Delete"
)

const (
	// kindsInterval is how often it is looked whether the cluster has the kinds of snapshots.
	kindsInterval = 5 * time.Second
	// snapshotsAtOnce is how many snapshots are made at a time.
	snapshotsAtOnce = 4
)

// snapshotter makes and removes the snapshots of VolumeSnapshotContents: what upstream's csi-snapshotter does beside a
// driver. The snapshot-controller makes these of VolumeSnapshots, and marks those that are to go.
//
// The id of a snapshot follows from the VolumeSnapshot's UID, so one that is being made when its content goes is found
// without a mark on the content.
type snapshotter struct {
	cluster     kubernetes.Interface
	objects     dynamic.Interface
	clusterName string
	volumes     csi.ControllerServer
	events      record.EventRecorder
}

// run makes and removes snapshots whenever the cluster has the kinds, until the context ends.
func (s *snapshotter) run(ctx context.Context) {
	ticker := time.NewTicker(kindsInterval)
	defer ticker.Stop()
	var stop func()
	for ctx.Err() == nil {
		switch has, err := s.hasKinds(); {
		case err != nil: // it is as it was
		case has && stop == nil:
			stop = s.start(ctx)
		case !has && stop != nil:
			stop()
			stop = nil
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	if stop != nil {
		stop()
	}
}

// hasKinds reports whether the cluster has the kinds of snapshots.
func (s *snapshotter) hasKinds() (bool, error) {
	list, err := s.cluster.Discovery().ServerResourcesForGroupVersion(snapshotVersion.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == snapshotContents }), nil
}

// start begins to make and remove snapshots, until it is stopped.
func (s *snapshotter) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstPause, longestPause))
	factory := dynamicinformer.NewDynamicSharedInformerFactory(s.objects, 0)
	add := func(object any) {
		if content, ok := object.(*unstructured.Unstructured); ok && driverOf(content) == efs.Driver {
			queue.Add(content.GetName())
		}
	}
	_, err := factory.ForResource(snapshotContentsByName).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(was, is any) {
		if concerns(was, is) {
			add(is)
		}
	}})
	if err != nil {
		klog.FromContext(ctx).Error(err, "no snapshots are made")
	}
	factory.Start(ctx.Done())
	var group sync.WaitGroup
	for range snapshotsAtOnce {
		group.Go(func() { s.work(ctx, queue) })
	}
	return func() {
		cancel()
		queue.ShutDown()
		factory.Shutdown()
		group.Wait()
	}
}

// concerns reports whether a content has changed in something that others write: what the snapshotter writes itself
// does not cut short the pause after a failure.
func concerns(was, is any) bool {
	before, ok := was.(*unstructured.Unstructured)
	now, also := is.(*unstructured.Unstructured)
	return !ok || !also || before.GetGeneration() != now.GetGeneration() || !maps.Equal(before.GetAnnotations(), now.GetAnnotations()) ||
		(before.GetDeletionTimestamp() == nil) != (now.GetDeletionTimestamp() == nil)
}

func driverOf(content *unstructured.Unstructured) string {
	driver, _, _ := unstructured.NestedString(content.Object, "spec", "driver")
	return driver
}

func (s *snapshotter) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) {
	for {
		name, ended := queue.Get()
		if ended {
			return
		}
		if err := s.sync(ctx, name); err != nil {
			klog.FromContext(ctx).V(1).Info("a snapshot is not as its content wants it; it is tried again", "content", name, "error", err)
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// sync makes, looks for or removes the snapshot of a content. Every step may come again.
func (s *snapshotter) sync(ctx context.Context, name string) error {
	within, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	content := &snapshotContent{}
	if err := readSnapshot(within, s.contents(), name, content); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	switch source := content.Spec.Source; {
	case content.Spec.Driver != efs.Driver:
		return nil
	case content.DeletionTimestamp != nil:
		return s.remove(within, content)
	case content.Status.ReadyToUse:
		return nil
	case source.SnapshotHandle != "":
		found, err := s.find(within, source.SnapshotHandle)
		if err != nil {
			return s.failed(ctx, content, reasonSnapshotCheckFailed, "Failed to check and update snapshot content: ", err)
		}
		return s.ready(ctx, content, found)
	case source.VolumeHandle != "":
		made, err := s.create(within, content)
		if err != nil {
			if errors.Is(within.Err(), context.DeadlineExceeded) {
				err = fmt.Errorf("it took longer than %s: %w", copyTime, err)
			}
			return s.failed(ctx, content, reasonSnapshotFailed, "Failed to create snapshot: ", err)
		}
		return s.ready(ctx, content, made)
	}
	return nil
}

func (s *snapshotter) contents() dynamic.ResourceInterface {
	return s.objects.Resource(snapshotContentsByName)
}

func snapshotName(content *snapshotContent) string {
	return efs.SnapshotName(string(content.Spec.VolumeSnapshotRef.UID))
}

// create makes the snapshot of a content.
func (s *snapshotter) create(ctx context.Context, content *snapshotContent) (*csi.Snapshot, error) {
	if content.Spec.VolumeSnapshotRef.UID == "" {
		return nil, errors.New("the content is not bound to a VolumeSnapshot")
	}
	if content.Spec.ClassName == "" {
		return nil, errors.New("the content has no VolumeSnapshotClass: name one, or make one the default")
	}
	var class snapshotClass
	if err := readSnapshot(ctx, s.objects.Resource(snapshotClassResource), content.Spec.ClassName, &class); err != nil {
		return nil, fmt.Errorf("the VolumeSnapshotClass: %w", err)
	}
	maps.DeleteFunc(class.Parameters, func(name, _ string) bool { return strings.HasPrefix(name, parametersOfSidecars) })
	ctx = telling(ctx, func(message string) {
		s.events.Event(&content.Spec.VolumeSnapshotRef, corev1.EventTypeNormal, reasonCopying, message)
	})
	response, err := s.volumes.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{
		Name: snapshotName(content), SourceVolumeId: content.Spec.Source.VolumeHandle, Parameters: class.Parameters,
	})
	if err != nil {
		return nil, errors.New(status.Convert(err).Message())
	}
	return response.GetSnapshot(), nil
}

// find looks for a snapshot that was made before its content.
func (s *snapshotter) find(ctx context.Context, id string) (*csi.Snapshot, error) {
	response, err := s.volumes.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: id})
	if err != nil {
		return nil, errors.New(status.Convert(err).Message())
	}
	if len(response.GetEntries()) == 0 {
		return nil, fmt.Errorf("there is no snapshot %s of cluster %s", id, s.clusterName)
	}
	return response.GetEntries()[0].GetSnapshot(), nil
}

// ready says in the status of a content that its snapshot can be used.
func (s *snapshotter) ready(ctx context.Context, content *snapshotContent, made *csi.Snapshot) error {
	return s.say(ctx, content, map[string]any{"status": snapshotContentStatus{
		SnapshotHandle: made.GetSnapshotId(), ReadyToUse: made.GetReadyToUse(), CreationTime: made.GetCreationTime().AsTime().UnixNano(), RestoreSize: made.GetSizeBytes(),
	}}, "status")
}

// failed says in the status of a content why there is no snapshot, and in an Event, once.
func (s *snapshotter) failed(ctx context.Context, content *snapshotContent, reason, what string, err error) error {
	message := what + err.Error()
	if content.Status.Error != nil && content.Status.Error.Message == message || ctx.Err() != nil {
		return err
	}
	s.events.Event(referenceOf(content), corev1.EventTypeWarning, reason, message)
	now := metav1.Now()
	return errors.Join(err, s.say(ctx, content, map[string]any{"status": map[string]any{"readyToUse": false, "error": snapshotError{&now, message}}}, "status"))
}

// remove removes the snapshot of a content that is being deleted, unless it is to stay, and lets the content go. The
// snapshot-controller says when: once the VolumeSnapshot that the content is bound to goes, and nothing is restored
// from it.
func (s *snapshotter) remove(ctx context.Context, content *snapshotContent) error {
	unbound := content.Spec.Source.SnapshotHandle != "" && content.Spec.VolumeSnapshotRef.UID == ""
	if _, marked := content.Annotations[annotationBeingDeleted]; !marked && !unbound {
		return nil
	}
	id := content.Status.SnapshotHandle
	if id == "" && content.Spec.Source.VolumeHandle != "" {
		id = v1alpha1.VolumeSnapshotID(s.clusterName, snapshotName(content)) // it may be half made
	}
	if content.Spec.DeletionPolicy == deletionPolicyOfContent && id != "" {
		if _, err := s.volumes.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id}); err != nil {
			said := status.Convert(err).Message()
			s.events.Event(referenceOf(content), corev1.EventTypeWarning, reasonSnapshotStays, "Failed to delete snapshot: "+said)
			return errors.New(said)
		}
	}
	if !slices.Contains(content.Finalizers, finalizerContent) {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(content.Finalizers), func(f string) bool { return f == finalizerContent })
	return s.say(ctx, content, map[string]any{"metadata": map[string]any{"finalizers": others, "resourceVersion": content.ResourceVersion}})
}

// say changes a content.
func (s *snapshotter) say(ctx context.Context, content *snapshotContent, change any, subresources ...string) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = s.contents().Patch(ctx, content.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing VolumeSnapshotContent %s: %w", content.Name, err)
	}
	return nil
}

func referenceOf(content *snapshotContent) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: content.APIVersion, Kind: content.Kind, Name: content.Name, UID: content.UID}
}
