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
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/test/prober"
)

// TestChangeOfTheManagementPlane puts another program in the place of that of the management plane's API server, as a
// patch does, while the plane is asked and watched: a server of the new program takes the place of the other one, and
// nothing fails, also when the service is killed meanwhile. A newcomer that does not start changes nothing, and is told.
// That the prober sees failures is shown by an API server that is killed.
//
//story:about plane/planerollout plane/planefront plane/component plane/portplan plane/supervise cluster/serve
func TestChangeOfTheManagementPlane(t *testing.T) {
	bin := ownPrograms(t, programs(t))
	i := newInstallation(t)
	i.bin = bin
	i.muster("up", "--provider", "simulated", "--nodes", "1", "--timeout", "3m")
	first, second := component.ManagementName(0), component.ManagementName(1)
	before := i.processes()

	p := i.probeManagement()
	i.asks(p, 100)
	i.replaceManagement()
	i.kill("serve")
	i.managementServes(second)
	i.asks(p, 200)
	i.failedNothing(p, "the program was replaced")

	p = i.probeManagement()
	i.asks(p, 100)
	i.replaceManagement()
	i.kill("serve")
	i.eventually("the newcomer runs", func() error {
		if _, runs := i.processes()[first]; !runs {
			return errors.New("it does not")
		}
		return nil
	})
	i.kill("serve")
	i.managementServes(first)
	i.asks(p, 200)
	i.failedNothing(p, "the program was replaced and the service killed")
	for _, name := range []string{component.ManagementEtcd, component.ManagementFront, component.APIServer} {
		if now := i.processes()[name]; now.PID != before[name].PID {
			t.Errorf("%s was process %d and is %d", name, before[name].PID, now.PID)
		}
	}

	i.refusedManagement(first, second)

	p = i.probeManagement()
	i.asks(p, 100)
	i.kill(first)
	i.asks(p, 100)
	if seen := p.Stop(); seen.Failed == 0 {
		t.Errorf("the API server was killed, and the prober saw nothing of it: %s", seen)
	}
	i.ready()
}

// refusedManagement has the folder of the API server that would take the place of the one that serves be a file.
func (i *installation) refusedManagement(serves, newcomer string) {
	i.t.Helper()
	folder, before := i.dir.Component(newcomer), i.processes()[serves]
	if err := errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600)); err != nil {
		i.t.Fatal(err)
	}
	p := i.probeManagement()
	i.replaceManagement()
	i.kill("serve")
	i.eventually("the change is refused", func() error {
		status, err := i.status()
		if err == nil && !slices.ContainsFunc(status.Notes, func(note string) bool { return strings.HasPrefix(note, "the management plane runs on as it was: ") }) {
			err = fmt.Errorf("the notes are %q", status.Notes)
		}
		return err
	})
	i.asks(p, 100)
	i.failedNothing(p, "a change was refused")
	if now := i.processes()[serves]; now.PID != before.PID {
		i.t.Errorf("%s was process %d and is %d", serves, before.PID, now.PID)
	}
	if err := os.Remove(folder); err != nil {
		i.t.Fatal(err)
	}
}

// replaceManagement puts another file with the same program in the place of the management plane's.
func (i *installation) replaceManagement() {
	i.t.Helper()
	path, err := filepath.Rel(i.bin, release.Default().Program(i.bin, "generic-apiserver"))
	if err != nil {
		i.t.Fatal(err)
	}
	i.replaceProgram(path)
}

// managementServes waits until an API server of the management plane runs as the only one, and is Ready.
func (i *installation) managementServes(name string) {
	i.t.Helper()
	took := i.eventually(name+" serves alone", func() error {
		running, err := i.running()
		if err != nil {
			return err
		}
		for slot := range component.ManagementServers {
			other := component.ManagementName(slot)
			if p, runs := running[other]; runs != (other == name) {
				return fmt.Errorf("%s: process %d", other, p.PID)
			}
		}
		return nil
	})
	i.t.Logf("%s serves alone after %s", name, took)
	i.ready()
}

// probeManagement starts a prober of the management plane.
func (i *installation) probeManagement() *prober.Prober {
	i.t.Helper()
	return i.startProberBy(i.dir.ManagementKubeconfig(), managementContext, small)
}
