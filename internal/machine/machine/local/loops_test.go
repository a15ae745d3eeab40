// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/statedir"
)

func TestMountedLoops(t *testing.T) {
	const mountinfo = `22 1 0:21 / /proc rw - proc none rw
310 22 0:6 /loop3 /var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/u rw,nosuid,noexec - devtmpfs none rw
311 22 0:6 /loop3 /var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/pvc-1/dev/u rw - devtmpfs none rw
312 22 0:6 /loop12 /var/lib/kubelet/x rw - devtmpfs none rw
313 22 0:6 /loop7 /mnt rw - devtmpfs none rw
314 22 0:6 /loop /var/lib/kubelet/y rw - devtmpfs none rw
315 22 0:6 /loop01 /var/lib/kubelet/z rw - devtmpfs none rw
316 22 0:6 /a/loop5 /var/lib/kubelet/v rw - devtmpfs none rw
317 22 8:1 /volume /var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/pvc-2/mount rw - ext4 /dev/vda rw
318 22 8:1 /volume/x /var/lib/kubelet/pods/u/volume-subpaths/pvc-2/c/0 rw - ext4 /dev/vda rw
cut short
`
	want := []string{"/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/u", "/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/pvc-2/mount"}
	if got := podMounts(parseMounts(mountinfo)); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := mountedLoops(parseMounts(mountinfo)); !slices.Equal(got, []int{3, 3, 12}) {
		t.Errorf("%v", got)
	}
}

// Files that programs of a machine attached are let go with it, and no other's.
func TestDetachLoops(t *testing.T) {
	if _, err := os.Stat("/sys/devices/virtual/misc/loop-control"); err != nil {
		t.Skip("this kernel has no loop devices")
	}
	const one, two = "i-0000000000000000a", "i-0000000000000000b"
	dir := statedir.Dir(t.TempDir())
	attached := map[string]loopdevice.Device{}
	for _, id := range []string{one, two} {
		path := filepath.Join(dir.Machine(id), rootDir, "tmp", "file")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 4096), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		d, err := loopdevice.Attach(file, "machine-test", true)
		_ = file.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = loopdevice.Detach(d) })
		attached[id] = d
	}
	if err := detachLoops(dir, one); err != nil {
		t.Fatal(err)
	}
	all, err := loopdevice.List()
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(all, attached[one]) || !slices.Contains(all, attached[two]) {
		t.Errorf("attached %+v, left %+v", attached, all)
	}
	// As the kernel shows a path once the machine's mounts are gone.
	inside := attached[two]
	inside.Path = "/tmp/file"
	if disk := filepath.Join(dir.Machine(two), rootDir); !onDisk(inside, disk) {
		t.Error("it is not found by its path on the machine")
	}
	inside.Inode++
	if disk := filepath.Join(dir.Machine(two), rootDir); onDisk(inside, disk) {
		t.Error("another file of that path counts")
	}
}

func FuzzMounts(f *testing.F) {
	f.Add("310 22 0:6 /loop3 /var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/u rw - devtmpfs none rw\n")
	f.Add("317 22 8:1 /volume /var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/pvc-2/mount rw - ext4 /dev/vda rw")
	f.Fuzz(func(t *testing.T, mountinfo string) {
		for _, number := range mountedLoops(parseMounts(mountinfo)) {
			if number < 0 || number >= 1e7 {
				t.Errorf("loop device %d", number)
			}
		}
		for _, at := range podMounts(parseMounts(mountinfo)) {
			if !strings.HasPrefix(at, kubeletDir) {
				t.Errorf("mounted at %q", at)
			}
		}
	})
}
