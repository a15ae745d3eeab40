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

	"muster.dev/muster/internal/plane/component"
)

// TestChangeOfTheAPIServer changes a flag of a cluster's kube-apiserver while it is asked and watched: another one takes
// its place, and nothing fails, also when the service is killed meanwhile. A newcomer that does not start changes
// nothing, and is told. That the prober sees failures is shown by a kube-apiserver that is killed.
//
//story:about plane/planerollout plane/planefront plane/component plane/portplan plane/supervise cluster/serve
func TestChangeOfTheAPIServer(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "1", "--timeout", "3m")
	first, second := component.APIServerName(0), component.APIServerName(1)
	before := i.processes()

	p := i.probe()
	i.asks(p, 100)
	i.eventTTL("20m")
	i.serves(second, "20m")
	i.asks(p, 200)
	i.failedNothing(p, "a flag was changed")
	if scheduler := i.processes()[component.Scheduler]; scheduler.PID != before[component.Scheduler].PID {
		t.Errorf("the scheduler, which has no other flag, was process %d and is %d", before[component.Scheduler].PID, scheduler.PID)
	}

	p = i.probe()
	i.asks(p, 100)
	i.eventTTL("30m")
	i.eventually("the newcomer runs", func() error {
		if _, runs := i.processes()[first]; !runs {
			return errors.New("it does not")
		}
		return nil
	})
	i.kill("serve")
	i.serves(first, "30m")
	i.asks(p, 200)
	i.failedNothing(p, "a flag was changed and the service killed")

	i.refusedChange(t, first, second)

	p = i.probe()
	i.asks(p, 100)
	i.kill(first)
	i.asks(p, 100)
	if seen := p.Stop(); seen.Failed == 0 {
		t.Errorf("kube-apiserver was killed, and the prober saw nothing of it: %s", seen)
	}
	i.ready()
}

// refusedChange has the folder of the API server that would take the place of the one that serves be a file.
func (i *installation) refusedChange(t *testing.T, serves, newcomer string) {
	folder, before := i.cluster().Component(newcomer), i.processes()[serves]
	if err := errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	p := i.probe()
	i.eventTTL("40m")
	i.eventually("the change is refused", func() error {
		said, err := i.kubectl(managementContext, "-n", "muster", "get", "cluster", "muster", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")]}`)
		if err == nil && (!strings.Contains(said, "ChangeRefused") || !strings.Contains(said, "it runs on as it was: the API server with the change did not serve") || !strings.Contains(said, filepath.Base(folder))) {
			err = errors.New(said)
		}
		return err
	})
	i.asks(p, 50)
	i.failedNothing(p, "a change was refused")
	if now := i.processes(); now[serves].PID != before.PID || now[newcomer].PID != 0 {
		t.Errorf("it does not run on as it was: %+v", now)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	i.eventTTL("30m")
	i.serves(serves, "30m")
	if now := i.processes()[serves]; now.PID != before.PID {
		t.Errorf("what was refused was taken back, and kube-apiserver was process %d and is %d", before.PID, now.PID)
	}
}

// eventTTL asks for another event TTL.
func (i *installation) eventTTL(ttl string) {
	i.t.Helper()
	i.mustKubectl(managementContext, "-n", "muster", "patch", "cluster", "muster", "--type", "merge", "-p", fmt.Sprintf(`{"spec":{"apiServer":{"eventTTL":%q}}}`, ttl))
}

// serves waits until a kube-apiserver is the only one, and the cluster is Ready with an event TTL.
func (i *installation) serves(name, ttl string) {
	i.t.Helper()
	took := i.eventually(name+" serves alone", func() error {
		running, err := i.running()
		if err != nil {
			return err
		}
		for slot := range component.APIServers {
			other := component.APIServerName(slot)
			if p, runs := running[other]; runs != (other == name) {
				return fmt.Errorf("%s: process %d", other, p.PID)
			}
		}
		return i.isReady()
	})
	if arguments := i.mustCommandLine(name); !slices.Contains(arguments, "--event-ttl="+ttl+"0s") {
		i.t.Errorf("%s has the arguments %q", name, arguments)
	}
	i.t.Logf("%s serves with the change after %s", name, took)
	i.ready()
}
