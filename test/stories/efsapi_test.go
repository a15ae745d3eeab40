// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// staticVolume is a volume that is there before its claim, by the handle that EFS's driver takes.
const staticVolume = `apiVersion: v1
kind: PersistentVolume
metadata: {name: web}
spec:
  capacity: {storage: 5Gi}
  accessModes: [ReadWriteMany]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ""
  csi: {driver: efs.csi.aws.com, volumeHandle: %s}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: web}
spec: {accessModes: [ReadWriteMany], storageClassName: "", volumeName: web, resources: {requests: {storage: 5Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {runAsUser: 1000, runAsGroup: 1000}
  containers:
  - {name: c, image: "muster.dev/workload:v1", args: [count, /data], volumeMounts: [{name: v, mountPath: /data}]}
  volumes: [{name: v, persistentVolumeClaim: {claimName: web}}]
`

// byTheCLI has the AWS CLI make a file system and an access point, a pod use them, and the CLI remove them.
func (i *installation) byTheCLI() {
	w := newIAM(i.t, i)
	var system struct{ FileSystemID string }
	w.mustAWS(&system, "efs", "create-file-system", "--creation-token", "story", "--tags", "Key=Name,Value=story")
	i.eventually("the file system is available", func() error {
		var got struct {
			FileSystems []struct{ LifeCycleState, Name string }
		}
		w.mustAWS(&got, "efs", "describe-file-systems", "--file-system-id", system.FileSystemID)
		if len(got.FileSystems) != 1 || got.FileSystems[0].LifeCycleState != "available" || got.FileSystems[0].Name != "story" {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	var point struct{ AccessPointID string }
	w.mustAWS(&point, "efs", "create-access-point", "--file-system-id", system.FileSystemID, "--posix-user", "Uid=1000,Gid=1000",
		"--root-directory", "Path=/web,CreationInfo={OwnerUid=1000,OwnerGid=1000,Permissions=0700}")
	// A mount target in the cluster's VPC lets it in, and the file system's list of clusters keeps it out.
	var target struct{ MountTargetID string }
	subnet := strings.Fields(i.mustKubectl("--context", "muster-management", "get", "subnets", "-o", "jsonpath={.items[*].metadata.name}"))[0]
	w.mustAWS(&target, "efs", "create-mount-target", "--file-system-id", system.FileSystemID, "--subnet-id", subnet)
	i.isFor(system.FileSystemID, `["other"]`)
	i.apply(fmt.Sprintf(staticVolume, system.FileSystemID+"::"+point.AccessPointID))
	i.eventually("the pod says that the file system is for other clusters", func() error {
		got, err := i.kubectl("get", "events", "--field-selector", "involvedObject.name=web,reason=FailedMount", "-o", "jsonpath={.items[*].message}")
		if err == nil && !strings.Contains(got, "is for other clusters than") {
			err = errors.New(got)
		}
		return err
	})
	i.isFor(system.FileSystemID, "null")
	i.mustKubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=180s") // the kubelet tries again after pauses that grow
	i.eventually("the pod counts in its volume", func() error {
		n, err := i.counted("web")
		if err == nil && n == 0 {
			err = errors.New("at 0")
		}
		return err
	})
	directory := filepath.Join(i.dir.FileSystems(), system.FileSystemID, "data", "web")
	info, err := os.Stat(directory)
	if err != nil {
		i.t.Fatal(err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || owner.Uid != 1000 || owner.Gid != 1000 || info.Mode().Perm() != 0o700 {
		i.t.Errorf("the directory is %s of %+v", info.Mode(), info.Sys())
	}
	if _, err := w.aws(w.admin, "efs", "delete-file-system", "--file-system-id", system.FileSystemID); err == nil || !strings.Contains(err.Error(), "FileSystemInUse") {
		i.t.Errorf("deleting a file system that is used: %v", err)
	}
	i.mustKubectl("delete", "pod/web", "pvc/web", "pv/web")
	w.mustAWS(nil, "efs", "delete-mount-target", "--mount-target-id", target.MountTargetID)
	w.mustAWS(nil, "efs", "delete-access-point", "--access-point-id", point.AccessPointID)
	w.mustAWS(nil, "efs", "delete-file-system", "--file-system-id", system.FileSystemID)
	i.eventually("the file system is gone", func() error {
		if _, err := w.aws(w.admin, "efs", "describe-file-systems", "--file-system-id", system.FileSystemID); err == nil || !strings.Contains(err.Error(), "FileSystemNotFound") {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	if _, err := os.Stat(directory); !os.IsNotExist(err) {
		i.t.Errorf("its data: %v", err)
	}
}

// isFor has a file system be for some clusters alone, or for all.
func (i *installation) isFor(fileSystem, clusters string) {
	i.t.Helper()
	i.mustKubectl("--context", "muster-management", "patch", "filesystem", fileSystem, "--type", "merge", "-p", `{"spec":{"clusters":`+clusters+`}}`)
}
