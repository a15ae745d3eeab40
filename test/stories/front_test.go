// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/test/earlier"
)

// TestFront replaces the front of a control plane by one of another program, as an upgrade of Muster does, while it is
// asked over new connections and over one that is kept, and watched: nothing fails, and the front before goes with its
// last connection. That the prober sees failures is shown by a front that is killed. A front that hangs is replaced, too.
//
//story:about plane/planefront plane/frontservers plane/supervise plane/component
func TestFront(t *testing.T) {
	bin := ownPrograms(t, programs(t))
	i := newInstallation(t)
	i.bin = bin
	i.muster("up", "--provider", "simulated", "--nodes", "1", "--timeout", "3m")
	p := i.probe()
	i.asks(p, 100)
	before := i.fronts()
	i.replaceProgram("muster-plane-front")
	i.kill("serve")
	i.eventually("the next front serves", func() error { return i.frontIs(func(pid int) bool { return pid != before[0].PID }) })
	i.asks(p, 300)
	if now := i.fronts(); len(now) != 2 || now[0].PID != before[0].PID {
		t.Errorf("connections are kept, and these fronts run: %+v", now)
	}
	seen := p.Stop()
	if t.Log(seen); seen.Failed > 0 {
		t.Errorf("while the front was replaced %d of %d requests failed", seen.Failed, seen.Asked)
	}

	p = i.probe()
	i.asks(p, 100)
	for _, front := range i.fronts() {
		if err := syscall.Kill(front.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	i.asks(p, 100)
	if seen := p.Stop(); seen.Failed == 0 {
		t.Errorf("the front was killed, and the prober saw nothing of it: %s", seen)
	}
	i.ready()
	if now := i.fronts(); len(now) != 1 {
		t.Errorf("these fronts run: %+v", now)
	}

	// A front that hangs answers no next one: it is ended, since nobody would accept new connections.
	hung := i.fronts()[0].PID
	if err := syscall.Kill(hung, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	i.replaceProgram("muster-plane-front")
	i.kill("serve")
	i.eventually("the next front serves", func() error { return i.frontIs(func(pid int) bool { return pid != hung }) })
	i.ready()
	if now := i.fronts(); len(now) != 1 || now[0].PID == hung {
		t.Errorf("front %d hung, and these run: %+v", hung, now)
	}
}

// ownPrograms is a directory of the test's own with links to the programs of another: single programs can be replaced
// there. It is on the same file system, and machines see it.
func ownPrograms(t *testing.T, from string) string {
	t.Helper()
	build, err := filepath.Abs(filepath.Join("..", "..", ".build"))
	if err != nil {
		t.Fatal(err)
	}
	bin, err := os.MkdirTemp(build, "own-programs-") //nolint:usetesting // programs are linked within one file system
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(bin) })
	if err := errors.Join(os.Chmod(bin, 0o755), earlier.Replace(from, bin)); err != nil {
		t.Fatal(err)
	}
	return bin
}

// replaceProgram puts another file with the same program in the place of one of the installation's own.
func (i *installation) replaceProgram(name string) {
	i.t.Helper()
	path := filepath.Join(i.bin, name)
	copyProgram(i.t, path, path+".new")
	if err := os.Rename(path+".new", path); err != nil {
		i.t.Fatal(err)
	}
}

// fronts are the processes of fronts that run, the oldest first.
func (i *installation) fronts() []supervise.Process {
	i.t.Helper()
	return i.all(component.Front)
}

// all are the processes of a name that run, the oldest first.
func (i *installation) all(wanted string) (all []supervise.Process) {
	i.t.Helper()
	found, err := i.find()
	if err != nil {
		i.t.Fatal(err)
	}
	for _, p := range found {
		if _, name := component.SplitProcess(p.Name); name == wanted {
			all = append(all, p)
		}
	}
	return all
}

// frontIs asks the service which process the front is.
func (i *installation) frontIs(wanted func(pid int) bool) error {
	status, err := i.status()
	if err != nil {
		return err
	}
	for _, cluster := range status.Clusters { // empty while the service looks for clusters
		for _, c := range cluster.Components {
			if c.Name == component.Front && c.State == runner.Ready && wanted(c.PID) {
				return nil
			}
		}
	}
	return errors.New("it is not the one that is waited for")
}
