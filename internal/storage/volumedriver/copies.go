// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/storage/efs"
	"muster.dev/muster/internal/storage/filestore"
	"muster.dev/muster/internal/storage/volumemount"
)

// annotationCopiedFrom on an access point has the handle of the volume, or the id of the snapshot, that it was made as
// a copy of.
const annotationCopiedFrom = "muster.dev/copied-from"

// maxCopies is how many volumes of a cluster are copied at a time. A copy may take half an hour, and the four workers
// that make volumes for claims have other volumes to make.
const maxCopies = 2

// copiedFrom is the volume or snapshot that an access point was made as a copy of; "" if it was made empty.
func copiedFrom(point *v1alpha1.AccessPoint) string { return point.Annotations[annotationCopiedFrom] }

// createCopy makes a volume with the content of another volume or of a snapshot. If the copy cannot be made any more,
// its unfinished data is removed.
func (c *controller) createCopy(ctx context.Context, request *csi.CreateVolumeRequest, wanted *v1alpha1.AccessPoint) (*v1alpha1.AccessPoint, error) {
	content, look := request.GetVolumeContentSource(), c.sourceVolume
	id := content.GetVolume().GetVolumeId()
	if content.GetSnapshot() != nil {
		id, look = content.GetSnapshot().GetSnapshotId(), c.sourceSnapshot
	}
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "a volume is made as a copy of another volume or of a snapshot, and of nothing else: change dataSource or leave it out")
	}
	wanted.Annotations = map[string]string{annotationCopiedFrom: id}
	if _, busy := c.copying.LoadOrStore(wanted.Name, true); busy {
		return nil, status.Errorf(codes.Aborted, "volume %s is being made", request.GetName())
	}
	defer c.copying.Delete(wanted.Name)
	made, err := c.lookAtCopy(ctx, wanted.Name)
	if err != nil {
		return nil, err
	}
	if made.whole {
		return c.accessPoint(ctx, request.GetName(), wanted) // whatever has become of its source
	}
	source, err := look(ctx, id)
	if err == nil {
		err = source.allows(wanted.Spec)
	}
	if err == nil {
		err = c.canCopy(ctx, &source)
	}
	if err != nil {
		if status.Code(err) != codes.Unavailable {
			if err := c.abandon(ctx, made); err != nil {
				return nil, err
			}
		}
		return nil, err
	}
	defer c.copies.Add(-1)
	if c.copies.Add(1) > maxCopies {
		return nil, status.Errorf(codes.Aborted, "%d other volumes are being copied: this one is when they are", maxCopies)
	}
	var point *v1alpha1.AccessPoint
	err = c.whileStill(ctx, source, func() error {
		if point, err = c.accessPoint(ctx, request.GetName(), wanted); err != nil {
			return err
		}
		return c.copy(ctx, source, placeOf(point), point.Spec.CapacityBytes)
	})
	return point, err
}

// copied is how far a copy has come.
type copied struct {
	point *v1alpha1.AccessPoint // nil if there is none
	whole bool
}

// lookAtCopy looks how far a copy has come. Its directory or disk is there whole or not at all.
func (c *controller) lookAtCopy(ctx context.Context, name string) (copied, error) {
	point := &v1alpha1.AccessPoint{}
	err := c.management.Get(ctx, client.ObjectKey{Name: name}, point)
	if apierrors.IsNotFound(err) {
		return copied{}, nil
	}
	if err != nil {
		return copied{}, status.Errorf(codes.Unavailable, "access point %s: %v", name, err)
	}
	whole, err := c.files.Has(placeOf(point))
	if err != nil {
		return copied{}, status.Errorf(codes.Unavailable, "access point %s: %v", name, err)
	}
	return copied{point, whole}, nil
}

// abandon removes the access point of a copy that has not been made.
func (c *controller) abandon(ctx context.Context, made copied) error {
	if made.point == nil || made.whole || copiedFrom(made.point) == "" || made.point.Spec.ClusterName != c.clusterName {
		return nil
	}
	if err := c.management.Delete(ctx, made.point, client.Preconditions{UID: &made.point.UID}); client.IgnoreNotFound(err) != nil {
		return status.Errorf(codes.Unavailable, "access point %s: %v", made.point.Name, err)
	}
	return nil
}

// content is what a copy was made of.
func (c copied) content() *csi.VolumeContentSource {
	id := copiedFrom(c.point)
	if efs.CheckSnapshotID(id) == nil {
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}}
	}
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id}}}
}

// abandonCopy removes the unfinished data of a copy whose source does not exist any more. A finished copy stays.
func (c *controller) abandonCopy(ctx context.Context, volume string) (copied, error) {
	name := v1alpha1.VolumeAccessPointID(c.clusterName, volume)
	if _, busy := c.copying.LoadOrStore(name, true); busy {
		return copied{}, status.Errorf(codes.Aborted, "volume %s is being made", volume)
	}
	defer c.copying.Delete(name)
	made, err := c.lookAtCopy(ctx, name)
	if err != nil {
		return copied{}, err
	}
	return made, c.abandon(ctx, made)
}

// source is what a new volume is to be a copy of.
type source struct {
	what  string // for messages
	point string // the id of the access point of a volume
	place filestore.Place
	block bool
	size  int64
	// plain says why the content is copied and not shared: nil if it is shared. It is then so many bytes on the disk.
	plain   *filestore.NoReflinkError
	written int64
}

// allows refuses what a copy cannot be.
func (s source) allows(will v1alpha1.AccessPointSpec) error {
	switch {
	case s.block != will.Block:
		return status.Errorf(codes.InvalidArgument, "%s has another volumeMode: that of a copy must be the same", s.what)
	case s.size > will.CapacityBytes:
		return status.Errorf(codes.OutOfRange, "%s has %d bytes, and a copy of %d is asked for: ask for at least as much", s.what, s.size, will.CapacityBytes)
	}
	return nil
}

// sourceVolume is a volume as the source of a copy.
func (c *controller) sourceVolume(ctx context.Context, id string) (source, error) {
	point, err := c.volumeToCopy(ctx, id)
	if err != nil {
		return source{}, err
	}
	return source{what: "volume " + id, point: point.Name, place: placeOf(point), block: point.Spec.Block, size: point.Spec.CapacityBytes}, nil
}

// volumeToCopy is the access point of a volume that can be copied. A volume of another cluster is as if it were not
// there.
func (c *controller) volumeToCopy(ctx context.Context, id string) (*v1alpha1.AccessPoint, error) {
	handle, err := efs.ParseHandle(id)
	if err != nil || handle.AccessPointID == "" {
		return nil, status.Errorf(codes.NotFound, "volume %s cannot be copied: it must be one that a StorageClass has made", id)
	}
	point := &v1alpha1.AccessPoint{}
	if err := c.management.Get(ctx, client.ObjectKey{Name: handle.AccessPointID}, point); err != nil {
		return nil, missing(err, "access point", handle.AccessPointID)
	}
	if point.Spec.ClusterName != c.clusterName || point.Spec.FileSystemID != handle.FileSystemID || handle.Path != "" {
		return nil, status.Errorf(codes.NotFound, "volume %s cannot be copied: it must be one that a StorageClass of cluster %s has made", id, c.clusterName)
	}
	if err := c.reach.to(ctx, c.management, c.clusterName, point.Spec.FileSystemID); err != nil {
		return nil, err
	}
	if there, err := c.files.Has(placeOf(point)); err != nil {
		return nil, status.Errorf(codes.Unavailable, "access point %s: %v", point.Name, err)
	} else if !there {
		return nil, status.Errorf(codes.NotFound, "volume %s has lost its directory or disk", id)
	}
	return point, nil
}

// volume names the volume of an access point for those who mount it.
func (c *controller) volume(point *v1alpha1.AccessPoint) volumemount.Volume {
	v := volumemount.Volume{Cluster: c.clusterName, FileSystemID: point.Spec.FileSystemID, Path: point.Spec.Path}
	if point.Spec.Block {
		v.Disk = point.Name
	}
	return v
}

func placeOf(point *v1alpha1.AccessPoint) filestore.Place {
	return filestore.Place{FileSystemID: point.Spec.FileSystemID, Path: point.Spec.Path}
}
