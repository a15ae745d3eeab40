// SPDX-License-Identifier: Apache-2.0

// These tests make namespaces and devices, so they need root.
package devicemount

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host/hosttest"
	"muster.dev/muster/internal/platform/loopdevice"
)

// device is a loop device, and prepares a machine that has a node of it, /tmp/device.
func device(t *testing.T) func() error {
	t.Helper()
	if _, err := os.Stat("/sys/devices/virtual/misc/loop-control"); err != nil {
		t.Skip("this kernel has no loop devices")
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := file.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	d, err := loopdevice.Attach(file, "muster-test-devicemount", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = loopdevice.Detach(d) })
	return func() error {
		const owner = 1 << 28
		return errors.Join(
			unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "mode=777"),
			unix.Mknod("/tmp/device", unix.S_IFBLK|0o600, int(loopdevice.DeviceNumber(d.Number))),
			os.Chown("/tmp/device", owner, owner),
			unix.Mknod("/tmp/fuse", unix.S_IFCHR|0o600, int(unix.Mkdev(10, 229))),
			os.Chown("/tmp/fuse", owner, owner),
			unix.Mknod("/tmp/hosts", unix.S_IFBLK|0o600, int(loopdevice.DeviceNumber(d.Number))),
		)
	}
}

const begin = `exec 2>&1
mount -t proc none /proc; cd /tmp; mkdir at other secret; chmod 700 secret; ln -s device link; ln -s at atlink; ln -s /proc/1/root/tmp/device magic
`

func TestServe(t *testing.T) {
	prepare := device(t)
	for name, c := range map[string]struct{ script, want string }{
		"a device":                   {"mount -t ext4 /tmp/device /tmp/at && ls at", "ext4-rw-\n"},
		"read-only, with options":    {"mount -t xfs -o ro,nouuid /tmp/device /tmp/at && ls at", "xfs-ro-nouuid\n"},
		"by relative paths":          {"mount -i -c -t ext4 device at && ls at", "ext4-rw-\n"},
		"links":                      {"mount -c -t ext4 link atlink && ls at", "ext4-rw-\n"},
		"taken away again":           {"mount -t ext4 /tmp/device /tmp/at && umount at && ls at && echo gone", "gone\n"},
		"in another root":            {"mkdir -p root/bin root/at root/tmp && for d in usr bin lib lib64 proc sbin; do mkdir -p root/$d; mount --rbind /$d root/$d; done && cp -a device root/ 2>/dev/null; touch root/device; mount --bind device root/device; chroot root mount -c -t ext4 /device /at && ls root/at at", "at:\n\nroot/at:\next4-rw-\n"},
		"in another mount namespace": {"unshare -m sh -c 'mount -t ext4 /tmp/device /tmp/at && ls /tmp/at'; ls at", "ext4-rw-\n"},
		"out of another root":        {"mkdir -p root/at root/tmp/at && for d in usr bin lib lib64 sbin; do mkdir -p root/$d; mount --rbind /$d root/$d; done; touch root/device; mount --bind device root/device; chroot root mount -c -t ext4 /device ../../../tmp/at && ls at root/tmp/at", "at:\n\nroot/tmp/at:\next4-rw-\n"},
		"damaged":                    {"mount -t ext4 -o damaged /tmp/device /tmp/at", "Structure needs cleaning"},
		"service away":               {"mount -t ext4 -o away /tmp/device /tmp/at; mount -t tmpfs none /tmp/at && mount --bind /tmp/at /tmp/other && mount -o remount,bind,ro /tmp/at && echo others", "\nothers\n"},
		"another type":               {"mount -t btrfs /tmp/device /tmp/at", "permission denied"},
		"not a device":               {"touch file; mount -i -t ext4 /tmp/file /tmp/at", "permission denied"},
		"one that it may not open":   {"mount -t ext4 /tmp/hosts /tmp/at", "cannot mount /tmp/hosts read-only"},
		"none":                       {"mount -t ext4 /tmp/missing /tmp/at", "does not exist"},
		"at nothing":                 {"mount -t ext4 /tmp/device /tmp/missing", "does not exist"},
		"at a file":                  {"touch file; mount -t ext4 /tmp/device /tmp/file", "file"},
		"by this process's links":    {"mount -c -t ext4 /tmp/magic /tmp/at", "symbolic links"},
		"without the right":          {"setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin mount -i -t ext4 -o tell /tmp/device /tmp/at", "permission denied"},
		"by its own rights":          {"chown 5 device; setpriv --bounding-set=-all,+sys_admin --inh-caps=-all mount -i -t ext4 -o tell /tmp/device /tmp/at", "cannot mount /tmp/device read-only"},
		"in a user namespace":        {"unshare -Urm mount -i -t ext4 -o tell /tmp/device /tmp/at", "mount: /tmp/at: "},
		"killed meanwhile":           {"timeout -s KILL 0.2 mount -t ext4 -o slow /tmp/device /tmp/at; sleep 1.5; test -z \"$(ls at)\" && echo nothing", "nothing\n"},
		"not held up by another":     {"mount -t ext4 -o slow /tmp/device /tmp/at & for n in 1 2 3; do mount -t tmpfs none /tmp/other; done; ls at; echo before; wait; ls at", "before\next4-rw-slow\n"},
		"memory that hangs":          {"/proc/1/exe hang & sleep 1; timeout -s KILL 5 mount -t tmpfs none /tmp/at && echo goes on; kill -KILL $!; wait", "\ngoes on\n"},
		"signalled meanwhile":        {"mount -t ext4 -o slow /tmp/device /tmp/at & sleep 0.2; kill -CONT $!; kill -WINCH $!; wait; ls at; grep -c ' /tmp/at ' /proc/self/mountinfo", "ext4-rw-slow\n1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out := run(t, begin+c.script, prepare); !strings.HasSuffix(out, c.want) && (strings.HasSuffix(c.want, "\n") || !strings.Contains(out, c.want)) {
				t.Errorf("it printed:\n%s\nwant %q", out, c.want)
			} else if strings.Contains(out, "asked") {
				t.Errorf("the host was asked:\n%s", out)
			}
		})
	}
}

// A file that was put in a device's place as it was opened is not a device, and is not polled.
func TestDeviceOf(t *testing.T) {
	fuse := hosttest.MountFuse(t)
	fd, err := unix.Open(filepath.Join(fuse.Dir, hosttest.FuseFile), unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if file, err := deviceOf(fd, "device"); !errors.Is(err, errNotOurs) {
		t.Errorf("%v, %v", file, err)
	}
	if asked := fuse.End(); slices.Contains(asked, hosttest.FusePoll) || len(asked) == 0 {
		t.Errorf("the kernel asked for %v", asked)
	}
}

func TestParseRights(t *testing.T) {
	const status = "Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nCapInh:\t0000000000000001\nCapEff:\t0000000000200000\n"
	if r, err := parseRights(status); err != nil || r != (rights{fsUID: 4, fsGID: 8, effective: 1 << unix.CAP_SYS_ADMIN}) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []string{"", "Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n", strings.Replace(status, "Uid:\t1\t2\t3\t4", "Uid:\t1", 1), strings.Replace(status, "0000000000200000", "x", 1)} {
		if r, err := parseRights(bad); err == nil {
			t.Errorf("%q: %+v", bad, r)
		}
	}
}
