// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"errors"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/efs"
	"muster.dev/muster/internal/cluster/filestore"
)

// annotationCopiedFrom on an access point has the handle of the volume that it was made as a copy of.
const annotationCopiedFrom = "muster.dev/copied-from"

// maxCopies is how many volumes of a cluster are copied at a time. One may take half an hour, and the four that make volumes for claims have others to make.
const maxCopies = 2

// copiedFrom is the volume that an access point was made as a copy of; "" if it was made empty.
func copiedFrom(point *v1alpha1.AccessPoint) string { return point.Annotations[annotationCopiedFrom] }

// createCopy makes a volume with what another one has in it. What is left of one that cannot be made any more goes.
func (c *controller) createCopy(ctx context.Context, request *csi.CreateVolumeRequest, wanted *v1alpha1.AccessPoint) (*v1alpha1.AccessPoint, error) {
	id := request.GetVolumeContentSource().GetVolume().GetVolumeId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "a volume is made as a copy of another volume, and of nothing else: change dataSource or leave it out")
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
	source, err := c.source(ctx, id, wanted)
	if err == nil {
		err = c.canCopy(wanted.Spec.FileSystemID)
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
	point, err := c.accessPoint(ctx, request.GetName(), wanted)
	if err != nil {
		return nil, err
	}
	return point, c.copyVolume(ctx, source, point)
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

// abandonCopy removes what is left of a copy whose source is not known any more.
func (c *controller) abandonCopy(ctx context.Context, volume string) error {
	name := v1alpha1.VolumeAccessPointID(c.clusterName, volume)
	if _, busy := c.copying.LoadOrStore(name, true); busy {
		return status.Errorf(codes.Aborted, "volume %s is being made", volume)
	}
	defer c.copying.Delete(name)
	made, err := c.lookAtCopy(ctx, name)
	if err != nil {
		return err
	}
	return c.abandon(ctx, made)
}

func (c *controller) canCopy(fileSystemID string) error {
	err := c.files.CanClone(fileSystemID)
	switch {
	case errors.Is(err, filestore.ErrNoReflink):
		return status.Error(codes.FailedPrecondition, err.Error())
	case err != nil:
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}

// source is the volume that a new one is to be a copy of. A volume of another cluster is as if it were not there.
func (c *controller) source(ctx context.Context, id string, wanted *v1alpha1.AccessPoint) (*v1alpha1.AccessPoint, error) {
	handle, err := efs.ParseHandle(id)
	if err != nil || handle.AccessPointID == "" {
		return nil, status.Errorf(codes.NotFound, "volume %s cannot be copied: it must be one that a StorageClass has made", id)
	}
	point := &v1alpha1.AccessPoint{}
	if err := c.management.Get(ctx, client.ObjectKey{Name: handle.AccessPointID}, point); err != nil {
		return nil, missing(err, "access point", handle.AccessPointID)
	}
	switch is, will := point.Spec, wanted.Spec; {
	case is.ClusterName != c.clusterName || is.FileSystemID != handle.FileSystemID || handle.Path != "":
		return nil, status.Errorf(codes.NotFound, "volume %s cannot be copied: it must be one that a StorageClass of cluster %s has made", id, c.clusterName)
	case is.Block != will.Block:
		return nil, status.Errorf(codes.InvalidArgument, "volume %s has another volumeMode: that of a copy must be the same", id)
	case is.CapacityBytes > will.CapacityBytes:
		return nil, status.Errorf(codes.OutOfRange, "volume %s has %d bytes, and a copy of %d is asked for: ask for at least as much", id, is.CapacityBytes, will.CapacityBytes)
	}
	if there, err := c.files.Has(placeOf(point)); err != nil {
		return nil, status.Errorf(codes.Unavailable, "access point %s: %v", point.Name, err)
	} else if !there {
		return nil, status.Errorf(codes.NotFound, "volume %s has lost its directory or disk", id)
	}
	return point, nil
}

// copyVolume makes the directory or disk of an access point as a copy of another one's.
func (c *controller) copyVolume(ctx context.Context, source, point *v1alpha1.AccessPoint) error {
	from, to := placeOf(source), placeOf(point)
	var err error
	if point.Spec.Block {
		err = c.files.CloneDisk(from, to, point.Spec.CapacityBytes)
	} else {
		err = c.files.CloneDirectory(ctx, from, to)
	}
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}

func placeOf(point *v1alpha1.AccessPoint) filestore.Place {
	return filestore.Place{FileSystemID: point.Spec.FileSystemID, Path: point.Spec.Path}
}
