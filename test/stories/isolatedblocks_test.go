// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/statedir"
)

// loopsOfMachines attaches files on a machine whose root is nobody on the host, and looks at the devices from the other
// one.
func loopsOfMachines(t *testing.T, i *installation) {
	running, err := local.Running(i.dir)
	if err != nil || len(running) != 2 {
		t.Fatalf("the machines that run are %v: %v", running, err)
	}
	ids := slices.Sorted(maps.Keys(running))
	one, two := ids[0], ids[1]
	on := func(id, script string) (string, error) {
		out, talk, err := i.try("exec", id, "--", "sh", "-c", script)
		if err != nil {
			err = fmt.Errorf("%w: %s", err, talk)
		}
		return strings.TrimSpace(out), err
	}
	must := func(id, script string) string {
		t.Helper()
		out, err := on(id, script)
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return out
	}
	refused := func(id, script, why string) {
		t.Helper()
		if out, err := on(id, "echo tried; "+script); err == nil || !strings.HasPrefix(out, "tried") || !strings.Contains(err.Error(), why) {
			t.Errorf("%q may be done on a machine, or it was refused for another reason than %q: %v\n%s", script, why, err, out)
		}
	}
	device := must(one, "PATH=/usr/sbin:/usr/bin; mkdir -p /tmp/l && cd /tmp/l && truncate -s 1M file && losetup -f --show file")
	if must(one, "cd /tmp/l && printf hello >"+device+" && sync "+device+" && head -c 5 file && losetup -n -O NAME -j file && losetup -a") !=
		fmt.Sprintf("hello%s\n%s", device, must(one, "losetup "+device)) {
		t.Errorf("what is written to %s is not in the file, or losetup does not find it:\n%s", device, must(one, "losetup -l"))
	}
	must(one, "cd /tmp/l && truncate -s 2M file && losetup -c "+device+" && test $(blockdev --getsize64 "+device+") = 2097152")
	refused(two, "losetup -c "+device, "no such loop device")
	if got := must(two, "losetup -a"); got != "" {
		t.Errorf("another machine has %q", got)
	}
	refused(two, "head -c 5 "+device, "o such file")
	refused(two, "losetup -d "+device, "no such loop device")
	refused(two, "mknod /tmp/disk b 7 "+strings.TrimPrefix(device, "/dev/loop"), "not permitted")
	refused(one, "unshare -m sh -c 'umount /usr/sbin && exec /usr/sbin/losetup -d "+device+"'", "not permitted") // by the host's program
	refused(one, "losetup -f --show /dev/null", "regular file")
	refused(one, "losetup -f --show /proc/self/mountinfo", "")
	// A mount that keeps hold of a detached device cannot read it.
	must(one, "touch /tmp/l/kept && mount --bind "+device+" /tmp/l/kept && head -c 5 /tmp/l/kept && losetup -d "+device)
	refused(one, "head -c 5 /tmp/l/kept", "ermission denied")
	must(one, "umount /tmp/l/kept && test ! -e "+device)
	if left := attachedFor(t, i.dir, one); len(left) > 0 {
		t.Errorf("detached, and left: %q", left)
	}
	again := must(one, "cd /tmp/l && losetup -f --show -r file")
	refused(one, "printf x >"+again, "")
	i.kill("serve")
	if got := must(one, "losetup -n -O NAME,RO -l; losetup -D; losetup -a"); strings.Join(strings.Fields(got), " ") != again+" 1" {
		t.Errorf("after the service was killed, losetup says %q", got)
	}
	i.eventually("the service answers", func() error { _, err := i.status(); return err })
	must(one, "losetup -f /tmp/l/file") // it goes when the machine loses its power, or with it
	must(two, "truncate -s 1M /tmp/file && losetup -f /tmp/file")
}

// attachedFor are the loop devices of a machine, as the host sees them.
func attachedFor(t *testing.T, dir statedir.Dir, id string) (lines []string) {
	t.Helper()
	all, err := loopdevice.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if strings.Contains(d.Name, statedir.Hash(dir)+"-"+id) {
			lines = append(lines, d.Node()+" "+d.Path)
		}
	}
	return lines
}

const privilegedPod = `apiVersion: v1
kind: Pod
metadata: {name: privileged}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "muster.dev/workload:v1", args: [serve], securityContext: {privileged: true},
     volumeMounts: [{name: bin, mountPath: /usr, readOnly: true}, {name: lib, mountPath: /lib, readOnly: true}, {name: lib64, mountPath: /lib64, readOnly: true}]}
  volumes: [{name: bin, hostPath: {path: /usr}}, {name: lib, hostPath: {path: /usr/lib}}, {name: lib64, hostPath: {path: /usr/lib64}}]
`

// privilegedDevices looks at the block devices that a privileged pod has.
func privilegedDevices(t *testing.T, i *installation) {
	i.apply(privilegedPod)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/privileged", "--timeout=120s")
	lent := map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(i.dir.Machines(), "*", "devices", "loop*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		lent["/dev/"+filepath.Base(path)] = true
	}
	devices := strings.Fields(i.mustKubectl("exec", "privileged", "--", "/usr/bin/sh", "-c", "for d in /dev/*; do ! test -b $d || echo $d; done"))
	if len(devices) == 0 || slices.ContainsFunc(devices, func(d string) bool { return !lent[d] }) {
		t.Errorf("a privileged pod has %q; its machine is lent some of %v", devices, lent)
	}
	i.mustKubectl("delete", "pod", "privileged")
}
