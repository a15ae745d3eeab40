// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// databasePod is a PostgreSQL of the host's packages on a file system that the pod makes on its block device, and
// mounts. A database that is there is started as it is.
const databasePod = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s}
spec:
  accessModes: [ReadWriteOnce]
  volumeMode: Block
  resources: {requests: {storage: 512Mi}}
  %[2]s
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: muster.dev/workload:v1
    securityContext: {privileged: true, runAsUser: 0}
    env: [{name: PATH, value: "/usr/sbin:/usr/bin"}]
    command: [/usr/bin/bash, -euc]
    args:
    - |
      mkdir -p /etc /tmp /mnt /run
      echo 'postgres:x:1000:1000::/:/bin/sh' >/etc/passwd
      chmod 1777 /tmp
      if ! blkid /dev/data; then mkfs.ext4 -q /dev/data; fi
      mount /dev/data /mnt
      bin=$(echo /usr/lib/postgresql/*/bin)
      as() { setpriv --reuid=1000 --regid=1000 --clear-groups "$@"; }
      if [[ ! -e /mnt/db ]]; then
        install -d -o 1000 -g 1000 -m 700 /mnt/db
        as $bin/initdb -D /mnt/db -A trust >/dev/null
      fi
      trap 'kill -INT $!; wait; exit' TERM
      as $bin/postgres -D /mnt/db -k /tmp -c listen_addresses= &
      wait $!
    volumeDevices: [{name: data, devicePath: /dev/data}]
    volumeMounts:
    - {name: usr, mountPath: /usr, readOnly: true}
    - {name: bin, mountPath: /bin, readOnly: true}
    - {name: sbin, mountPath: /sbin, readOnly: true}
    - {name: lib, mountPath: /lib, readOnly: true}
    - {name: lib64, mountPath: /lib64, readOnly: true}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: %[1]s}}
  - {name: usr, hostPath: {path: /usr}}
  - {name: bin, hostPath: {path: /usr/bin}}
  - {name: sbin, hostPath: {path: /usr/sbin}}
  - {name: lib, hostPath: {path: /usr/lib}}
  - {name: lib64, hostPath: {path: /usr/lib64}}
`

// databaseWriter inserts one row after another, each in a transaction of its own, and has what is in memory written all
// the time. It outlives the command that starts it. A copy of what changes meanwhile, not of one moment, has a
// checkpoint whose log it has not.
const databaseWriter = `setsid bash -c '
for ((n = 1; ; n++)); do echo "INSERT INTO rows VALUES ($n, 1);"; done | psql -h /tmp -U postgres -q &
while psql -h /tmp -U postgres -qc CHECKPOINT; do sleep 0.05; done' >/tmp/writer 2>&1 </dev/null &`

const databaseCluster = `apiVersion: muster.dev/v1alpha1
kind: Cluster
metadata: {name: muster}
spec: {name: muster}
---
apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {namespace: muster, name: default}
spec: {name: default, scalingConfig: {desiredSize: 1}}
`

// TestCopiedDatabase copies a block device while a PostgreSQL writes to the file system on it: one that starts from the
// copy has every row that was acknowledged before, and no row without the one before it.
//
//story:about storage/filestore storage/volumedriver
//story:needs postgresql
func TestCopiedDatabase(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.volumesOnXFS()
	i.up(databaseCluster)
	i.ready()
	i.database("first", "")
	i.mustSQL("first", "CREATE TABLE rows (n bigint PRIMARY KEY, filler int)")
	i.mustKubectl("exec", "first", "--", "/usr/bin/bash", "-c", databaseWriter)
	for round := range 5 {
		before := i.rowsPast("first", 200)
		name := "copy-" + strconv.Itoa(round)
		i.database(name, "dataSource: {kind: PersistentVolumeClaim, name: first}")
		after := i.rowsPast("first", 0)
		fields := strings.Fields(i.mustSQL(name, "SELECT count(*), max(n), min(n) FROM rows"))
		if len(fields) != 3 {
			t.Fatalf("%s answers %q", name, fields)
		}
		count, _ := strconv.Atoi(fields[0])
		if fields[0] != fields[1] || fields[2] != "1" || count < before || count > after {
			t.Errorf("%s has %s rows, from %s to %s, and was made between %d and %d", name, fields[0], fields[2], fields[1], before, after)
		}
		i.mustSQL(name, "INSERT INTO rows VALUES (0, 0)")
		t.Logf("%s has %d rows, of %d before and %d after", name, count, before, after)
		i.mustKubectl("delete", "pod/"+name, "pvc/"+name)
	}
}

// database has a pod with a database, and waits until it answers.
func (i *installation) database(name, source string) {
	i.t.Helper()
	i.apply(fmt.Sprintf(databasePod, name, source))
	i.mustKubectl("wait", "--for=condition=Ready", "pod/"+name, "--timeout=300s")
	i.eventually(name+" answers", func() error {
		out, err := i.sql(name, "SELECT 1")
		if err != nil {
			logs, _ := i.kubectl("logs", name)
			err = fmt.Errorf("%w: %s: %s", err, out, logs)
		}
		return err
	})
}

func (i *installation) sql(pod, statement string) (string, error) {
	return i.kubectl("exec", pod, "--", "/usr/bin/psql", "-h", "/tmp", "-U", "postgres", "-d", "postgres", "-At", "-F", " ", "-v", "ON_ERROR_STOP=1", "-c", statement)
}

func (i *installation) mustSQL(pod, statement string) string {
	i.t.Helper()
	out, err := i.sql(pod, statement)
	if err != nil {
		i.t.Fatalf("%s: %v: %s", statement, err, out)
	}
	return out
}

// rowsPast waits until there are some rows more than now, and returns how many.
func (i *installation) rowsPast(pod string, more int) (rows int) {
	i.t.Helper()
	first := -1
	i.eventually("the database of "+pod+" is written", func() error {
		n, err := strconv.Atoi(strings.TrimSpace(i.mustSQL(pod, "SELECT count(*) FROM rows")))
		if err != nil {
			return fmt.Errorf("counting rows: %w", err)
		}
		if first < 0 {
			first = n
		}
		if rows = n; rows < first+more {
			return fmt.Errorf("%d rows of %d", rows, first+more)
		}
		return nil
	})
	return rows
}
