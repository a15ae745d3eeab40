// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/storage/filestore"
	"muster.dev/muster/internal/storage/volumemount"
)

// A disk that is full makes writes fail and nothing else: what was written is there, volumes can be removed, and then
// there is room again.
func TestFullDisk(t *testing.T) {
	handle := own + "::" + v1alpha1.VolumeAccessPointID(clusterName, "raw")
	w := newWorld(t, uses(nodeName, handle, func(_ *corev1.Pod, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
		v.Status.Phase, v.Spec.ClaimRef.Name = corev1.VolumeBound, "data"
	})...)
	// It is mounted over the world's own directory. Its device goes first: a file system that is still behind one
	// stays.
	if err := unix.Mount("tmpfs", w.root, "tmpfs", 0, "size=40m,mode=700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(volumemount.DetachAll(w.files), unix.Unmount(w.root, unix.MNT_DETACH)); err != nil {
			t.Error(err)
		}
	})
	if err := w.files.Ensure(own); err != nil {
		t.Fatal(err)
	}
	tooLarge := asks("large", nil)
	tooLarge.CapacityRange.RequiredBytes = 39 << 20 // which there is, but for the reserve
	if _, err := w.CreateVolume(t.Context(), tooLarge); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a volume that takes the reserve: %v", err)
	}
	raw := asks("raw", nil)
	raw.VolumeCapabilities, raw.CapacityRange.RequiredBytes = blocks(), 30<<20
	for _, request := range []*csi.CreateVolumeRequest{asks("kept", nil), asks("fills", nil), raw} {
		if _, err := w.CreateVolume(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	in := func(volume string) string {
		return filepath.Join(w.root, own, "data", v1alpha1.VolumeAccessPointID(clusterName, volume))
	}
	if err := os.WriteFile(filepath.Join(in("kept"), "file"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	var device *os.File
	if _, err := os.Stat("/sys/devices/virtual/misc/loop-control"); err == nil {
		if _, err := w.node.NodePublishVolume(t.Context(), publishBlock(handle, target)); err != nil {
			t.Fatal(err)
		}
		if device, err = os.OpenFile(w.attached(t)[0].Node(), os.O_RDWR, 0); err != nil {
			t.Fatal(err)
		}
		defer device.Close()
		if _, err := device.WriteAt(bytes.Repeat([]byte("r"), 1<<20), 0); err != nil || device.Sync() != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(in("fills"), "file"), make([]byte, 64<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}

	space, err := w.files.Space()
	if err != nil || space.Room() != 0 {
		t.Fatalf("%+v, %v", space, err)
	}
	w.files = filestore.NewReflinking(w.root, copying)
	if _, err := w.CreateSnapshot(t.Context(), asksSnapshot("s", own+"::"+v1alpha1.VolumeAccessPointID(clusterName, "kept"))); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "MiB left") || strings.Contains(err.Error(), "claim") {
		t.Errorf("a snapshot on a full disk: %v", err)
	}
	if got, err := w.GetCapacity(t.Context(), &csi.GetCapacityRequest{}); err != nil || got.GetAvailableCapacity() != 0 {
		t.Errorf("%v, %v", got, err)
	}
	for name, request := range map[string]*csi.CreateVolumeRequest{"a directory": asks("another", nil), "of no size": {Name: "none", Parameters: asks("", nil).Parameters, VolumeCapabilities: mounts()}} {
		if _, err := w.CreateVolume(t.Context(), request); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "MiB left") {
			t.Errorf("%s is made: %v", name, err)
		}
	}
	if _, err := w.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: handle, CapacityRange: &csi.CapacityRange{RequiredBytes: 31 << 20}}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a volume is expanded: %v", err)
	}
	if device != nil {
		_, err := device.WriteAt(bytes.Repeat([]byte("x"), 8<<20), 16<<20)
		if err = errors.Join(err, device.Sync()); err == nil {
			t.Error("a device takes what the disk has no room for")
		}
		first := make([]byte, 1<<20)
		if _, err := device.ReadAt(first, 0); err != nil || !bytes.Equal(first, bytes.Repeat([]byte("r"), 1<<20)) {
			t.Errorf("what was written to the device: %v", err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(in("kept"), "file")); err != nil || string(got) != "kept" {
		t.Errorf("%q, %v", got, err)
	}
	recorder := record.NewFakeRecorder(10)
	p := &pressure{cluster: w.node.cluster, events: recorder}
	for range 2 { // it is told once
		if err := p.look(t.Context(), space); err != nil {
			t.Fatal(err)
		}
	}
	if said := <-recorder.Events; !strings.Contains(said, "Warning HostDiskPressure") || len(recorder.Events) > 0 {
		t.Errorf("%q and %d more", said, len(recorder.Events))
	}

	fills := own + "::" + v1alpha1.VolumeAccessPointID(clusterName, "fills")
	if _, err := w.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: fills}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateVolume(t.Context(), asks("another", nil)); err != nil {
		t.Errorf("once there is room again: %v", err)
	}
	if space, err = w.files.Space(); err != nil || p.look(t.Context(), space) != nil || p.told {
		t.Errorf("it is not told again: %+v, %v", space, err)
	}
}

func TestRoom(t *testing.T) {
	for _, test := range []struct {
		space filestore.Space
		want  int64
	}{
		{filestore.Space{Total: 100 << 30, Available: 20 << 30}, 15 << 30},
		{filestore.Space{Total: 1000 << 30, Available: 20 << 30}, 10 << 30},
		{filestore.Space{Total: 1000 << 30, Available: 9 << 30}, 0},
		{filestore.Space{Total: 100 << 30, Available: 20 << 30, Files: 100, FilesAvailable: 1}, 0},
	} {
		if got := test.space.Room(); got != test.want {
			t.Errorf("%+v: %d, want %d", test.space, got, test.want)
		}
	}
}
