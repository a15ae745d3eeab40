// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/storage/efs"
	"muster.dev/muster/internal/storage/filestore"
	"muster.dev/muster/internal/storage/volumemount"
)

// controller makes and removes volumes: the controller service of CSI.
type controller struct {
	csi.UnimplementedControllerServer
	clusterName string
	reach       reach
	management  client.Client
	files       *filestore.Store
	mounts      volumemount.Mounts
	copying     sync.Map // names of access points and snapshots whose directories or disks are being made as copies
	copies      atomic.Int32
}

// CreateVolume implements [csi.ControllerServer]. The access point is made before its directory: what is left half-way
// has an object.
func (c *controller) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if request.GetName() == "" {
		return nil, status.Error(codes.InvalidArgument, "a volume needs a name")
	}
	if err := checkCapabilities(request.GetVolumeCapabilities()); err != nil {
		return nil, err
	}
	parameters, err := efs.ParseParameters(request.GetParameters())
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the StorageClass: %v", err)
	}
	block := request.GetVolumeCapabilities()[0].GetBlock() != nil
	size, err := sizeOf(request.GetCapacityRange(), block)
	if err != nil {
		return nil, err
	}
	wanted := c.wanted(request.GetName(), parameters, size, block)
	var point *v1alpha1.AccessPoint
	if request.GetVolumeContentSource() != nil {
		point, err = c.createCopy(ctx, request, wanted)
	} else {
		point, err = c.createEmpty(ctx, request.GetName(), wanted)
	}
	if err != nil {
		return nil, err
	}
	handle := efs.Handle{FileSystemID: point.Spec.FileSystemID, AccessPointID: point.Name}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: handle.String(), CapacityBytes: size, ContentSource: request.GetVolumeContentSource()}}, nil
}

// createEmpty makes a volume with nothing in it.
func (c *controller) createEmpty(ctx context.Context, name string, wanted *v1alpha1.AccessPoint) (*v1alpha1.AccessPoint, error) {
	point, err := c.accessPoint(ctx, name, wanted)
	if err != nil {
		return nil, err
	}
	if point.Spec.Block {
		return point, makeDisk(c.files, point)
	}
	return point, makeDirectory(c.files, point)
}

const (
	// diskUnit is what the size of a disk is a multiple of, in bytes: the largest block of the file systems that pods
	// make on one.
	diskUnit = 4096
	// defaultDisk is the size of a disk for which none is asked.
	defaultDisk = 1 << 30
	// largestDisk is what every file system of a host can have as a file.
	largestDisk = 8 << 40
)

// sizeOf is how large a volume is to be, in bytes. A directory grows with what is written, so any size will do. A disk
// has whole blocks.
func sizeOf(asked *csi.CapacityRange, block bool) (int64, error) {
	required, limit := asked.GetRequiredBytes(), asked.GetLimitBytes()
	if required < 0 || limit < 0 || limit > 0 && limit < required {
		return 0, status.Errorf(codes.OutOfRange, "invalid capacity from %d to %d bytes", required, limit)
	}
	if !block {
		return required, nil
	}
	if required > largestDisk {
		return 0, status.Errorf(codes.OutOfRange, "a raw block volume of %d bytes is too large: at most %d are allowed", required, int64(largestDisk))
	}
	if required == 0 {
		required = defaultDisk
	}
	size := (required + diskUnit - 1) / diskUnit * diskUnit
	if limit > 0 && limit < size {
		return 0, status.Errorf(codes.OutOfRange, "a raw block volume has a multiple of %d bytes, of which there is none from %d to %d", diskUnit, required, limit)
	}
	return size, nil
}

// wanted is the access point that a volume is to be.
func (c *controller) wanted(volume string, p efs.Parameters, size int64, block bool) *v1alpha1.AccessPoint {
	id := v1alpha1.VolumeAccessPointID(c.clusterName, volume)
	point := &v1alpha1.AccessPoint{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec:       v1alpha1.AccessPointSpec{FileSystemID: p.FileSystemID, Path: p.Directory(id), ClusterName: c.clusterName, CapacityBytes: size, Block: block},
	}
	if block {
		return point
	}
	sum := sha256.Sum256([]byte(id))
	point.Spec.Owner = &v1alpha1.DirectoryOwner{UID: p.UID, GID: p.Group(binary.BigEndian.Uint64(sum[:8])), Permissions: p.Permissions}
	if !p.OwnGroup {
		point.Spec.Owner.UID = point.Spec.Owner.GID // as EFS's driver has it
	}
	return point
}

// accessPoint returns the access point of a volume, which it makes if there is none.
func (c *controller) accessPoint(ctx context.Context, volume string, point *v1alpha1.AccessPoint) (*v1alpha1.AccessPoint, error) {
	id := point.Name
	found := &v1alpha1.AccessPoint{}
	err := c.management.Get(ctx, client.ObjectKey{Name: id}, found)
	if apierrors.IsNotFound(err) {
		if err := c.mayMake(ctx, point.Spec.FileSystemID, point.Spec.CapacityBytes); err != nil {
			return nil, err
		}
		if err = c.management.Create(ctx, point); err == nil {
			return point, nil
		}
		if apierrors.IsAlreadyExists(err) {
			return nil, status.Errorf(codes.Aborted, "volume %s is being made", volume)
		}
	}
	switch {
	case err != nil:
		return nil, status.Errorf(codes.Unavailable, "the access point of volume %s: %v", volume, err)
	case !found.DeletionTimestamp.IsZero():
		return nil, status.Errorf(codes.Aborted, "access point %s of volume %s is being deleted", id, volume)
	case found.Spec.FileSystemID != point.Spec.FileSystemID || found.Spec.Path != point.Spec.Path ||
		found.Spec.CapacityBytes != point.Spec.CapacityBytes || found.Spec.Block != point.Spec.Block || copiedFrom(found) != copiedFrom(point):
		return nil, status.Errorf(codes.AlreadyExists, "volume %s is access point %s by now, with another file system, path, size, volume mode or source", volume, id)
	}
	return found, nil
}

// mayMake refuses a volume of a file system that is not there or for other clusters, and one that the host's disk has
// no room for.
func (c *controller) mayMake(ctx context.Context, fileSystemID string, size int64) error {
	system := &v1alpha1.FileSystem{}
	err := c.management.Get(ctx, client.ObjectKey{Name: fileSystemID}, system)
	switch {
	case apierrors.IsNotFound(err):
		return status.Errorf(codes.InvalidArgument, "there is no file system %s: `muster get filesystems` lists them", fileSystemID)
	case err != nil:
		return status.Errorf(codes.Unavailable, "file system %s: %v", fileSystemID, err)
	case !system.DeletionTimestamp.IsZero() || !meta.IsStatusConditionTrue(system.Status.Conditions, v1alpha1.ConditionReady):
		return status.Errorf(codes.Unavailable, "file system %s is not Ready", fileSystemID)
	}
	if err := c.reach.check(ctx, c.management, c.clusterName, system); err != nil {
		return err
	}
	return c.hasRoom(size)
}

// hasRoom refuses what the host's disk has no room for.
func (c *controller) hasRoom(size int64) error {
	space, err := c.files.Space()
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	switch room := space.Room(); {
	case room == 0 && size == 0:
		return status.Errorf(codes.ResourceExhausted, "the host's disk has %d MiB left, of which volumes and snapshots may have none: free some", space.Available>>20)
	case room == 0 || size > room:
		return status.Errorf(codes.ResourceExhausted, "the host's disk has %d MiB left, of which volumes may have %d MiB, and the claim asks for %d MiB: free some, or ask for less", space.Available>>20, room>>20, size>>20)
	}
	return nil
}

// makeDirectory makes the directory of an access point that says whose it is to be.
func makeDirectory(files *filestore.Store, point *v1alpha1.AccessPoint) error {
	owner := point.Spec.Owner
	if owner == nil {
		return nil
	}
	mode, err := strconv.ParseUint(owner.Permissions, 8, 12)
	if err != nil {
		return status.Errorf(codes.Internal, "access point %s has the permissions %q: must be octal digits", point.Name, owner.Permissions)
	}
	err = files.Make(point.Spec.FileSystemID, point.Spec.Path, filestore.Owner{UID: int(owner.UID), GID: int(owner.GID), Mode: uint32(mode)})
	if err != nil {
		return status.Errorf(codes.Unavailable, "the directory of access point %s: %v", point.Name, err)
	}
	return nil
}

// makeDisk makes the file of an access point that is a raw block volume.
func makeDisk(files *filestore.Store, point *v1alpha1.AccessPoint) error {
	if err := files.MakeDisk(point.Spec.FileSystemID, point.Spec.Path, point.Spec.CapacityBytes); err != nil {
		return status.Errorf(codes.Unavailable, "the disk of access point %s: %v", point.Name, err)
	}
	return nil
}

// DeleteVolume implements [csi.ControllerServer]. The directory or disk goes before the access point: what is left
// half-way has an object.
func (c *controller) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume's id is missing")
	}
	handle, err := efs.ParseHandle(request.GetVolumeId())
	if err != nil || handle.AccessPointID == "" { // not a handle that CreateVolume makes
		return &csi.DeleteVolumeResponse{}, nil //nolint:nilerr // it is not there, as CSI wants it
	}
	point := &v1alpha1.AccessPoint{}
	err = c.management.Get(ctx, client.ObjectKey{Name: handle.AccessPointID}, point)
	if apierrors.IsNotFound(err) {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "access point %s: %v", handle.AccessPointID, err)
	}
	if point.Spec.ClusterName != c.clusterName || point.Spec.FileSystemID != handle.FileSystemID {
		return nil, status.Errorf(codes.FailedPrecondition, "access point %s was not made by a StorageClass of cluster %s: its data stays; set the volume's reclaim policy to Retain", point.Name, c.clusterName)
	}
	if _, busy := c.copying.Load(point.Name); busy {
		return nil, status.Errorf(codes.Aborted, "access point %s is being made", point.Name)
	}
	if err := c.files.Discard(point.Spec.FileSystemID, point.Spec.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.Unavailable, "the directory of access point %s: %v", point.Name, err)
	}
	if err := c.management.Delete(ctx, point, client.Preconditions{UID: &point.UID}); client.IgnoreNotFound(err) != nil {
		return nil, status.Errorf(codes.Unavailable, "access point %s: %v", point.Name, err)
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ControllerExpandVolume implements [csi.ControllerServer]. The access point has the size first, then the disk, then
// its devices, which pods see at once: nodes have nothing to do.
func (c *controller) ControllerExpandVolume(ctx context.Context, request *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume's id is missing")
	}
	if request.GetCapacityRange() == nil {
		return nil, status.Error(codes.InvalidArgument, "the size is missing")
	}
	handle, err := efs.ParseHandle(request.GetVolumeId())
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if handle.AccessPointID == "" {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is not an access point, which alone have a size", request.GetVolumeId())
	}
	point := &v1alpha1.AccessPoint{}
	if err := c.management.Get(ctx, client.ObjectKey{Name: handle.AccessPointID}, point); err != nil {
		return nil, missing(err, "access point", handle.AccessPointID)
	}
	if point.Spec.ClusterName != c.clusterName || point.Spec.FileSystemID != handle.FileSystemID {
		return nil, status.Errorf(codes.FailedPrecondition, "access point %s was not made by a StorageClass of cluster %s", point.Name, c.clusterName)
	}
	size, err := sizeOf(request.GetCapacityRange(), point.Spec.Block)
	if err != nil {
		return nil, err
	}
	if more := size - point.Spec.CapacityBytes; more > 0 {
		if err := c.hasRoom(more); err != nil {
			return nil, err
		}
		before := point.DeepCopy()
		point.Spec.CapacityBytes = size
		if err := c.management.Patch(ctx, point, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return nil, status.Errorf(codes.Unavailable, "access point %s: %v", point.Name, err)
		}
	}
	if point.Spec.Block {
		if err := c.files.GrowDisk(point.Spec.FileSystemID, point.Spec.Path, point.Spec.CapacityBytes); err != nil {
			return nil, status.Errorf(codes.Unavailable, "the disk of access point %s: %v", point.Name, err)
		}
		if err := c.mounts.Resize(ctx, c.volume(point)); err != nil {
			return nil, status.Errorf(codes.Unavailable, "the devices of access point %s: %v", point.Name, err)
		}
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: point.Spec.CapacityBytes}, nil
}

// ValidateVolumeCapabilities implements [csi.ControllerServer].
func (c *controller) ValidateVolumeCapabilities(ctx context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume's id is missing")
	}
	if len(request.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "the volume's capabilities are missing")
	}
	handle, err := efs.ParseHandle(request.GetVolumeId())
	if err == nil && handle.AccessPointID != "" {
		err = c.management.Get(ctx, client.ObjectKey{Name: handle.AccessPointID}, &v1alpha1.AccessPoint{})
	} else if err == nil {
		err = c.management.Get(ctx, client.ObjectKey{Name: handle.FileSystemID}, &v1alpha1.FileSystem{})
	}
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "volume %s: %v", request.GetVolumeId(), err)
	}
	if err := checkCapabilities(request.GetVolumeCapabilities()); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: request.GetVolumeContext(), VolumeCapabilities: request.GetVolumeCapabilities(), Parameters: request.GetParameters(),
	}}, nil
}

// GetCapacity implements [csi.ControllerServer].
func (c *controller) GetCapacity(context.Context, *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	space, err := c.files.Space()
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &csi.GetCapacityResponse{AvailableCapacity: space.Room()}, nil
}

// ControllerGetCapabilities implements [csi.ControllerServer].
func (c *controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, kind := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: kind}},
		})
	}
	return response, nil
}

// checkCapabilities refuses what neither a directory nor a disk can be.
func checkCapabilities(all []*csi.VolumeCapability) error {
	if len(all) == 0 {
		return status.Error(codes.InvalidArgument, "the volume's capabilities are missing")
	}
	for _, one := range all {
		if one.GetAccessMode() == nil || one.GetMount() == nil && one.GetBlock() == nil {
			return status.Error(codes.InvalidArgument, "a volume is mounted or a block device, in some access mode")
		}
		if (one.GetBlock() != nil) != (all[0].GetBlock() != nil) {
			return status.Error(codes.InvalidArgument, "a volume is mounted or a block device, and not both")
		}
		if kind := one.GetMount().GetFsType(); kind != "" && kind != "efs" {
			return status.Errorf(codes.InvalidArgument, "the volume is a directory and has no file system %q of its own: leave fsType out", kind)
		}
		if options := one.GetMount().GetMountFlags(); len(options) > 0 {
			return status.Errorf(codes.InvalidArgument, "mount options %q mean nothing for a directory: leave mountOptions out", options)
		}
	}
	return nil
}
