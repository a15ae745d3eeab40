// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const volumesWorkload = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: share}
spec:
  selector: {matchLabels: {app: share}}
  template:
    metadata: {labels: {app: share}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations: [{operator: Exists}]
      containers:
      - {name: c, image: "muster.dev/workload:v1", args: [serve], volumeMounts: [{name: v, mountPath: /data}]}
      volumes: [{name: v, persistentVolumeClaim: {claimName: shared, readOnly: true}}]
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "muster.dev/workload:v1", args: [count, /data], volumeMounts: [{name: v, mountPath: /data}]}
  volumes: [{name: v, persistentVolumeClaim: {claimName: shared}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      securityContext: {runAsUser: 1000, fsGroup: 2000}
      containers:
      - {name: c, image: "muster.dev/workload:v1", args: [count, -pause, 20ms, /data], volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// TestVolumes has pods on two machines share a claim, and a StatefulSet keep what it wrote whatever is killed or
// deleted.
//
//story:about storage/filestore storage/volumedriver storage/filesystemcontroller
func TestVolumes(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "2")
	i.ready()
	i.apply(volumesWorkload)
	took := i.eventually("claims are bound", func() error {
		got, err := i.kubectl("get", "pvc", "-o", "jsonpath={.items[*].status.phase}")
		if err == nil && got != strings.Join([]string{"Bound", "Bound"}, " ") {
			err = errors.New(got)
		}
		return err
	})
	t.Logf("claims without a class are bound after %s", took.Round(100*time.Millisecond))
	i.mustKubectl("rollout", "status", "daemonset/share", "--timeout=60s")
	i.mustKubectl("wait", "--for=condition=Ready", "pod/writer", "--timeout=60s")
	for _, step := range []struct {
		name string
		run  func(*installation)
	}{
		{"two machines share a claim", (*installation).claimIsShared},
		{"a claim without room is told", (*installation).noRoom},
		{"a raw block volume is a device of its pods", (*installation).blockVolume},
		{"a volume of an access point that the AWS CLI makes", (*installation).byTheCLI},
		{"nothing is lost in rounds of kills", (*installation).nothingLost},
		{"a pod's fsGroup changes no owners and modes", (*installation).modesStay},
		{"a machine that is deleted takes nothing with it", (*installation).machineGoes},
		{"data goes with a claim, or stays", (*installation).claimsGo},
		{"data goes with the cluster only if that is said", (*installation).clusterGoes},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(i.in(t)) }) {
			return
		}
	}
}

// counted is what a pod reads in its volume: the last number, if none is missing.
func (i *installation) counted(pod string) (int, error) {
	out, err := i.kubectl("exec", pod, "--", "/workload", "counted", "/data")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}

func (i *installation) claimIsShared() {
	pods := strings.Fields(i.mustKubectl("get", "pods", "-l", "app=share", "-o", "jsonpath={.items[*].metadata.name}"))
	if len(pods) != 2 {
		i.t.Fatalf("pods %q", pods)
	}
	for _, pod := range pods {
		wrote, err := i.counted("writer")
		if err != nil {
			i.t.Fatal(err)
		}
		if read, err := i.counted(pod); err != nil || read < wrote || read == 0 {
			i.t.Errorf("%s reads %d, %v, of at least %d", pod, read, err, wrote)
		}
		if out, err := i.kubectl("exec", pod, "--", "/workload", "count", "/data"); err == nil {
			i.t.Errorf("%s writes through a claim that it may only read: %s", pod, out)
		}
	}
}

func (i *installation) noRoom() {
	i.apply("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: huge}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 100Pi}}}\n")
	i.eventually("the Event says how much room there is", func() error {
		got, err := i.kubectl("get", "events", "--field-selector", "involvedObject.name=huge,reason=ProvisioningFailed", "-o", "jsonpath={.items[*].message}")
		if err == nil && !strings.Contains(got, "MiB left") {
			err = errors.New(got)
		}
		return err
	})
	i.mustKubectl("delete", "pvc", "huge")
	i.noCapacity()
}

const waitingWorkload = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: waiting}
spec: {storageClassName: later, accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}
---
apiVersion: v1
kind: Pod
metadata: {name: waiting}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "muster.dev/workload:v1", args: [serve], volumeMounts: [{name: v, mountPath: /data}]}
  volumes: [{name: v, persistentVolumeClaim: {claimName: waiting}}]
`

// noCapacity has the scheduler keep a pod whose claim waits for it, since nothing has so much room, and schedule one
// that asks for less.
func (i *installation) noCapacity() {
	id := i.mustKubectl("get", "storageclass", "efs", "-o", "jsonpath={.parameters.fileSystemId}")
	i.apply("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: later}\nprovisioner: efs.csi.aws.com\n" +
		"parameters: {provisioningMode: efs-ap, fileSystemId: " + id + ", directoryPerms: \"777\"}\nvolumeBindingMode: WaitForFirstConsumer\n")
	i.apply(fmt.Sprintf(waitingWorkload, "100Pi"))
	i.eventually("the pod says that there is no room", func() error {
		got, err := i.kubectl("get", "pod", "waiting", "-o", "jsonpath={.status.phase}: {.status.conditions[?(@.type=='PodScheduled')].message}")
		if err == nil && (!strings.HasPrefix(got, "Pending: ") || !strings.Contains(got, "enough free storage")) {
			err = errors.New(got)
		}
		return err
	})
	if phase := i.mustKubectl("get", "pvc", "waiting", "-o", "jsonpath={.status.phase}"); phase != "Pending" {
		i.t.Errorf("the claim that nothing has room for is %s", phase)
	}
	i.mustKubectl("delete", "pod/waiting", "pvc/waiting")
	i.apply(fmt.Sprintf(waitingWorkload, "1Mi"))
	i.mustKubectl("wait", "--for=condition=Ready", "pod/waiting", "--timeout=60s")
	i.mustKubectl("delete", "pod/waiting", "pvc/waiting", "storageclass/later")
	i.eventually("the capacity of a class that is gone is not told", func() error {
		got, err := i.kubectl("get", "csistoragecapacities", "-n", "kube-system", "-o", "jsonpath={.items[*].storageClassName}")
		if err == nil && got != "efs" {
			err = errors.New(got)
		}
		return err
	})
}

// lives is what the pod that counts is, and where.
type lives struct{ uid, machine string }

func (i *installation) writerLives() (l lives, err error) {
	out, err := i.kubectl("get", "pod", "db-0", "-o", "jsonpath={.metadata.uid} {.spec.nodeName}")
	if err != nil {
		return l, err
	}
	var node string
	if _, err := fmt.Sscan(out, &l.uid, &node); err != nil {
		return l, fmt.Errorf("db-0 has no node yet: %w", err)
	}
	id, err := i.kubectl("get", "node", node, "-o", "jsonpath={.spec.providerID}")
	l.machine = filepath.Base(id)
	return l, err
}

// countsOn waits until the pod that counts, one other than before if that has a uid, is beyond a number that it had. It
// returns where it is.
func (i *installation) countsOn(round, last int, before lives, after string) int {
	i.t.Helper()
	took := i.eventually(fmt.Sprintf("round %d: after %s the pod counts on from %d", round, after, last), func() error {
		is, err := i.writerLives()
		if err != nil {
			return err
		}
		if is.uid == before.uid {
			return errors.New("it is still the pod of before")
		}
		now, err := i.counted("db-0")
		switch {
		case err != nil && strings.Contains(err.Error(), "something is lost"), err == nil && now < last:
			i.t.Fatalf("round %d: after %s: it has %d, and had %d: %v", round, after, now, last, err)
		case err == nil && now == last:
			err = fmt.Errorf("still at %d", now)
		case err == nil:
			last = now
		}
		return err
	})
	i.t.Logf("round %d: %s: at %d after %s", round, after, last, took.Round(100*time.Millisecond))
	return last
}

// nothingLost kills what a volume depends on while a pod writes to it, in every second round at about the moment when
// the pod goes and another one comes.
func (i *installation) nothingLost() {
	seed := uint64(time.Now().UnixNano())
	i.t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	last := 0
	for round := range volumeRounds {
		victims := []string{"kubelet", "containerd", "serve", "machine"} // the driver is a part of the service; a machine boots again
		victim := victims[random.IntN(len(victims))]
		if round < len(victims) {
			victim = victims[round]
		}
		movesPod, forced, pause := random.IntN(2) == 0, random.IntN(2) == 0, time.Duration(random.Int64N(int64(600*time.Millisecond)))
		is, err := i.writerLives()
		if err != nil {
			i.t.Fatal(err)
		}
		after := "kill -9 of " + victim
		if movesPod {
			arguments := []string{"delete", "pod", "db-0", "--wait=false"}
			if forced {
				arguments = append(arguments, "--force", "--grace-period=0")
			}
			i.mustKubectl(arguments...)
			after = fmt.Sprintf("a pod was deleted (forced: %v) and, %s later, %s", forced, pause.Round(time.Millisecond), after)
		} else {
			is.uid = ""
		}
		<-time.After(pause)
		i.killOnMachine(is.machine, victim)
		last = i.countsOn(round, last, is, after)
	}
}

// killOnMachine kills a daemon of a machine, all of the machine, or the service. A process that an earlier round has
// killed must be back.
func (i *installation) killOnMachine(machine, victim string) {
	i.t.Helper()
	i.eventually(victim+" is there to be killed", func() error {
		running := i.processes()
		first := running["machine/"+machine].PID
		pid, ok := running[victim].PID, running[victim].PID != 0
		switch victim {
		case "machine":
			pid, ok = first, first != 0
		case "kubelet", "containerd":
			pid, ok = i.inMachineOf(first, victim)
		}
		if !ok {
			return errors.New("it does not run")
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	})
}

// machineGoes deletes the machine that the pod is on, so that another one has to mount its volume.
func (i *installation) machineGoes() {
	last, err := i.counted("db-0")
	if err != nil {
		i.t.Fatal(err)
	}
	for round := range machineRounds {
		i.eventually("the service answers", func() error { _, err := i.status(); return err })
		is, err := i.writerLives()
		if err != nil {
			i.t.Fatal(err)
		}
		attached := i.attachFile(is.machine)
		begun := time.Now()
		i.muster("delete", "machine", is.machine)
		last = i.countsOn(round, last, is, "machine "+is.machine+" was deleted")
		if now, err := i.writerLives(); err != nil || now.machine == is.machine {
			i.t.Fatalf("round %d: it is on %s, %v", round, now.machine, err)
		}
		i.t.Logf("round %d: %s from the request to a pod elsewhere that counts on", round, time.Since(begun).Round(100*time.Millisecond))
		i.eventually("what the machine attached is gone", func() error {
			if file, err := os.ReadFile(filepath.Join("/sys/block", attached, "loop", "backing_file")); err == nil && strings.Contains(string(file), attachedFile) {
				return fmt.Errorf("%s has %s", attached, file)
			}
			return nil
		})
	}
}

// modesStay looks at what pods wrote that were started again and again, one of them with an fsGroup.
func (i *installation) modesStay() {
	if n := len(i.volumes()); n != 2 {
		i.t.Fatalf("%d volumes", n)
	}
	for _, volume := range i.volumes() {
		for path, want := range map[string]os.FileMode{volume: os.ModeDir | 0o777, filepath.Join(volume, "count"): 0o644} {
			info, err := os.Stat(path)
			if err != nil {
				i.t.Error(err)
				continue
			}
			if is, ok := info.Sys().(*syscall.Stat_t); !ok || is.Gid == 2000 || info.Mode() != want {
				i.t.Errorf("%s has mode %s and group %d, want %s and not the fsGroup", path, info.Mode(), is.Gid, want)
			}
		}
	}
}

// claimsGo deletes claims, one of a volume that is to be retained.
func (i *installation) claimsGo() {
	i.mustKubectl("delete", "daemonset/share", "--ignore-not-found")
	i.mustKubectl("delete", "pod/writer", "--ignore-not-found")
	if n := len(i.volumes()); n != 2 {
		i.t.Fatalf("%d volumes", n)
	}
	kept := i.mustKubectl("get", "pvc", "shared", "-o", "jsonpath={.spec.volumeName}")
	i.mustKubectl("patch", "pv", kept, "-p", `{"spec": {"persistentVolumeReclaimPolicy": "Retain"}}`)
	i.mustKubectl("delete", "statefulset/db")
	i.mustKubectl("delete", "pvc", "--all")
	i.eventually("one volume is left", func() error {
		if left := i.volumes(); len(left) != 1 {
			return fmt.Errorf("%d volumes", len(left))
		}
		return nil
	})
	if _, err := os.Stat(filepath.Join(i.volumes()[0], "count")); err != nil {
		i.t.Errorf("what was to be retained: %v", err)
	}
	if phase := i.mustKubectl("get", "pv", kept, "-o", "jsonpath={.status.phase}"); phase != "Released" {
		i.t.Errorf("its PersistentVolume is %s", phase)
	}
}

// volumes are the directories of volumes that are there.
func (i *installation) volumes() []string {
	i.t.Helper()
	found, err := filepath.Glob(filepath.Join(i.dir.FileSystems(), "fs-*", "data", "fsap-*"))
	if err != nil {
		i.t.Fatal(err)
	}
	return found
}

// clusterGoes deletes the cluster, which has a claim beside the volume that was retained.
func (i *installation) clusterGoes() {
	i.apply("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: last}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n")
	i.mustKubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/last", "--timeout=30s")
	kept := i.volumes()
	if len(kept) != 2 {
		i.t.Fatalf("volumes %q", kept)
	}
	i.muster("delete", "nodegroup", "default")
	if _, stderr, err := i.try("delete", "cluster", "muster"); err == nil || !strings.Contains(stderr, "holds 1 volume of claims (default/last)") {
		i.t.Fatalf("deleting a cluster with a claim: %v: %s", err, stderr)
	}
	i.muster("delete", "cluster", "muster", "--cascade")
	if left := i.volumes(); len(left) != 1 {
		i.t.Errorf("volumes %q are left, and one was to be retained", left)
	} else if _, err := os.Stat(filepath.Join(left[0], "count")); err != nil {
		i.t.Errorf("what was to be retained: %v", err)
	}
	i.muster("create", "filesystem", "shared", "--wait")
	if out, _ := i.muster("get", "filesystems"); !strings.Contains(out, "shared") || !strings.Contains(out, "default") {
		i.t.Errorf("file systems: %s", out)
	}
	i.muster("delete", "filesystem", "shared")
}
