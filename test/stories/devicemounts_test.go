// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"strings"
	"testing"
)

// mountingPod has a block device, which it makes a file system on and mounts, and a container beside that has the
// device and no right to mount.
const mountingPod = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: formatted}
spec: {accessModes: [ReadWriteOnce], volumeMode: Block, resources: {requests: {storage: 64Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: mounting}
spec:
  terminationGracePeriodSeconds: 1
  hostPID: true
  containers:
  - name: c
    image: muster.dev/workload:v1
    args: [serve]
    env: [{name: PATH, value: "/usr/sbin:/usr/bin"}]
    securityContext: {privileged: true, runAsUser: 0}
    volumeDevices: [{name: data, devicePath: /dev/data}]
    volumeMounts: &system
    - {name: usr, mountPath: /usr, readOnly: true}
    - {name: lib, mountPath: /lib, readOnly: true}
    - {name: lib64, mountPath: /lib64, readOnly: true}
  - name: without
    image: muster.dev/workload:v1
    args: [serve, -listen, ":8081"]
    env: [{name: PATH, value: "/usr/sbin:/usr/bin"}]
    securityContext: {runAsUser: 0}
    volumeDevices: [{name: data, devicePath: /dev/data}]
    volumeMounts: *system
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: formatted}}
  - {name: usr, hostPath: {path: /usr}}
  - {name: lib, hostPath: {path: /usr/lib}}
  - {name: lib64, hostPath: {path: /usr/lib64}}
`

// devicesMounted has a privileged pod make a file system on its block device, and mount it, as drivers do that have no
// part of their own on the host.
func devicesMounted(t *testing.T, i *installation) {
	in := func(container, script string) (string, error) {
		return i.kubectl("exec", "mounting", "-c", container, "--", "/usr/bin/sh", "-c", "exec 2>&1; "+script)
	}
	must := func(script, want string) {
		t.Helper()
		if out, err := in("c", script); err != nil || strings.TrimSpace(out) != want {
			t.Fatalf("%s: %v; it printed %q, want %q", script, err, out, want)
		}
	}
	refused := func(container, script, why string) {
		t.Helper()
		if out, err := in(container, "echo tri''ed; "+script); err == nil || !strings.Contains(err.Error(), "tried\n") || !strings.Contains(err.Error(), why) {
			t.Errorf("%q may be done in container %s, or it was refused for another reason than %q: %v\n%s", script, container, why, err, out)
		}
	}
	begin := func() {
		t.Helper()
		i.apply(mountingPod)
		i.mustKubectl("wait", "--for=condition=Ready", "pod/mounting", "--timeout=120s")
	}
	begin()
	refused("c", "mkdir -p /mnt && mount -t ext4 /dev/data /mnt", "bad superblock") // nothing is on it yet
	must("mkfs.ext4 -q /dev/data && mount -t ext4 /dev/data /mnt && echo hello >/mnt/file && chown 7:8 /mnt/file && stat -c %u:%g /mnt /mnt/file | tr '\\n' ' '", "0:0 7:8")
	must("grep -c ' /mnt .*nosuid,nodev.* ext4 .*errors=remount-ro' /proc/self/mountinfo", "1")
	refused("c", "mount -o remount,bind,dev /mnt", "denied")
	refused("c", "mount -o remount,bind,nodev,suid /mnt", "denied")
	refused("c", "mount -o remount,errors=panic /mnt", "not mounted or bad option")
	refused("c", "mount -t ext4 -o journal_path=/dev/data /dev/data /mnt", "bad option")
	refused("without", "mkdir -p /mnt && mount -i -t ext4 /dev/data /mnt", "denied")
	must("umount /mnt; printf x | dd of=/dev/data bs=1 seek=1100 conv=notrunc status=none; dd if=/dev/urandom of=/dev/data bs=1k seek=2 count=40 conv=notrunc status=none; echo written", "written")
	refused("c", "mount -t ext4 /dev/data /mnt", "tructure needs cleaning")
	must("mkfs.ext4 -qF /dev/data && mount -t ext4 /dev/data /mnt && echo hello >/mnt/file && cat /mnt/file", "hello")
	// The service is away, and back.
	i.kill("serve")
	must("mkdir -p /memory && mount -t tmpfs none /memory && umount /memory && echo mounted", "mounted")
	must("mkdir -p /other && mount -t ext4 -o ro /dev/data /other 2>/dev/null; mount -t ext4 /dev/data /other && cat /other/file && umount /other", "hello")
	i.mustKubectl("delete", "pod", "mounting")
	begin()
	must("mkdir -p /mnt && mount -t ext4 -o ro /dev/data /mnt && cat /mnt/file && umount /mnt && mount -t ext4 /dev/data /mnt && rm /mnt/file && ls /mnt", "hello\nlost+found")
	// On the machine itself, by a pod that goes there, as upstream's tests of local volumes do.
	onMachine := func(script string) string {
		return fmt.Sprintf("nsenter --target 1 --mount -- sh -c 'set -e; PATH=/run/muster/bin:$PATH; cd /tmp; %s'", script)
	}
	must(onMachine("mkdir -p lent; truncate -s 400M lent-disk; mkfs.xfs -q lent-disk; d=$(losetup -f --show lent-disk); mount -t xfs $d /tmp/lent; echo hello >lent/file; cat lent/file; umount lent; mount -t xfs -o ro $d /tmp/lent; wc -c <lent/file; umount lent; losetup -d $d"), "hello\n6")
	must(onMachine("truncate -s 16M lent-disk; d=$(losetup -f --show lent-disk); mkfs.ext4 -q $d; mount -t ext4 $d /tmp/lent; echo hello >lent/file; losetup -d $d; cat lent/file; umount lent; test ! -e $d"), "hello")
	i.mustKubectl("delete", "pod/mounting", "pvc/formatted")
}
