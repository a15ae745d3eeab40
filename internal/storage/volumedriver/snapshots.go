// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/storage/efs"
	"muster.dev/muster/internal/storage/filestore"
)

// CreateSnapshot implements [csi.ControllerServer]. The object is made before the directory or disk, which is there
// whole or not at all: what is left half-way has an object, and is made again.
func (c *controller) CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	name, volume := request.GetName(), request.GetSourceVolumeId()
	switch {
	case name == "":
		return nil, status.Error(codes.InvalidArgument, "a snapshot needs a name")
	case volume == "":
		return nil, status.Error(codes.InvalidArgument, "the id of the snapshot's volume is missing")
	case len(request.GetParameters()) > 0:
		return nil, status.Errorf(codes.InvalidArgument, "the VolumeSnapshotClass: parameters %q mean nothing for a snapshot: leave them out", slices.Sorted(maps.Keys(request.GetParameters())))
	}
	id := v1alpha1.VolumeSnapshotID(c.clusterName, name)
	if _, busy := c.copying.LoadOrStore(id, true); busy {
		return nil, status.Errorf(codes.Aborted, "snapshot %s is being made", name)
	}
	defer c.copying.Delete(id)
	left, since, err := c.lookAtSnapshot(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case left != nil && !left.DeletionTimestamp.IsZero():
		return nil, status.Errorf(codes.Unavailable, "VolumeSnapshot %s of the management plane is being deleted: the snapshot is made again once it is gone", id)
	case left != nil && left.Spec.SourceVolume != volume:
		return nil, status.Errorf(codes.AlreadyExists, "snapshot %s is one of volume %s by now", name, left.Spec.SourceVolume)
	case !since.IsZero():
		return &csi.CreateSnapshotResponse{Snapshot: described(left, since)}, nil // whatever has become of its source
	}
	source, err := c.sourceVolume(ctx, volume)
	if err == nil {
		err = c.hasRoom(0)
	}
	if err == nil {
		err = c.canCopy(ctx, &source)
	}
	// An object of an earlier attempt goes: the volume may have grown since.
	if left != nil && status.Code(err) != codes.Unavailable {
		if err := ForgetSnapshot(ctx, c.management, left); err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
	}
	if err != nil {
		return nil, err
	}
	snapshot := &v1alpha1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: id, Finalizers: []string{v1alpha1.FinalizerVolumeSnapshot}}, Spec: v1alpha1.VolumeSnapshotSpec{
		FileSystemID: source.place.FileSystemID, SourceVolume: volume, ClusterName: c.clusterName, Block: source.block, CapacityBytes: source.size,
	}}
	if err := c.whileStill(ctx, source, func() error { return c.makeSnapshot(ctx, source, snapshot) }); err != nil {
		return nil, err
	}
	made, since, err := c.lookAtSnapshot(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case made == nil || made.UID != snapshot.UID || !made.DeletionTimestamp.IsZero() || since.IsZero():
		return nil, c.deletedMeanwhile(snapshot)
	}
	return &csi.CreateSnapshotResponse{Snapshot: described(made, since)}, nil
}

// makeSnapshot makes the object of a snapshot, and its directory or disk.
func (c *controller) makeSnapshot(ctx context.Context, from source, snapshot *v1alpha1.VolumeSnapshot) error {
	if err := c.management.Create(ctx, snapshot); err != nil {
		return status.Errorf(codes.Unavailable, "snapshot %s: %v", snapshot.Name, err)
	}
	// The data may exist although the object did not: the snapshot is newer than the backup from which the management
	// plane was restored. The data is that of this snapshot, since the id follows from the cluster's VolumeSnapshot.
	there, err := c.files.Has(SnapshotPlace(snapshot))
	if err != nil {
		return status.Errorf(codes.Unavailable, "snapshot %s: %v", snapshot.Name, err)
	}
	if there {
		return nil
	}
	return c.copy(ctx, from, SnapshotPlace(snapshot), 0)
}

// deletedMeanwhile removes a snapshot whose object people deleted while it was made, and is the error that says so:
// whoever removes the data of deleted objects may have looked before it was there.
func (c *controller) deletedMeanwhile(snapshot *v1alpha1.VolumeSnapshot) error {
	if err := c.files.DiscardPlace(SnapshotPlace(snapshot)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return status.Errorf(codes.Unavailable, "snapshot %s: %v", snapshot.Name, err)
	}
	return status.Errorf(codes.Unavailable, "VolumeSnapshot %s of the management plane was deleted while the snapshot was made: it is made again", snapshot.Name)
}

// ForgetSnapshot deletes the object of a snapshot whose data is not there.
func ForgetSnapshot(ctx context.Context, management client.Client, snapshot *v1alpha1.VolumeSnapshot) error {
	before := snapshot.DeepCopy()
	if controllerutil.RemoveFinalizer(snapshot, v1alpha1.FinalizerVolumeSnapshot) {
		err := management.Patch(ctx, snapshot, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("removing the finalizer of snapshot %s: %w", snapshot.Name, err)
		}
	}
	if err := management.Delete(ctx, snapshot, client.Preconditions{UID: &snapshot.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting snapshot %s: %w", snapshot.Name, err)
	}
	return nil
}

// lookAtSnapshot looks for a snapshot, and since when it is whole, if it is. It is nil if there is none.
func (c *controller) lookAtSnapshot(ctx context.Context, id string) (*v1alpha1.VolumeSnapshot, time.Time, error) {
	snapshot := &v1alpha1.VolumeSnapshot{}
	err := c.management.Get(ctx, client.ObjectKey{Name: id}, snapshot)
	if apierrors.IsNotFound(err) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, status.Errorf(codes.Unavailable, "snapshot %s: %v", id, err)
	}
	since, _, err := c.files.Since(SnapshotPlace(snapshot))
	if err != nil {
		return nil, time.Time{}, status.Errorf(codes.Unavailable, "snapshot %s: %v", id, err)
	}
	return snapshot, since, nil
}

// DeleteSnapshot implements [csi.ControllerServer]. The directory or disk goes before the object: what is left half-way
// has an object.
func (c *controller) DeleteSnapshot(ctx context.Context, request *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	id := request.GetSnapshotId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "the snapshot's id is missing")
	}
	if efs.CheckSnapshotID(id) != nil { // not an id that CreateSnapshot makes
		return &csi.DeleteSnapshotResponse{}, nil
	}
	if _, busy := c.copying.LoadOrStore(id, true); busy {
		return nil, status.Errorf(codes.Aborted, "snapshot %s is being made", id)
	}
	defer c.copying.Delete(id)
	snapshot, _, err := c.lookAtSnapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	if snapshot == nil {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	if snapshot.Spec.ClusterName != c.clusterName {
		return nil, status.Errorf(codes.FailedPrecondition, "snapshot %s was not made by cluster %s: it stays; set the deletionPolicy to Retain", id, c.clusterName)
	}
	if err := c.files.DiscardPlace(SnapshotPlace(snapshot)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.Unavailable, "snapshot %s: %v", id, err)
	}
	if err := ForgetSnapshot(ctx, c.management, snapshot); err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

// ListSnapshots implements [csi.ControllerServer]: the snapshots of the cluster that are whole, by id. A page begins
// after the id that its token is.
func (c *controller) ListSnapshots(ctx context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	most, after := int(request.GetMaxEntries()), request.GetStartingToken()
	if most < 0 {
		return nil, status.Errorf(codes.InvalidArgument, "invalid number of entries %d", most)
	}
	if after != "" && efs.CheckSnapshotID(after) != nil {
		return nil, status.Errorf(codes.Aborted, "token %q is not one of a list of snapshots", after)
	}
	all := &v1alpha1.VolumeSnapshotList{}
	if err := c.management.List(ctx, all); err != nil {
		return nil, status.Errorf(codes.Unavailable, "listing snapshots: %v", err)
	}
	slices.SortFunc(all.Items, func(a, b v1alpha1.VolumeSnapshot) int { return cmp.Compare(a.Name, b.Name) })
	response := &csi.ListSnapshotsResponse{}
	for i := range all.Items {
		one := &all.Items[i]
		if one.Spec.ClusterName != c.clusterName || !one.DeletionTimestamp.IsZero() || strings.Compare(one.Name, after) <= 0 || !asked(request.GetSnapshotId(), one.Name) || !asked(request.GetSourceVolumeId(), one.Spec.SourceVolume) {
			continue
		}
		since, there, err := c.files.Since(SnapshotPlace(one))
		if err != nil {
			return nil, status.Errorf(codes.Unavailable, "snapshot %s: %v", one.Name, err)
		}
		if !there {
			continue
		}
		if n := len(response.GetEntries()); most > 0 && n == most {
			response.NextToken = response.GetEntries()[n-1].GetSnapshot().GetSnapshotId()
			break
		}
		response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: described(one, since)})
	}
	return response, nil
}

// asked reports whether a value is the one that is asked for, if one is.
func asked(wanted, is string) bool { return wanted == "" || wanted == is }

// sourceSnapshot is a snapshot as the source of a volume. A snapshot of another cluster is treated as missing.
func (c *controller) sourceSnapshot(ctx context.Context, id string) (source, error) {
	absent := status.Errorf(codes.NotFound, "there is no snapshot %s of cluster %s", id, c.clusterName)
	if efs.CheckSnapshotID(id) != nil {
		return source{}, absent
	}
	snapshot, since, err := c.lookAtSnapshot(ctx, id)
	if err != nil {
		return source{}, err
	}
	if snapshot == nil || !snapshot.DeletionTimestamp.IsZero() || since.IsZero() || snapshot.Spec.ClusterName != c.clusterName {
		return source{}, absent
	}
	if err := c.reach.to(ctx, c.management, c.clusterName, snapshot.Spec.FileSystemID); err != nil {
		return source{}, err
	}
	return source{what: "snapshot " + id, place: SnapshotPlace(snapshot), block: snapshot.Spec.Block, size: snapshot.Spec.CapacityBytes}, nil
}

// described is a snapshot that is whole, as CSI has it.
func described(snapshot *v1alpha1.VolumeSnapshot, since time.Time) *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId: snapshot.Name, SourceVolumeId: snapshot.Spec.SourceVolume, SizeBytes: snapshot.Spec.CapacityBytes,
		CreationTime: timestamppb.New(since), ReadyToUse: true,
	}
}

// SnapshotPlace is where a snapshot is.
func SnapshotPlace(snapshot *v1alpha1.VolumeSnapshot) filestore.Place {
	return filestore.Place{FileSystemID: snapshot.Spec.FileSystemID, Path: "/" + snapshot.Name, Snapshot: true}
}
