// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// doors are what SECURITY.md says of an administrator of one cluster, by the first column of its table: the
// administrator of blue tries each.
func doors() map[string]func(t *testing.T, muster, blue side) {
	return map[string]func(t *testing.T, muster, blue side){
		"a pod with every right": everyRightOfAPod,
		"users and their credentials": func(t *testing.T, muster, blue side) {
			usersAreStrangers(t, muster, blue)
			credentialsAreWorthNothing(t, muster, blue)
		},
		"the credentials of a machine": func(t *testing.T, muster, blue side) {
			machinesAreNodesAtHome(t, muster, blue)
			rolesOfMachinesReadNothing(t, blue)
		},
		"what an API server dials":                    webhooksAreStrangers,
		"connections of pods and machines":            podsAreNeighbours,
		"volumes that name a directory of the host's": volumesOfOthers,
	}
}

// readDoors are the first cells of the table in SECURITY.md, in its order.
func readDoors(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(raw), "\n## What an administrator of one cluster can do\n")
	if !found {
		t.Fatal("SECURITY.md does not say what an administrator of one cluster can do")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var named []string
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| door |") {
			continue
		}
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		named = append(named, cell)
	}
	return named
}

// tryDoors tries every row of the table, and knows of no other.
func tryDoors(t *testing.T, muster, blue side) {
	known, named := doors(), readDoors(t)
	for door := range known {
		if !slices.Contains(named, door) {
			t.Errorf("SECURITY.md has no row for %q", door)
		}
	}
	for _, door := range named {
		t.Run(door, func(t *testing.T) {
			try, ok := known[door]
			if !ok {
				t.Fatal("nobody tries what SECURITY.md says of it")
			}
			try(t, side{muster.in(t), muster.cluster}, side{blue.in(t), blue.cluster})
		})
	}
}

// mighty is a pod that has all that Kubernetes can give one, with the programs of its machine.
const mighty = `apiVersion: v1
kind: Pod
metadata: {name: mighty}
spec:
  hostPID: true
  hostNetwork: true
  hostIPC: true
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: muster.dev/workload:v1
    imagePullPolicy: IfNotPresent
    args: [serve]
    securityContext: {privileged: true, runAsUser: 0}
    volumeMounts: [{name: machine, mountPath: /machine}, {name: usr, mountPath: /usr, readOnly: true}, {name: lib, mountPath: /lib, readOnly: true}, {name: lib64, mountPath: /lib64, readOnly: true}]
  volumes: [{name: machine, hostPath: {path: /}}, {name: usr, hostPath: {path: /usr}}, {name: lib, hostPath: {path: /usr/lib}}, {name: lib64, hostPath: {path: /usr/lib64}}]
`

// everyRightOfAPod looks from such a pod for what the host, the account and the other cluster keep.
func everyRightOfAPod(t *testing.T, muster, blue side) {
	blue.apply(mighty, "--context=blue")
	blue.mustKubectl("--context", "blue", "wait", "--for=condition=Ready", "pod/mighty", "--timeout=120s")
	shell := func(script string) (string, error) {
		return blue.kubectl("--context", "blue", "exec", "mighty", "--", "/usr/bin/env", "PATH=/usr/sbin:/usr/bin", "sh", "-c", script)
	}
	// The refusals below are the kernel's, and not for want of a program.
	if out, err := shell("echo here; touch /machine/root/mine && cat /proc/1/comm && for p in nsenter mount mknod head grep date; do command -v $p || exit 1; done"); err != nil || !strings.HasPrefix(out, "here\nmuster\n") {
		t.Fatalf("the pod is not what it should be: %v\n%s", err, out)
	}
	var disk unix.Stat_t
	if err := unix.Stat(string(muster.dir), &disk); err != nil {
		t.Fatal(err)
	}
	secret := muster.dir.ManagementKubeconfig()
	if _, err := os.Stat(secret); err != nil {
		t.Fatal(err)
	}
	for _, attempt := range []string{
		"cat " + secret,
		"cat /machine" + secret,
		"cat /proc/1/root" + secret,
		"nsenter --target 1 --mount --pid cat " + secret,
		"cat " + filepath.Join(muster.dir.Cluster("muster").PKI(), "cluster", "ca.pem"),
		"echo x >/proc/sys/kernel/core_pattern",
		"mount -t proc none /machine/mnt && echo x >/machine/mnt/sys/kernel/core_pattern",
		"mount -o remount,bind,rw /machine/usr && touch /machine/usr/bin/mine",
		fmt.Sprintf("mknod /machine/root/disk b %d %d && head -c 1 /machine/root/disk", unix.Major(disk.Dev), unix.Minor(disk.Dev)),
		"head -c 1 /machine/dev/mem",
		"cat /proc/[0-9]*/comm | grep -x -e etcd -e kube-apiserver",
		"date -s 2000-01-01",
		"echo b >/proc/sysrq-trigger",
	} {
		if out, err := shell("echo tried; " + attempt); err == nil || !strings.HasPrefix(out, "tried\n") && !strings.Contains(err.Error(), "exit code") {
			t.Errorf("the pod may do %q, or it was not tried: %v\n%s", attempt, err, out)
		}
	}
	blue.mustKubectl("--context", "blue", "delete", "pod", "mighty", "--wait=false")
}

// rolesOfMachinesReadNothing asks as a machine for what is the account's, and the other cluster's.
func rolesOfMachinesReadNothing(t *testing.T, blue side) {
	w := newIAM(t, blue.installation)
	all := strings.Fields(blue.mustKubectl("--context", "muster-management", "get", "machines", "-o",
		`jsonpath={range .items[?(@.spec.clusterName=="blue")]}{.metadata.name} {.spec.instanceProfile}{"\n"}{end}`))
	if len(all) != 2 {
		t.Fatalf("cluster blue has the machines %q", all)
	}
	keys := w.machineKeys(all[0], all[1])
	who := w.as(keys)
	if out, err := w.aws(who, "sts", "get-caller-identity"); err != nil || !strings.Contains(out, all[1]) {
		t.Errorf("the machine is %s: %v", out, err)
	}
	for _, call := range [][]string{
		{"iam", "list-users"},
		{"iam", "create-access-key", "--user-name", "admin"},
		{"sts", "assume-role", "--role-arn", "arn:aws:iam::" + iamAccount + ":role/muster-node-muster", "--role-session-name", "neighbour"},
		{"eks", "delete-cluster", "--name", "muster"},
		{"eks", "create-access-entry", "--cluster-name", "muster", "--principal-arn", "arn:aws:iam::" + iamAccount + ":role/" + all[1]},
	} {
		if out, err := w.aws(who, call...); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("a machine may %v: %v\n%s", call, err, out)
		}
	}
}

// volumesOfOthers has pods of blue ask for a directory of the other cluster's: its volumes of the default class, the
// file system that they are all in, and one that was made for the other cluster alone.
func volumesOfOthers(t *testing.T, muster, blue side) {
	muster.apply(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: private}, spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 8Mi}}}}`, "--context=muster")
	muster.mustKubectl("--context", "muster", "wait", "--for=jsonpath={.status.phase}=Bound", "pvc/private", "--timeout=60s")
	volume := muster.mustKubectl("--context", "muster", "get", "pvc", "private", "-o", "jsonpath={.spec.volumeName}")
	private := muster.mustKubectl("--context", "muster", "get", "pv", volume, "-o", "jsonpath={.spec.csi.volumeHandle}")
	muster.muster("create", "filesystem", "only-muster", "--cluster", "muster", "--wait")
	only := muster.mustKubectl("--context=muster-management", "get", "filesystems", "-o", `jsonpath={.items[?(@.spec.name=="only-muster")].metadata.name}`)
	common, _, _ := strings.Cut(private, ":")
	if private == "" || only == "" || common == private {
		t.Fatalf("handles are %q and %q", private, only)
	}
	for n, handle := range []string{private, common, common + ":/", only} {
		name := fmt.Sprint("stolen-", n)
		blue.apply(fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec: {capacity: {storage: 8Mi}, accessModes: [ReadWriteMany], storageClassName: "", persistentVolumeReclaimPolicy: Retain, csi: {driver: efs.csi.aws.com, volumeHandle: %[2]q}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s}
spec: {accessModes: [ReadWriteMany], storageClassName: "", volumeName: %[1]s, resources: {requests: {storage: 8Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve], volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: %[1]s}}]
`, name, handle), "--context=blue")
		blue.eventually("the volume "+handle+" is refused", func() error {
			if phase := blue.mustKubectl("--context", "blue", "get", "pod", name, "-o", "jsonpath={.status.phase}"); phase == "Running" {
				t.Fatalf("a pod of blue has the volume %s of the other cluster", handle)
			}
			said, err := blue.kubectl("--context", "blue", "get", "events", "--field-selector", "involvedObject.name="+name+",reason=FailedMount", "-o", "jsonpath={.items[*].message}")
			if err == nil && !strings.Contains(said, "PermissionDenied") {
				err = errors.New("nothing says so: " + said)
			}
			return err
		})
		blue.mustKubectl("--context", "blue", "delete", "pod,pvc,pv", name, "--wait=false")
	}
	muster.mustKubectl("--context", "muster", "delete", "pvc", "private", "--wait=false")
	muster.muster("delete", "filesystem", "only-muster")
}
