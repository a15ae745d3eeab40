// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

func mounts() []*csi.VolumeCapability {
	return []*csi.VolumeCapability{{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
	}}
}

func blocks() []*csi.VolumeCapability {
	return []*csi.VolumeCapability{{
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
	}}
}

func asks(name string, parameters map[string]string) *csi.CreateVolumeRequest {
	all := map[string]string{"provisioningMode": "efs-ap", "fileSystemId": own, "directoryPerms": "750"}
	maps.Copy(all, parameters)
	return &csi.CreateVolumeRequest{Name: name, Parameters: all, VolumeCapabilities: mounts(), CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 20}}
}

func TestVolumeComesAndGoes(t *testing.T) {
	w := newWorld(t)
	request := asks("pvc-1", map[string]string{"uid": "7", "gid": "8", "basePath": "/base"})
	w.failure = errors.New("etcd is slow")
	if _, err := w.CreateVolume(t.Context(), request); status.Code(err) != codes.Unavailable {
		t.Fatalf("while the management plane fails: %v", err)
	}
	var id string
	for range 2 { // once more, as after a crash
		response, err := w.CreateVolume(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if id != "" && response.GetVolume().GetVolumeId() != id {
			t.Errorf("it became another volume: %s", response.GetVolume().GetVolumeId())
		}
		id = response.GetVolume().GetVolumeId()
		if err := os.RemoveAll(filepath.Join(w.root, own, "data", "base")); err != nil { // as if it had been cut short before
			t.Fatal(err)
		}
	}
	if _, err := w.CreateVolume(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	point := v1alpha1.VolumeAccessPointID(clusterName, "pvc-1")
	if want := own + "::" + point; id != want {
		t.Errorf("the handle is %s, want %s", id, want)
	}
	path := filepath.Join(w.root, own, "data", "base", point)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != 7 || stat.Gid != 8 || info.Mode().Perm() != 0o750 {
		t.Errorf("its directory belongs to %d:%d, %v", stat.Uid, stat.Gid, info.Mode())
	}
	w.failure = errors.New("etcd is slow")
	if _, err := w.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); status.Code(err) != codes.Unavailable {
		t.Errorf("while the management plane fails: %v", err)
	}
	for range 2 {
		if _, err := w.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("its directory is left")
	}
	if err := w.management.Get(t.Context(), client.ObjectKey{Name: point}, &v1alpha1.AccessPoint{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("its access point: %v", err)
	}
}

// A group that the class does not name follows from the volume, so that it is the same when the request comes again.
func TestGroupOfVolume(t *testing.T) {
	w := newWorld(t)
	request := asks("pvc-1", map[string]string{"gidRangeStart": "1000", "gidRangeEnd": "1001"})
	if _, err := w.CreateVolume(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	point := &v1alpha1.AccessPoint{}
	if err := w.management.Get(t.Context(), client.ObjectKey{Name: v1alpha1.VolumeAccessPointID(clusterName, "pvc-1")}, point); err != nil {
		t.Fatal(err)
	}
	if o := point.Spec.Owner; o.GID < 1000 || o.GID > 1001 || o.UID != o.GID {
		t.Errorf("owner %+v", o)
	}
}

func TestVolumesRefused(t *testing.T) {
	w := newWorld(t)
	if _, err := w.CreateVolume(t.Context(), asks("there", nil)); err != nil {
		t.Fatal(err)
	}
	unready := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "fs-00000000000000002"}}
	if err := w.management.Create(t.Context(), unready); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*csi.CreateVolumeRequest)
		code   codes.Code
		says   string
	}{
		"no name":        {func(r *csi.CreateVolumeRequest) { r.Name = "" }, codes.InvalidArgument, "name"},
		"no capability":  {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = nil }, codes.InvalidArgument, "capabilities"},
		"class":          {func(r *csi.CreateVolumeRequest) { r.Parameters["x"] = "y" }, codes.InvalidArgument, "parameters[x]"},
		"no file system": {func(r *csi.CreateVolumeRequest) { r.Parameters["fileSystemId"] = "fs-0000000000000000f" }, codes.InvalidArgument, "muster get filesystems"},
		"unready":        {func(r *csi.CreateVolumeRequest) { r.Parameters["fileSystemId"] = unready.Name }, codes.Unavailable, "not Ready"},
		"too large":      {func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 1 << 60 }, codes.ResourceExhausted, "MiB left"},
		"limit":          {func(r *csi.CreateVolumeRequest) { r.CapacityRange.LimitBytes = 1 }, codes.OutOfRange, "from 1048576 to 1"},
		"another size":   {func(r *csi.CreateVolumeRequest) { r.Name, r.CapacityRange.RequiredBytes = "there", 2 }, codes.AlreadyExists, "another"},
		"no source":      {func(r *csi.CreateVolumeRequest) { r.VolumeContentSource = &csi.VolumeContentSource{} }, codes.InvalidArgument, "dataSource"},
		"block and not": {func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities = append(r.VolumeCapabilities, blocks()...)
		}, codes.InvalidArgument, "not both"},
		"block, another mode": {func(r *csi.CreateVolumeRequest) { r.Name, r.VolumeCapabilities = "there", blocks() }, codes.AlreadyExists, "volume mode"},
		"block, limit": {func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities, r.CapacityRange = blocks(), &csi.CapacityRange{RequiredBytes: 1, LimitBytes: 4095}
		}, codes.OutOfRange, "multiple of 4096"},
		"block, too large": {func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities, r.CapacityRange = blocks(), &csi.CapacityRange{RequiredBytes: 1 << 62}
		}, codes.OutOfRange, "too large"},
		"file system type": {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].GetMount().FsType = "ext4" }, codes.InvalidArgument, "fsType"},
		"mount options":    {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].GetMount().MountFlags = []string{"tls"} }, codes.InvalidArgument, "mountOptions"},
	} {
		request := asks("new", nil)
		test.change(request)
		_, err := w.CreateVolume(t.Context(), request)
		if status.Code(err) != test.code || !strings.Contains(status.Convert(err).Message(), test.says) {
			t.Errorf("%s: %v, want %s about %q", name, err, test.code, test.says)
		}
	}
	list := &v1alpha1.AccessPointList{}
	if err := w.management.List(t.Context(), list); err != nil || meta.LenList(list) != 1 {
		t.Errorf("access points %v, %v", list.Items, err)
	}
}

// Data that no StorageClass of the cluster made is not the cluster's to remove.
func TestDataOfOthersStays(t *testing.T) {
	w := newWorld(t)
	point := &v1alpha1.AccessPoint{ObjectMeta: metav1.ObjectMeta{Name: "fsap-00000000000000001"}, Spec: v1alpha1.AccessPointSpec{FileSystemID: own, Path: "/kept"}}
	green := point.DeepCopy()
	green.Name, green.Spec.ClusterName = "fsap-00000000000000002", "green"
	for _, one := range []*v1alpha1.AccessPoint{point, green} {
		if err := w.management.Create(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(w.root, own, "data", "kept")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for id, code := range map[string]codes.Code{
		own + "::" + point.Name: codes.FailedPrecondition, own + "::" + green.Name: codes.FailedPrecondition, defaultID + "::" + green.Name: codes.FailedPrecondition,
		own: codes.OK, own + ":/kept": codes.OK, "whatever": codes.OK, "": codes.InvalidArgument, own + "::fsap-0000000000000000f": codes.OK,
	} {
		if _, err := w.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); status.Code(err) != code {
			t.Errorf("%q: %v, want %s", id, err, code)
		}
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("%q: %v", id, err)
		}
	}
}
