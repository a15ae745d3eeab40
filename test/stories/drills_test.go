// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDrills has a machine in each trouble that `muster drill` knows, with the service killed as soon as it begins, and
// sees it, and sees it end: by itself, or by the command. A refusal of the command changes nothing.
//
//story:about machine/drill machine/nodegroup machine/machine/local machine/hostagent node/agent node/imds network/vpc ./cmd/muster/objects
func TestDrills(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	w := newIAM(t, i)
	i.apply(fmt.Sprintf(keptGroup, "drilled", "local", "Role")+"---\n"+fmt.Sprintf(keptGroup, "simulated", "simulated", "Token"), "--context=muster-management")
	for _, step := range []struct {
		name string
		run  func(*drilledMachine)
	}{
		{"what is refused", (*drilledMachine).refused},
		{"a program that does not run", (*drilledMachine).withoutPrograms},
		{"a full disk", (*drilledMachine).fullDisk},
		{"no network", (*drilledMachine).noNetwork},
		{"what is announced", (*drilledMachine).announced},
		{"stop and reboot", (*drilledMachine).stopAndReboot},
		{"an interruption", (*drilledMachine).interrupted},
	} {
		t.Run(step.name, func(t *testing.T) {
			d := &drilledMachine{powered{iam: w.step(t)}}
			d.find("drilled")
			step.run(d)
		})
	}
}

// drilledMachine is the machine of a node group.
type drilledMachine struct{ powered }

// begins has a drill go on, and kills the service.
func (d *drilledMachine) begins(kind string, lasts ...string) {
	d.t.Helper()
	args := append([]string{"drill", d.id, kind}, lasts...)
	out, _ := d.muster(args...)
	if kind != "end" && !strings.Contains(out, "drill "+kind+" until ") {
		d.t.Errorf("%v says %q", args, out)
	}
	d.kill("serve")
}

// ends waits until no drill of the machine goes on.
func (d *drilledMachine) ends() {
	d.t.Helper()
	d.eventually("the drill ends", func() error {
		out, err := d.kubectl("get", "--context=muster-management", "machine", d.id, "-o", "jsonpath={.status.drill.kind} {.status.drill.endedAt}")
		if err == nil && len(strings.Fields(out)) != 2 {
			err = fmt.Errorf("drill %s", out)
		}
		return err
	})
}

// inside runs a command on the machine.
func (d *drilledMachine) inside(args ...string) (string, error) {
	out, _, err := d.try(append([]string{"exec", d.id, "--"}, args...)...)
	return strings.TrimSpace(out), err
}

// nodeIs waits until the Node's condition Ready is something.
func (d *drilledMachine) nodeIs(status string) {
	d.t.Helper()
	took := d.eventually("its node is "+status, func() error {
		out, err := d.kubectl("get", "node", d.node, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && out != status {
			err = fmt.Errorf("it is %s", out)
		}
		return err
	})
	d.t.Logf("the node is %s after %v", status, took.Round(100*time.Millisecond))
}

func (d *drilledMachine) refused() {
	simulated := powered{iam: d.iam}
	simulated.find("simulated")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{d.id, "clock"}, "a local machine has the host's clock"},
		{[]string{d.id, "flood"}, `there is no drill "flood": there are spot-interruption`},
		{[]string{"i-00000000000000000", "stop"}, `machine "i-00000000000000000" not found`},
		{[]string{simulated.id, "stop"}, "has no drills"},
		{[]string{d.id, "stop", "--cluster", "blue"}, `is of cluster "muster", and --cluster says "blue"`},
		{[]string{d.id, "reboot", "--for", "1m"}, "leave --for out"},
		{[]string{d.id, "stop", "--for", "25h"}, "a drill lasts from 1s to 24h0m0s"},
	} {
		_, said, err := d.try(append([]string{"drill"}, c.args...)...)
		if err == nil || !strings.Contains(said, c.says) || strings.Count(strings.TrimSpace(said), "\n") > 0 {
			d.t.Errorf("%v: %v, %q, want one line with %q", c.args, err, said, c.says)
		}
	}
	if out := d.mustKubectl("get", "--context=muster-management", "machines", "-o", "jsonpath={.items[*].spec.drill}"); out != "" {
		d.t.Errorf("a drill that was refused is there: %s", out)
	}
}

// runs reports whether a program of the machine runs.
func (d *drilledMachine) runs(program string) bool {
	_, ok := d.inMachineOf(d.machines()[d.id], program)
	return ok
}

func (d *drilledMachine) withoutPrograms() {
	for _, program := range []string{"kubelet", "containerd"} {
		d.begins(program)
		d.eventually("the machine has no "+program, func() error {
			if d.runs(program) {
				return errors.New("it runs")
			}
			return nil
		})
		d.eventually("people are told of it", func() error {
			status, talk, _ := d.try("status") // which fails while a node is not Ready
			machines, _, err := d.try("get", "machines")
			if note := "has the drill " + program + " until"; err == nil && (!strings.Contains(status+talk, note) || !strings.Contains(machines, "DRILL")) {
				err = fmt.Errorf("%s%s%s", status, talk, machines)
			}
			return err
		})
		if program == "kubelet" {
			d.nodeIs("Unknown")
		}
		d.begins("end")
		d.eventually("the machine has "+program, func() error {
			if !d.runs(program) {
				return errors.New("it does not run")
			}
			return nil
		})
		d.ends()
		d.nodeIs("True")
	}
}

// fullDisk fills the machine's disk, and not the host's.
func (d *drilledMachine) fullDisk() {
	taken := func() int64 {
		info, err := os.Stat(d.dir.MachineDisk(d.id))
		if err != nil {
			d.t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Blocks * 512
	}
	left := func() int64 {
		out, err := d.inside("stat", "-f", "-c", "%a", "/")
		blocks, wrong := strconv.ParseInt(out, 10, 64)
		if err != nil || wrong != nil {
			d.t.Logf("%q, %v", out, errors.Join(err, wrong))
			return -1
		}
		return blocks
	}
	before := taken()
	d.begins("disk-full")
	d.eventually("the disk is full", func() error {
		if n := left(); n != 0 {
			return fmt.Errorf("%d blocks are left", n)
		}
		return nil
	})
	if more := taken() - before; more > 256<<20 {
		d.t.Errorf("the host's disk has %d MiB more of it", more>>20)
	}
	d.begins("end")
	d.eventually("there is space", func() error {
		if n := left(); n < 1<<20 {
			return fmt.Errorf("%d blocks are left", n)
		}
		return nil
	})
	d.ends()
}

func (d *drilledMachine) noNetwork() {
	d.begins("no-network", "--for", "2m") // a node is Unknown after 40 to 55 seconds
	d.nodeIs("Unknown")
	d.ends()
	d.nodeIs("True")
}

// leaf is a text of instance metadata, as the machine reads it.
func (d *drilledMachine) leaf(path string) (string, error) {
	text, found := strings.CutSuffix(d.askMetadata(d.address, "meta-data/"+path), " 200")
	if !found {
		return "", errors.New(text)
	}
	return text, nil
}

func (d *drilledMachine) announced() {
	d.begins("rebalance")
	d.eventually("a recommendation is announced", func() error {
		out, err := d.leaf("events/recommendations/rebalance")
		if err == nil && !strings.Contains(out, "noticeTime") {
			err = errors.New(out)
		}
		return err
	})
	first, began := d.machines()[d.id], time.Now()
	d.begins("maintenance", "--for", "20s") // in place of the other one
	d.eventually("maintenance is announced", func() error {
		out, err := d.leaf("events/maintenance/scheduled")
		if err == nil && !strings.Contains(out, "system-reboot") {
			err = errors.New(out)
		}
		return err
	})
	if out, err := d.leaf("events/recommendations/rebalance"); err == nil {
		d.t.Errorf("the other drill goes on: %s", out)
	}
	d.reboots(first, began)
}

// reboots waits until the machine has another first process, and its node is Ready since then. A kubelet says so once.
func (d *drilledMachine) reboots(first int, began time.Time) {
	d.t.Helper()
	d.eventually("it reboots", func() error {
		if now := d.machines()[d.id]; now == 0 || now == first {
			return fmt.Errorf("its first process is %d", now)
		}
		return nil
	})
	d.ends()
	d.isBack(began)
}

func (d *drilledMachine) stopAndReboot() {
	d.begins("stop", "--for", "15s")
	d.is("stopped")
	began := time.Now()
	d.eventually("its Node says so", func() error {
		out, err := d.kubectl("get", "node", d.node, "-o", "jsonpath={.spec.taints[*].key}")
		if err == nil && !strings.Contains(out, "node.cloudprovider.kubernetes.io/shutdown") {
			err = errors.New(out)
		}
		return err
	})
	d.is("running")
	d.ends()
	d.isBack(began)
	first := d.machines()[d.id]
	began = time.Now()
	d.begins("reboot")
	d.reboots(first, began)
}

func (d *drilledMachine) interrupted() {
	before := d.id
	d.begins("spot-interruption", "--for", "20s")
	d.eventually("it is announced", func() error {
		out, err := d.leaf("spot/instance-action")
		if err == nil && !strings.Contains(out, `"action":"terminate"`) {
			err = errors.New(out)
		}
		return err
	})
	d.eventually("another takes its place", func() error {
		out, err := d.kubectl("get", "--context=muster-management", "machines", "-l", "muster.dev/nodegroup=drilled", "-o", "jsonpath={.items[*].metadata.name}")
		if err == nil && strings.Contains(out, before) {
			err = errors.New(out)
		}
		return err
	})
	if d.find("drilled"); d.id == before {
		d.t.Errorf("%s is still there", before)
	}
}
