// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/userns"
	"muster.dev/muster/test/escape/prize"
	"muster.dev/muster/test/escape/verdict"
)

const isolatedCluster = `apiVersion: muster.dev/v1alpha1
kind: Cluster
metadata: {name: muster}
spec: {name: muster}
---
apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {namespace: muster, name: default}
spec:
  name: default
  instanceTypes: [t3.small]
  scalingConfig: {desiredSize: 2}
`

// TestIsolatedMachines has machines whose root is nobody on the host: pods work there as on others, and so do the ways
// in.
//
//story:about machine/machine/local platform/sparsedisk platform/userns platform/devicerules platform/subid platform/nsenter machine/loopservice node/losetup node/devicemount platform/blockfs
func TestIsolatedMachines(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.up(isolatedCluster)
	i.ready()
	if out, _ := i.muster("get", "machines", "-o", "wide"); strings.Count(out, "user-namespace") != 2 {
		t.Errorf("muster get machines says:\n%s", out)
	}
	steps := []struct {
		name string
		run  func(*testing.T, *installation)
	}{
		{"root is nobody outside", rootIsNobody},
		{"device files from elsewhere open nothing", devicesRefused},
		{"nothing gets out", nothingGetsOut},
		{"pods on different nodes reach each other", podsTalk},
		{"names resolve in pods and on machines", namesResolve},
		{"half-closed connections are remembered", halfClosed},
		{"kubectl can be copied into a pod", kubectlCopied},
		{"logs, exec, port-forward and metrics over verified TLS", kubeletsVerified},
		{"a machine has its role, a serving certificate, and no other credential", credentialsOfMachine},
		{"a pod that wants a user namespace of its own is told why it waits", noUserNamespace},
		{"a pod that names no seccomp profile has the runtime's", seccompByDefault},
		{"volumes have the owners that pods gave them", ownersOfVolumes},
		{"pods share a block device", func(_ *testing.T, i *installation) { i.blockVolume() }},
		{"machines have loop devices of their own", loopsOfMachines},
		{"a privileged pod sees the devices of its machine", privilegedDevices},
		{"a privileged pod mounts its device", devicesMounted},
		{"a full disk is felt by its machine alone", disksAreBounded},
		{"what takes too much ends on its machine", excessEndsInside},
		{"the service is taken over after kill -9", takeOver},
		{"the service is replaced although a machine keeps it from ending", serviceHeld},
		{"a machine that loses its power boots again", powerLoss},
		{"the owner of the host may let root be the host's", hostRootAllowed},
		{"ids are given back", idsGivenBack},
	}
	for _, step := range steps {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, i.in(t)) }) {
			return
		}
	}
}

// rootIsNobody looks at the machines from the host, and tries as root on one what changes the host where root is root.
func rootIsNobody(t *testing.T, i *installation) {
	running, err := local.Running(i.dir)
	if err != nil || len(running) != 2 {
		t.Fatalf("the machines that run are %v: %v", running, err)
	}
	seen, one := map[uint32]bool{0: true}, ""
	for id, pid := range running {
		one = id
		first := i.idsOf(id).First
		var stat syscall.Stat_t
		if err := syscall.Stat(fmt.Sprintf("/proc/%d", pid), &stat); err != nil || stat.Uid != first || seen[first] {
			t.Errorf("root on machine %s is user %d on the host, and its ids begin with %d: %v", id, stat.Uid, first, err)
		}
		seen[first] = true
		if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", pid)); err != nil || strings.TrimSpace(string(raw)) != strconv.FormatInt(host.DefaultTimerSlack.Nanoseconds(), 10) {
			t.Errorf("sleeps on machine %s, and those of its pods, may end %q ns late, want the kernel's own %s: %v", id, raw, host.DefaultTimerSlack, err)
		}
	}
	for _, attempt := range []string{
		"echo x >/proc/sys/kernel/core_pattern",
		"mount -t proc none /mnt && echo x >/mnt/sys/kernel/core_pattern",
		"mount -o remount,bind,rw /usr",
		"mount -o remount,bind,rw /opt/muster/bin && touch /opt/muster/bin/here",
		"mount -o remount,bind,rw /opt/muster/images && touch /opt/muster/images/here",
		"umount -l /usr",
		"mknod /tmp/disk b 254 0",
		"unshare -m sh -c 'umount /usr/sbin && exec /usr/sbin/losetup --find --show /etc/passwd'", // the host's
		"echo 1 >/sys/fs/cgroup/memory/memory.limit_in_bytes",
		"date -s 2000-01-01",
	} {
		if out, talk, err := i.try("exec", one, "--", "sh", "-c", "echo tried; "+attempt); err == nil || !strings.HasPrefix(out, "tried\n") {
			t.Errorf("root on a machine may do %q, or it was not tried: %v\n%s%s", attempt, err, out, talk)
		}
	}
}

// devicesRefused puts device files on a machine that nobody there could make, for everybody to open.
func devicesRefused(t *testing.T, i *installation) {
	running, err := local.Running(i.dir)
	if err != nil {
		t.Fatal(err)
	}
	id := slices.Sorted(maps.Keys(running))[0]
	for name, device := range map[string]struct {
		kind         uint32
		major, minor uint32
		opens        bool
	}{
		"full-again":   {syscall.S_IFCHR, 1, 7, true}, // as /dev/full, which machines have
		"kernel-log":   {syscall.S_IFCHR, 1, 11, false},
		"loop-control": {syscall.S_IFCHR, 10, 237, false},
		"disk":         {syscall.S_IFBLK, 254, 0, false},
	} {
		node := fmt.Sprintf("/proc/%d/root/dev/%s", running[id], name)
		if err := errors.Join(unix.Mknod(node, device.kind, int(unix.Mkdev(device.major, device.minor))), os.Chmod(node, 0o666)); err != nil {
			t.Fatal(err)
		}
		_, talk, err := i.try("exec", id, "--", "sh", "-c", "exec 3<>/dev/"+name)
		if opens := err == nil; opens != device.opens || !opens && !strings.Contains(talk, "Operation not permitted") {
			t.Errorf("opening %s on a machine: %v, %s", name, err, talk)
		}
		if err := os.Remove(node); err != nil {
			t.Error(err)
		}
	}
}

// noUserNamespace has a pod wait for ids that no machine has.
func noUserNamespace(_ *testing.T, i *installation) {
	i.apply("apiVersion: v1\nkind: Pod\nmetadata: {name: own-users}\nspec:\n  hostUsers: false\n  terminationGracePeriodSeconds: 1\n" +
		"  containers: [{name: c, image: \"muster.dev/workload:v1\", args: [serve]}]\n")
	i.eventually("an Event says why", func() error {
		said, err := i.kubectl("get", "events", "--field-selector", "involvedObject.name=own-users,reason=UserNamespaceNotSupported", "-o", "jsonpath={.items[*].message}")
		if err == nil && !strings.Contains(said, "isolation none") {
			err = fmt.Errorf("%q", said)
		}
		return err
	})
	i.mustKubectl("delete", "pod", "own-users", "--wait=false")
}

// hostRootAllowed has a group of machines whose root is the host's, which only the owner of the host can allow.
func hostRootAllowed(t *testing.T, i *installation) {
	i.muster("create", "nodegroup", "builders", "--isolation", "none")
	refused := func() error {
		said, err := i.kubectl("--context=muster-management", "-n", "muster", "get", "nodegroup", "builders", "-o", "jsonpath={.status.replicas} {.status.conditions[0].reason} {.status.conditions[0].message}")
		if err == nil && (!strings.HasPrefix(said, "0 HostRootNotAllowed ") && !strings.HasPrefix(said, " HostRootNotAllowed ") || !strings.Contains(said, "muster up --allow-host-root muster")) {
			err = fmt.Errorf("%q", said)
		}
		return err
	}
	i.eventually("the group says why it has no machines", refused)
	if _, talk := i.muster("up", "--allow-host-root", "muster"); !strings.Contains(talk, "Node groups of muster may have isolation none now") {
		t.Errorf("muster up says:\n%s", talk)
	}
	i.eventually("its machine is Ready, and root there is the host's", func() error {
		said, err := i.kubectl("--context=muster-management", "get", "machines", "-l", "muster.dev/nodegroup=builders", "-o", "jsonpath={.items[*].status.phase} {.items[*].status.isolation}")
		if err == nil && said != "Ready none" {
			err = fmt.Errorf("%q", said)
		}
		return err
	})
	usersOfItsOwn(i)
	i.muster("up", "--allow-host-root", "")
	id := i.mustKubectl("--context=muster-management", "get", "machines", "-l", "muster.dev/nodegroup=builders", "-o", "jsonpath={.items[*].metadata.name}")
	running, err := local.Running(i.dir)
	if err != nil || running[id] == 0 {
		t.Fatalf("machine %s is not among those that run, %v: %v", id, running, err)
	}
	if err := syscall.Kill(running[id], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	i.eventually("it is not booted again", func() error {
		said, err := i.kubectl("--context=muster-management", "get", "machine", id, "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].reason}")
		if err == nil && said != "HostRootNotAllowed" {
			err = fmt.Errorf("%q", said)
		}
		return err
	})
	i.muster("delete", "nodegroup", "builders", "--wait")
}

// usersOfItsOwn runs a pod in a user namespace of its own, where limits cannot be raised, such as in CI, as well as
// where they can.
func usersOfItsOwn(i *installation) {
	i.apply(`apiVersion: v1
kind: Pod
metadata: {name: own-users}
spec:
  hostUsers: false
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  nodeSelector: {muster.dev/nodegroup: builders}
  containers: [{name: c, image: "muster.dev/workload:v1", args: [serve]}]
`)
	i.eventually("it runs", func() error {
		out, err := i.kubectl("get", "pod", "own-users", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].state}")
		if err == nil && !strings.HasPrefix(out, "Running ") {
			err = fmt.Errorf("%q", out)
		}
		return err
	})
	i.mustKubectl("delete", "pod", "own-users", "--wait=false")
}

// seccompByDefault looks at what the kernel filters of a pod.
func seccompByDefault(t *testing.T, i *installation) {
	i.apply("apiVersion: v1\nkind: Pod\nmetadata: {name: filtered}\nspec:\n  terminationGracePeriodSeconds: 1\n" +
		"  containers: [{name: c, image: \"muster.dev/workload:v1\", args: [serve], volumeMounts: [{name: bin, mountPath: /usr, readOnly: true}, {name: lib, mountPath: /lib, readOnly: true}, {name: lib64, mountPath: /lib64, readOnly: true}]}]\n" +
		"  volumes: [{name: bin, hostPath: {path: /usr}}, {name: lib, hostPath: {path: /usr/lib}}, {name: lib64, hostPath: {path: /usr/lib64}}]\n")
	i.mustKubectl("wait", "--for=condition=Ready", "pod/filtered", "--timeout=120s")
	if got := strings.TrimSpace(i.mustKubectl("exec", "filtered", "--", "/usr/bin/grep", "^Seccomp:", "/proc/1/status")); strings.Join(strings.Fields(got), " ") != "Seccomp: 2" {
		t.Errorf("the kernel says %q", got)
	}
	i.mustKubectl("delete", "pod", "filtered", "--wait=false")
}

// shownBySysfs are what a machine learns of the host and cannot use: names of files behind loop devices, which the
// kernel shows wherever it shows devices.
var shownBySysfs = []string{"loop-files"}

// nothingGetsOut runs test/escape on a machine, as its root, as that with each single right and with none, and as root
// of one more namespace: 44 in all.
func nothingGetsOut(t *testing.T, i *installation) {
	running, err := local.Running(i.dir)
	if err != nil {
		t.Fatal(err)
	}
	nothingGetsOutBy(t, i, "exec", slices.Sorted(maps.Keys(running))[0], "--")
}

// nothingGetsOutBy tries to get out of a machine, on which muster runs a command as root by some arguments.
func nothingGetsOutBy(t *testing.T, i *installation, enter ...string) {
	planted, err := prize.Plant(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := planted.Close(); err != nil {
			t.Error(err)
		}
	})
	program := filepath.Join(t.TempDir(), "escape")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../escape")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	file, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	copied := i.command(t.Context(), slices.Concat(enter, []string{"sh", "-c", "cat >/root/escape && chmod 700 /root/escape"})...)
	copied.Stdin = file
	if out, err := copied.CombinedOutput(); err != nil {
		t.Fatalf("copying it: %v\n%s", err, out)
	}
	planted.Map.Disk = "/root"
	out, talk, runErr := i.try(slices.Concat(enter, []string{"/root/escape"}, planted.Map.Args(), []string{"-o", "json", "-rights", "each"})...)
	all, err := verdict.Read(strings.NewReader(out))
	if err != nil || len(all) == 0 {
		t.Fatalf("it did not run to its end: %v, %v\n%s", runErr, err, talk)
	}
	count := map[verdict.Outcome]int{}
	for _, one := range all {
		count[one.Outcome]++
		if !one.Outcome.Safe() && !slices.Contains(shownBySysfs, one.Attack) {
			t.Errorf("%s with %s is %s: %s", one.Attack, one.Rights, one.Outcome, one.Why)
		}
	}
	t.Logf("%d attacks: %v", len(all), count)
	if marks, err := planted.Marks(); err != nil || len(marks) > 0 {
		t.Errorf("left on the host: %v, %v", marks, err)
	}
}

// idsOf are the ids that a machine has on the host.
func (i *installation) idsOf(id string) userns.IDs {
	i.t.Helper()
	record, err := machine.ReadRecord(filepath.Join(i.dir.Machine(id), machine.RecordFile))
	if err != nil || !record.IDs.Own() {
		i.t.Fatalf("machine %s has the ids %v: %v", id, record.IDs, err)
	}
	return record.IDs
}

// ownersOfVolumes has a pod write as a user of its own.
func ownersOfVolumes(t *testing.T, i *installation) {
	i.apply(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: owned}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: owner}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {runAsUser: 1000, runAsGroup: 3000, fsGroup: 2000}
  containers:
  - {name: c, image: "muster.dev/workload:v1", args: [count, /data], volumeMounts: [{name: v, mountPath: /data}]}
  volumes: [{name: v, persistentVolumeClaim: {claimName: owned}}]
`)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/owner", "--timeout=300s")
	found := ""
	i.eventually("the pod has written", func() error {
		return filepath.WalkDir(i.dir.FileSystems(), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			if found != "" {
				return fmt.Errorf("there are %s and %s", found, path)
			}
			found = path
			return nil
		})
	})
	var stat syscall.Stat_t
	if err := syscall.Stat(found, &stat); err != nil || stat.Uid != 1000 || stat.Gid != 3000 {
		t.Errorf("the pod's file %q belongs to %d:%d on the host, not to 1000:3000: %v", found, stat.Uid, stat.Gid, err)
	}
	i.mustKubectl("delete", "pod/owner", "pvc/owned")
}

// idsGivenBack ends the installation and looks for its lines.
func idsGivenBack(t *testing.T, i *installation) {
	running, err := local.Running(i.dir)
	if err != nil || len(running) == 0 {
		t.Fatalf("the machines that run are %v: %v", running, err)
	}
	var first uint32
	for id := range running {
		first = i.idsOf(id).First
	}
	reserved := func(file string) bool {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			var begin, count uint32
			owner, numbers, _ := strings.Cut(line, ":")
			if _, err := fmt.Sscanf(numbers, "%d:%d", &begin, &count); err == nil && strings.HasPrefix(owner, "muster-") && first >= begin && first < begin+count {
				return true
			}
		}
		return false
	}
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		if !reserved(file) {
			t.Errorf("%s does not reserve the ids from %d on", file, first)
		}
	}
	i.muster("down", "--delete")
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		if reserved(file) {
			t.Errorf("%s still reserves the ids from %d on", file, first)
		}
	}
}
