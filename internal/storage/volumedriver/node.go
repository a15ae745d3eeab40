// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/storage/efs"
	"muster.dev/muster/internal/storage/filestore"
	"muster.dev/muster/internal/storage/volumemount"
)

// node answers the kubelet of one machine: the node service of CSI.
type node struct {
	csi.UnimplementedNodeServer
	machine, name string // of the instance and of its Node
	clusterName   string
	reach         reach
	management    client.Reader
	cluster       kubernetes.Interface
	mounts        volumemount.Mounts
	files         *filestore.Store
	usages        *usages
	log           *slog.Logger
}

// NodeGetInfo implements [csi.NodeServer].
func (n *node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.machine}, nil
}

// NodeGetCapabilities implements [csi.NodeServer].
func (n *node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, kind := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS, csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: kind}},
		})
	}
	return response, nil
}

// NodePublishVolume implements [csi.NodeServer].
func (n *node) NodePublishVolume(ctx context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	id, target := request.GetVolumeId(), request.GetTargetPath()
	switch {
	case id == "":
		return nil, status.Error(codes.InvalidArgument, "the volume's id is missing")
	case target == "":
		return nil, status.Error(codes.InvalidArgument, "the target path is missing")
	case request.GetVolumeCapability() == nil:
		return nil, status.Error(codes.InvalidArgument, "the volume's capability is missing")
	}
	if err := checkCapabilities([]*csi.VolumeCapability{request.GetVolumeCapability()}); err != nil {
		return nil, err
	}
	handle, err := efs.ParseHandle(id)
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	used, err := authorize(ctx, n.cluster, n.name, id)
	if status.Code(err) == codes.PermissionDenied {
		n.log.WarnContext(ctx, "a machine asked for a volume that none of its pods uses", "machine", n.machine, "node", n.name, "volume", id)
	}
	if err != nil {
		return nil, err
	}
	if err := n.reach.to(ctx, n.management, n.clusterName, handle.FileSystemID); err != nil {
		return nil, err
	}
	at, err := n.place(ctx, handle)
	if err != nil {
		return nil, err
	}
	if block := request.GetVolumeCapability().GetBlock() != nil; block != at.block() {
		return nil, status.Errorf(codes.InvalidArgument, "volumeMode of the PersistentVolume is not that of volume %s: Block is for those that a claim with volumeMode Block made, Filesystem for all others", id)
	}
	how := volumemount.Mount{
		Machine: n.machine, Volume: n.volume(handle, at), Target: target, ReadOnly: request.GetReadonly() || used.readOnly,
		Alone: request.GetVolumeCapability().GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
	}
	err = n.mount(ctx, how)
	switch {
	case errors.Is(err, volumemount.ErrNotAlone):
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s: %v", id, err)
	case errors.Is(err, filestore.ErrBeingCopied):
		return nil, status.Errorf(codes.Aborted, "volume %s: %v", id, err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, status.Errorf(codes.NotFound, "file system %s has nothing at %s", handle.FileSystemID, at.directory)
	case err != nil:
		return nil, status.Errorf(codes.Unavailable, "mounting the volume: %v", err)
	}
	n.log.InfoContext(ctx, "volume mounted", "volume", id, "machine", n.machine, "node", n.name, "target", target, "read_only", how.ReadOnly)
	return &csi.NodePublishVolumeResponse{}, nil
}

// mount mounts a volume, unless pods could then write what is being copied.
func (n *node) mount(ctx context.Context, how volumemount.Mount) error {
	mount := func() error { return n.mounts.Mount(ctx, how) }
	if how.ReadOnly {
		return mount()
	}
	return n.files.Write(filestore.Place{FileSystemID: how.Volume.FileSystemID, Path: how.Volume.Path}, mount)
}

// volume names what is at a place for those who mount it.
func (n *node) volume(handle efs.Handle, at place) volumemount.Volume {
	v := volumemount.Volume{Cluster: n.clusterName, FileSystemID: handle.FileSystemID, Path: at.directory}
	if at.block() {
		v.Disk = at.point.Name
	}
	return v
}

// place is where a volume is: a directory of its file system, or the disk of an access point.
type place struct {
	directory string
	point     *v1alpha1.AccessPoint
}

func (p place) block() bool { return p.point != nil && p.point.Spec.Block }

// place finds a volume in its file system. The directory of an access point is made if that says whose it is to be.
func (n *node) place(ctx context.Context, handle efs.Handle) (place, error) {
	if handle.AccessPointID == "" {
		if handle.FileSystemID == n.reach.defaultFileSystem {
			return place{}, status.Errorf(codes.PermissionDenied, "file system %s has volumes of every cluster: it is mounted by its access points only; `muster create filesystem` makes one of your own", handle.FileSystemID)
		}
		return place{directory: path.Join("/", handle.Path)}, nil
	}
	point := &v1alpha1.AccessPoint{}
	if err := n.management.Get(ctx, client.ObjectKey{Name: handle.AccessPointID}, point); err != nil {
		return place{}, missing(err, "access point", handle.AccessPointID)
	}
	if point.Spec.FileSystemID != handle.FileSystemID {
		return place{}, status.Errorf(codes.NotFound, "access point %s is one of file system %s, not of %s", point.Name, point.Spec.FileSystemID, handle.FileSystemID)
	}
	if owner := point.Spec.ClusterName; owner != "" && owner != n.clusterName || owner == "" && (point.Spec.FileSystemID == n.reach.defaultFileSystem || point.Spec.Block) {
		return place{}, status.Errorf(codes.PermissionDenied, "access point %s is not one of cluster %s", point.Name, n.clusterName)
	}
	if point.Spec.Block {
		return place{directory: point.Spec.Path, point: point}, nil
	}
	if copiedFrom(point) == "" { // an empty directory in place of a copy that has not been made would be taken for it
		if err := makeDirectory(n.files, point); err != nil {
			return place{}, err
		}
	}
	return place{directory: path.Join(point.Spec.Path, handle.Path), point: point}, nil
}

func missing(err error, what, id string) error {
	if apierrors.IsNotFound(err) {
		return status.Errorf(codes.NotFound, "there is no %s %s", what, id)
	}
	return status.Errorf(codes.Unavailable, "%s %s: %v", what, id, err)
}

// NodeUnpublishVolume implements [csi.NodeServer].
func (n *node) NodeUnpublishVolume(ctx context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	switch {
	case request.GetVolumeId() == "":
		return nil, status.Error(codes.InvalidArgument, "the volume's id is missing")
	case request.GetTargetPath() == "":
		return nil, status.Error(codes.InvalidArgument, "the target path is missing")
	}
	if err := n.mounts.Unmount(ctx, n.machine, request.GetTargetPath()); err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	if err := n.mounts.Sweep(ctx, n.clusterName); err != nil { // it is tried again
		n.log.WarnContext(ctx, "the block device of a volume may be left", "volume", request.GetVolumeId(), "error", err)
	}
	n.log.InfoContext(ctx, "volume unmounted", "volume", request.GetVolumeId(), "machine", n.machine, "node", n.name, "target", request.GetTargetPath())
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeGetVolumeStats implements [csi.NodeServer]: what is written in the volume's directory, and what the host's disk
// has left.
func (n *node) NodeGetVolumeStats(ctx context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	switch {
	case request.GetVolumeId() == "":
		return nil, status.Error(codes.InvalidArgument, "the volume's id is missing")
	case request.GetVolumePath() == "":
		return nil, status.Error(codes.InvalidArgument, "the volume's path is missing")
	}
	handle, err := efs.ParseHandle(request.GetVolumeId())
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if _, err := authorize(ctx, n.cluster, n.name, request.GetVolumeId()); err != nil {
		if status.Code(err) == codes.PermissionDenied {
			return nil, status.Errorf(codes.NotFound, "volume %s is not published on %s", request.GetVolumeId(), describe(n.machine, n.name))
		}
		return nil, err
	}
	at, err := n.place(ctx, handle)
	if err != nil {
		return nil, err
	}
	if ok, err := n.mounts.Mounted(ctx, volumemount.Mount{Machine: n.machine, Volume: n.volume(handle, at), Target: request.GetVolumePath()}); err != nil || !ok {
		return nil, status.Errorf(codes.NotFound, "volume %s is not mounted at %s", request.GetVolumeId(), request.GetVolumePath())
	}
	if at.block() {
		size, written, err := n.files.DiskUsage(filestore.Place{FileSystemID: handle.FileSystemID, Path: at.directory})
		if err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: size, Used: written, Available: max(size-written, 0)}}}, nil
	}
	space, err := n.files.Space()
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	response := &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: space.Total, Available: space.Available}}}
	if used, ok := n.usages.of(ctx, n.files, handle.FileSystemID, at.directory); ok {
		response.Usage[0].Used = used.Bytes
		response.Usage = append(response.Usage, &csi.VolumeUsage{Unit: csi.VolumeUsage_INODES, Used: used.Files, Total: space.Files, Available: space.FilesAvailable})
	}
	return response, nil
}
