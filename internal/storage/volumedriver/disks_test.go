// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/storage/volumemount"
)

// blockWorld is a world with a raw block volume that a pod of the node uses.
func blockWorld(t *testing.T, change objects) (*world, string) {
	t.Helper()
	if _, err := os.Stat("/sys/devices/virtual/misc/loop-control"); err != nil {
		t.Skip("this kernel has no loop devices")
	}
	handle := own + "::" + v1alpha1.VolumeAccessPointID(clusterName, "pvc-1")
	w := newWorld(t, uses(nodeName, handle, change)...)
	request := asks("pvc-1", nil)
	request.VolumeCapabilities, request.CapacityRange.RequiredBytes = blocks(), 1<<20-1
	for range 2 { // once more, as after a crash
		response, err := w.CreateVolume(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if v := response.GetVolume(); v.GetVolumeId() != handle || v.GetCapacityBytes() != 1<<20 {
			t.Fatalf("%v", v)
		}
	}
	return w, handle
}

func publishBlock(id, at string) *csi.NodePublishVolumeRequest {
	return &csi.NodePublishVolumeRequest{VolumeId: id, TargetPath: at, VolumeCapability: blocks()[0]}
}

// attached are the devices of a world's disks.
func (w *world) attached(t *testing.T) []loopdevice.Device {
	t.Helper()
	all, err := loopdevice.List()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(d loopdevice.Device) bool { return !strings.HasPrefix(d.Path, w.root) })
}

func TestBlockVolume(t *testing.T) {
	w, handle := blockWorld(t, nil)
	const other = target + "-2"
	for _, at := range []string{target, target, other} {
		if _, err := w.node.NodePublishVolume(t.Context(), publishBlock(handle, at)); err != nil {
			t.Fatal(err)
		}
	}
	attached := w.attached(t)
	if len(attached) != 1 || attached[0].ReadOnly || w.machines.mounted[target] != attached[0].Node() || w.machines.mounted[other] != attached[0].Node() {
		t.Fatalf("attached %+v, mounted %v", attached, w.machines.mounted)
	}
	if err := os.WriteFile(attached[0].Node(), []byte("hello"), 0); err != nil {
		t.Fatal(err)
	}
	stats, err := w.node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: handle, VolumePath: target})
	if u := stats.GetUsage(); err != nil || len(u) != 1 || u[0].GetTotal() != 1<<20 || u[0].GetUsed() == 0 {
		t.Errorf("%v, %v", stats, err)
	}
	// A device that was there before, and is another's by now, is replaced.
	w.machines.mounted[target] = "/dev/loop999999"
	if _, err := w.node.NodePublishVolume(t.Context(), publishBlock(handle, target)); err != nil || w.machines.mounted[target] != attached[0].Node() {
		t.Errorf("%v, mounted %v", err, w.machines.mounted)
	}
	for i, at := range []string{target, other} {
		if _, err := w.node.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: handle, TargetPath: at}); err != nil {
			t.Fatal(err)
		}
		if left := w.attached(t); len(left) != 1-i {
			t.Fatalf("after %d of 2 are gone: %+v", i+1, left)
		}
		if got := w.machines.withdrawn; len(got) != i || i == 1 && got[0] != attached[0].Number {
			t.Errorf("after %d of 2 are gone, withdrawn before it is detached: %v", i+1, got)
		}
	}
	path := filepath.Join(w.root, own, "data", v1alpha1.VolumeAccessPointID(clusterName, "pvc-1"))
	if raw, err := os.ReadFile(path); err != nil || len(raw) != 1<<20 || !strings.HasPrefix(string(raw), "hello") {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	if _, err := w.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: handle}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("its disk is left")
	}
}

// A volume that is only read is a device that cannot be written, whatever the kubelet asks for.
func TestBlockVolumeReadOnly(t *testing.T) {
	w, handle := blockWorld(t, func(_ *corev1.Pod, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
		v.Spec.CSI.ReadOnly = true
	})
	if _, err := w.node.NodePublishVolume(t.Context(), publishBlock(handle, target)); err != nil {
		t.Fatal(err)
	}
	attached := w.attached(t)
	if len(attached) != 1 || !attached[0].ReadOnly {
		t.Fatalf("%+v", attached)
	}
	if err := os.WriteFile(attached[0].Node(), []byte("hello"), 0); err == nil {
		t.Error("it can be written")
	}
}

// A volume is what it was made as: neither a disk is mounted, nor is a directory a device.
func TestVolumeModes(t *testing.T) {
	w, handle := blockWorld(t, nil)
	if _, err := w.node.NodePublishVolume(t.Context(), publish(handle, target)); status.Code(err) != codes.InvalidArgument || len(w.machines.mounted) > 0 {
		t.Errorf("a disk as a directory: %v", err)
	}
	w = newWorld(t, uses(nodeName, own, nil)...)
	if _, err := w.node.NodePublishVolume(t.Context(), publishBlock(own, target)); status.Code(err) != codes.InvalidArgument || len(w.machines.mounted) > 0 {
		t.Errorf("a directory as a device: %v", err)
	}
	w, _ = blockWorld(t, nil)
	point := &v1alpha1.AccessPoint{}
	point.Name, point.Spec = "fsap-00000000000000009", v1alpha1.AccessPointSpec{FileSystemID: own, Path: "/" + v1alpha1.VolumeAccessPointID(clusterName, "pvc-1"), Block: true}
	if err := w.management.Create(t.Context(), point); err != nil {
		t.Fatal(err)
	}
	handle = own + "::" + point.Name
	w.node.cluster = newWorld(t, uses(nodeName, handle, nil)...).node.cluster
	if _, err := w.node.NodePublishVolume(t.Context(), publishBlock(handle, target)); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a disk of no cluster: %v", err)
	}
}

// Devices that a killed service or a machine that has gone left are found again, and used or detached.
func TestNoDeviceIsLeft(t *testing.T) {
	w, handle := blockWorld(t, nil)
	point := &v1alpha1.AccessPoint{}
	point.Name, point.Spec.FileSystemID, point.Spec.Path = v1alpha1.VolumeAccessPointID(clusterName, "pvc-1"), own, "/"+v1alpha1.VolumeAccessPointID(clusterName, "pvc-1")
	file, err := w.files.OpenDisk(own, point.Spec.Path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	before, err := loopdevice.Attach(file, volumemount.DeviceName(volumemount.Volume{Cluster: clusterName, Disk: point.Name}), false) // and killed before it was mounted
	if err != nil {
		t.Fatal(err)
	}
	if err := w.controller.mounts.Sweep(t.Context(), "green"); err != nil || len(w.attached(t)) != 1 {
		t.Fatalf("another cluster detaches it: %v", err)
	}
	if _, err := w.node.NodePublishVolume(t.Context(), publishBlock(handle, target)); err != nil {
		t.Fatal(err)
	}
	if attached := w.attached(t); len(attached) != 1 || attached[0].Number != before.Number {
		t.Errorf("attached %+v, before %+v", attached, before)
	}
	if err := w.controller.mounts.Sweep(t.Context(), clusterName); err != nil || len(w.attached(t)) != 1 {
		t.Fatalf("what is mounted is detached: %v", err)
	}
	// A kubelet holds it by a device over it, and is gone with its machine.
	node, err := os.OpenFile(before.Node(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	lock := lockOver(t, node)
	node.Close()
	delete(w.machines.mounted, target)
	if err := w.controller.mounts.Sweep(t.Context(), clusterName); err != nil {
		t.Fatal(err)
	}
	if left := w.attached(t); len(left) > 0 {
		t.Errorf("%+v is left", left)
	}
	all, err := loopdevice.List()
	if err != nil || slices.ContainsFunc(all, func(d loopdevice.Device) bool { return d.Number == lock && d.Over == before.Number }) {
		t.Errorf("the kubelet's device is left: %+v, %v", all, err)
	}
}

// lockOver attaches a device over another, as kubelets do.
func lockOver(t *testing.T, node *os.File) int {
	t.Helper()
	var below unix.Stat_t
	if err := unix.Fstat(int(node.Fd()), &below); err != nil {
		t.Fatal(err)
	}
	control, err := unix.Open("/dev/loop-control", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(control) }()
	for range 10 {
		number, err := unix.IoctlRetInt(control, unix.LOOP_CTL_GET_FREE)
		if err != nil {
			t.Fatal(err)
		}
		lock, err := os.OpenFile(loopdevice.Device{Number: number}.Node(), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = unix.IoctlLoopConfigure(int(lock.Fd()), &unix.LoopConfig{Fd: uint32(node.Fd())})
		_ = lock.Close()
		if err == nil {
			t.Cleanup(func() { // of a device that is not found
				all, _ := loopdevice.List()
				for _, d := range all {
					if d.Number == number && d.Over == int(unix.Minor(below.Rdev)) {
						_ = loopdevice.Detach(d)
					}
				}
			})
			return number
		}
	}
	t.Fatal("no loop device is free")
	return -1
}

// A machine that does not answer delays no volume of another one, and the device that is being mounted on it stays.
func TestOneMachineHangs(t *testing.T) {
	w, handle := blockWorld(t, nil)
	const hung = "i-0000000000000000f"
	proceed := make(chan struct{})
	w.machines.hang = map[string]chan struct{}{hung: proceed}
	point := &v1alpha1.AccessPoint{}
	if err := w.management.Get(t.Context(), client.ObjectKey{Name: v1alpha1.VolumeAccessPointID(clusterName, "pvc-1")}, point); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- w.controller.mounts.Mount(t.Context(), volumemount.Mount{Machine: hung, Volume: w.volume(point), Target: "/on/the/other"})
	}()
	for len(w.attached(t)) == 0 {
		<-time.After(time.Millisecond)
	}
	if _, err := w.node.NodePublishVolume(t.Context(), publishBlock(handle, target)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.node.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: handle, TargetPath: target}); err != nil {
		t.Fatal(err)
	}
	if left := w.attached(t); len(left) != 1 {
		t.Errorf("while it is being mounted: %+v", left)
	}
	close(proceed)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := w.controller.mounts.Sweep(t.Context(), clusterName); err != nil || len(w.attached(t)) != 1 {
		t.Errorf("while it is mounted: %v, %+v", err, w.attached(t))
	}
	if err := w.machines.Unmount(hung, "/on/the/other"); err != nil {
		t.Fatal(err)
	}
	if err := w.controller.mounts.Sweep(t.Context(), clusterName); err != nil || len(w.attached(t)) != 0 {
		t.Errorf("once it is mounted nowhere: %v, %+v", err, w.attached(t))
	}
}
