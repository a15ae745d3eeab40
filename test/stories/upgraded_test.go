// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/test/earlier"
)

// upgradedFrom is the oldest commit whose state is converted (layout 4). The service kept the keys of service account
// tokens then, control planes were root and had no front, and machines had no user namespaces by default.
const upgradedFrom = "2161fb0c187e5a374aa1a6a2261f79a23a0ac1ba"

// keptDatabase is a PostgreSQL of the host's packages in a volume. It inserts numbers one by one, and writes down each
// that was acknowledged.
const keptDatabase = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: db}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 512Mi}}}
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
      terminationGracePeriodSeconds: 5
      containers:
      - name: c
        image: muster.dev/workload:v1
        securityContext: {runAsUser: 0}
        env: [{name: PATH, value: "/usr/sbin:/usr/bin"}]
        command: [/usr/bin/bash, -euc]
        args:
        - |
          mkdir -p /etc /tmp /run
          echo 'postgres:x:1000:1000::/:/bin/sh' >/etc/passwd
          chmod 1777 /tmp
          bin=$(echo /usr/lib/postgresql/*/bin)
          as() { setpriv --reuid=1000 --regid=1000 --clear-groups "$@"; }
          sql() { psql -h /tmp -U postgres -d postgres -v ON_ERROR_STOP=1 -qAt "$@"; }
          if [[ ! -e /data/db/made ]]; then
            rm -rf /data/db
            install -d -o 1000 -g 1000 -m 700 /data/db
            as $bin/initdb -D /data/db -A trust >/dev/null
            touch /data/db/made
          fi
          rm -f /data/db/postmaster.pid
          trap 'kill -INT $!; wait; exit' TERM
          insert() {
            until sql -c 'CREATE TABLE IF NOT EXISTS rows (n bigint PRIMARY KEY)'; do sleep 0.2; done
            n=$(sql -c 'SELECT coalesce(max(n), 0) FROM rows')
            while n=$((n + 1)); do sql -c "INSERT INTO rows VALUES ($n) RETURNING n" >>/data/acknowledged || exit; done
          }
          insert &
          as $bin/postgres -D /data/db -k /tmp -c listen_addresses= &
          wait $!
        volumeMounts:
        - {name: data, mountPath: /data}
        - {name: usr, mountPath: /usr, readOnly: true}
        - {name: bin, mountPath: /bin, readOnly: true}
        - {name: sbin, mountPath: /sbin, readOnly: true}
        - {name: lib, mountPath: /lib, readOnly: true}
        - {name: lib64, mountPath: /lib64, readOnly: true}
      volumes:
      - {name: data, persistentVolumeClaim: {claimName: db}}
      - {name: usr, hostPath: {path: /usr}}
      - {name: bin, hostPath: {path: /usr/bin}}
      - {name: sbin, hostPath: {path: /usr/sbin}}
      - {name: lib, hostPath: {path: /usr/lib}}
      - {name: lib64, hostPath: {path: /usr/lib64}}
`

// lostRows prints how many rows were acknowledged, and those of them that the database has not.
const lostRows = `acknowledged=$(grep -c . /data/acknowledged)
echo $acknowledged $(comm -23 <(head -n $acknowledged /data/acknowledged | sort) <(psql -h /tmp -U postgres -d postgres -qAtc "SELECT n FROM rows" | sort))`

// TestUpgradedWithADatabase upgrades an installation of the oldest Muster whose state is converted while a PostgreSQL
// writes, with kill -9 of whatever does it in between. The database is not restarted by that; then each machine loses its
// power, and boots with ids of its own, and no row that was acknowledged is lost.
//
//story:about cluster/stateconversion cluster/serve machine/machine/local plane/supervise platform/subid
//story:needs postgresql
func TestUpgradedWithADatabase(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	i := newInstallation(t)
	now := i.bin
	before, err := earlier.Programs(t.Context(), filepath.Join("..", ".."), upgradedFrom, now)
	if err != nil {
		t.Fatal(err)
	}
	i.bin = before
	i.muster("up", "--nodes", "2")
	i.ready()
	i.apply(keptDatabase)
	i.mustKubectl("rollout", "status", "statefulset/db", "--timeout=300s")
	i.nothingIsLost(100)
	machines, containers := i.machines(), i.containerOfDatabase()

	i.bin = now
	for range 6 {
		pause := time.Duration(random.Int64N(int64(6 * time.Second)))
		ctx, cancel := context.WithTimeout(t.Context(), pause)
		upgrade := i.command(ctx, "up")
		upgrade.Cancel = func() error { return upgrade.Process.Kill() }
		out, err := upgrade.CombinedOutput()
		cancel()
		victim := "serve"
		if running, err := i.running(); err == nil && random.IntN(2) == 0 {
			names := make([]string, 0, len(running))
			for name := range running {
				if !strings.HasPrefix(name, "machine/") {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			victim = names[random.IntN(len(names))]
		}
		if p, there := i.processes()[victim]; there {
			err = errors.Join(err, syscall.Kill(p.PID, syscall.SIGKILL))
		}
		t.Logf("muster up was killed after %s, and then %s: %v\n%s", pause.Round(time.Millisecond), victim, err, lastLine(string(out)))
	}
	i.muster("up")
	i.ready()
	i.isConverted()
	i.nothingIsLost(100)
	if is := i.machines(); !sameMachines(is, machines) {
		t.Errorf("machines were %v, and are %v", machines, is)
	}
	if is := i.containerOfDatabase(); is != containers {
		t.Errorf("the database was %s, and is %s", containers, is)
	}
	if out, _ := i.muster("status"); !strings.Contains(out, "does not hold for 2 machines") {
		t.Errorf("muster status does not say that machines have the host's root:\n%s", out)
	}
	for id, pid := range machines {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		i.eventually("machine "+id+" boots again", func() error {
			if again, ok := i.machines()[id]; !ok || again == pid {
				return errors.New("not yet")
			}
			return nil
		})
		i.nothingIsLost(50)
	}
	i.eventually("both machines have ids of their own", func() error {
		if out, _ := i.muster("get", "machines", "-o", "wide"); strings.Count(out, "user-namespace") != 2 {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	i.ready()
	i.muster("delete", "machine", i.machineOfDatabase())
	i.nothingIsLost(50)
}

// isConverted waits until the keys of service account tokens are the token signer's alone, and fails unless the records
// of before are kept.
func (i *installation) isConverted() {
	i.t.Helper()
	i.eventually("the keys of tokens are the signer's alone", func() error {
		if _, err := os.Stat(filepath.Join(i.cluster().TokenSigner(), "keys.json")); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(i.cluster().PKI(), "service-account", "keys.json")); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the service has them still: %w", err)
		}
		return nil
	})
	for _, record := range []string{"layout", "account.json", "clusters/muster/cluster.yaml", "clusters/muster/network.json"} {
		if _, err := os.Stat(filepath.Join(string(i.dir), "saved", "layout-4", record)); err != nil {
			i.t.Error(err)
		}
	}
}

// nothingIsLost waits until the database has acknowledged some rows more than now, and fails if one is not there.
func (i *installation) nothingIsLost(more int) {
	i.t.Helper()
	first := -1
	i.eventually("the database writes", func() error {
		out, err := i.kubectl("exec", "db-0", "--", "/usr/bin/bash", "-ec", lostRows)
		if err != nil {
			logs, _ := i.kubectl("logs", "db-0", "--tail=3")
			return fmt.Errorf("%w: %s", err, logs)
		}
		var rows int
		if n, err := fmt.Sscan(out, &rows); n != 1 {
			return fmt.Errorf("%q: %w", out, err)
		}
		if lost := strings.Fields(out)[1:]; len(lost) > 0 {
			i.t.Fatalf("of %d rows that were acknowledged %d are lost: %v", rows, len(lost), lost)
		}
		if first < 0 {
			first = rows
		}
		if rows < first+more {
			return fmt.Errorf("%d rows of %d", rows, first+more)
		}
		i.t.Logf("%d rows were acknowledged, and all are there", rows)
		return nil
	})
}

// containerOfDatabase is the container that the database runs in.
func (i *installation) containerOfDatabase() string {
	i.t.Helper()
	return i.mustKubectl("get", "pod", "db-0", "-o", "jsonpath={.metadata.uid} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}")
}

// machineOfDatabase is the id of the machine that it runs on.
func (i *installation) machineOfDatabase() string {
	i.t.Helper()
	node := i.mustKubectl("get", "pod", "db-0", "-o", "jsonpath={.spec.nodeName}")
	return i.mustKubectl("--context=muster-management", "get", "machines", "-A", "-o", `jsonpath={.items[?(@.status.nodeName=="`+node+`")].metadata.name}`)
}

func sameMachines(is, were map[string]int) bool {
	for id, pid := range were {
		if is[id] != pid {
			return false
		}
	}
	return len(is) == len(were)
}
