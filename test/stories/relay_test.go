// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"

	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/test/prober"
)

// TestRelay replaces muster by another file with the same program, as an upgrade does, while a cluster is asked by its
// private endpoint, over new connections and over one that is kept, and watched: nothing fails, and the VPC's process
// before goes on with its connections. That the prober sees failures is shown by a process that is killed. No process of
// the VPC outlives the account.
//
//story:about network/vpc plane/component plane/supervise
func TestRelay(t *testing.T) {
	bin := ownPrograms(t, programs(t))
	i := newInstallation(t)
	i.bin = bin
	i.muster("up", "--nodes", "1", "--timeout", "3m")
	machines := i.namespacesOf(clusterconfig.DefaultClusterName)
	door := i.privateDoor(machines[slices.Sorted(maps.Keys(machines))[0]])
	private := small
	private.Doors = []prober.Door{door}
	cluster := side{i, clusterconfig.DefaultClusterName}

	p := cluster.startProber(private)
	i.asks(p, 200)
	vpc := i.vpcProcess()
	before := i.all(vpc)
	i.replaceProgram("muster")
	i.muster("up", "--timeout", "3m")
	i.eventually("the next process of the VPC serves", func() error {
		status, err := i.status()
		for _, c := range status.Components {
			if c.Name == vpc && c.State == runner.Ready && c.PID != before[0].PID {
				return err
			}
		}
		return errors.Join(err, errors.New("it does not"))
	})
	i.asks(p, 400)
	if now := i.all(vpc); len(now) != 2 || now[0].PID != before[0].PID {
		t.Errorf("connections are kept, and these processes of the VPC run: %+v", now)
	}
	i.failedNothing(p, "muster was replaced")
	i.ready()

	p = cluster.startProber(private)
	i.asks(p, 100)
	for _, process := range i.all(vpc) {
		if err := syscall.Kill(process.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	i.asks(p, 200)
	if seen := p.Stop(); seen.Causes["cut"] == 0 {
		t.Errorf("the process of the VPC was killed, and the prober saw nothing of it: %s", seen)
	}
	i.ready()

	kept, err := door.Dial(t.Context(), "tcp4", door.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	i.replaceProgram("muster")
	i.muster("up", "--timeout", "3m")
	i.eventually("two processes of the VPC run", func() error {
		if now := i.all(vpc); len(now) != 2 {
			return fmt.Errorf("these run: %+v", now)
		}
		return nil
	})
	i.muster("down")
	if left := i.all(vpc); len(left) > 0 {
		t.Errorf("these processes of the VPC are left: %+v", left)
	}
}

// privateDoor is the private endpoint of the cluster, from a machine.
func (i *installation) privateDoor(machine *os.File) prober.Door {
	i.t.Helper()
	return prober.Door{Name: "private endpoint", Address: net.JoinHostPort(i.endpoint(), "443"), Dial: func(ctx context.Context, network, address string) (connection net.Conn, err error) {
		err = host.InNetwork(machine, func() error {
			connection, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return connection, err
	}}
}
