// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/test/earlier"
	"muster.dev/muster/test/prober"
)

// ownUpgradeFrom is the last commit before state directories said which release wrote them. Its control planes have a
// front, which can be replaced without a call that fails, and its programs of Kubernetes lie where today's do.
const ownUpgradeFrom = "a3a093b99d96175f9f2cc69aa3c67d26efb747ad"

// planeComponents are the processes of control planes that are not Muster's own programs.
var planeComponents = []string{
	component.ManagementEtcd, component.ManagementName(0), component.ManagementName(1), component.Etcd, component.APIServerName(0), component.APIServerName(1), component.ControllerManager, component.Scheduler,
}

// TestOwnUpgrade replaces an earlier Muster by this one, in its own directory, under two clusters with nodes, pods that
// talk, and a prober each. No control plane is restarted whose spec is as it was, no machine is, and no call fails. The
// earlier Muster refuses to go back in one line, and changes nothing.
//
//story:about cluster/stateconversion cluster/session cluster/guard cluster/serve plane/planefront plane/planerollout plane/supervise
func TestOwnUpgrade(t *testing.T) {
	root := filepath.Join("..", "..")
	before, err := earlier.Programs(t.Context(), root, ownUpgradeFrom, programs(t))
	if err != nil {
		t.Fatal(err)
	}
	bin := ownPrograms(t, before)
	i := newInstallation(t)
	now := i.bin
	i.bin = bin
	i.muster("up", "--nodes", "2", "--timeout", "3m")
	muster, blue := side{i, "muster"}, side{i, "blue"}
	muster.startNeighbours()
	i.muster("create", "cluster", "blue", "--nodes", "1", "--wait", "--timeout", "3m")
	blue.apply(fmt.Sprintf(neighbour, "neighbour-blue", ""), "--context=blue")
	blue.mustKubectl("--context", "blue", "wait", "--for=condition=Ready", "pod/neighbour-blue", "--timeout=90s")
	for _, s := range []side{muster, blue} {
		s.mustKubectl("--context", s.cluster, "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
	}
	i.ready()
	processes, machines, pods := i.planes(), i.machines(), i.podContainers()

	stop := muster.keepTalking()
	probers := map[string]*prober.Prober{"muster": muster.probe(), "blue": blue.probe()}
	for _, p := range probers {
		i.asks(p, 200)
	}
	i.replacePrograms(now, bin)
	begun := time.Now()
	_, talk := i.muster("up", "--timeout", "5m")
	t.Logf("muster up took %s and said\n%s", time.Since(begun).Round(time.Second), talk)
	if !strings.Contains(talk, "The state directory of an earlier Muster is converted") {
		t.Error("nothing is said of the conversion")
	}
	i.ready()
	for _, p := range probers {
		i.asks(p, 400)
	}
	for name, p := range probers {
		i.failedNothing(p, "Muster was replaced under cluster "+name)
	}
	stop()
	i.planesAreAsBefore(processes)
	if is := i.machines(); !maps.Equal(is, machines) {
		t.Errorf("machines were %v, and are %v", machines, is)
	}
	if is := i.podContainers(); is != pods {
		t.Errorf("pods were\n%s\nand are\n%s", pods, is)
	}
	i.refusesToGoBack(before)
	i.refusesNewer()
}

// replacePrograms puts programs at their places in the directory of the installation's.
func (i *installation) replacePrograms(from, bin string) {
	i.t.Helper()
	if err := earlier.Replace(from, bin); err != nil {
		i.t.Fatal(err)
	}
	i.bin = bin
}

// planes are the processes of all control planes, by cluster and component.
func (i *installation) planes() map[string]supervise.Process {
	i.t.Helper()
	found, err := i.find()
	if err != nil {
		i.t.Fatal(err)
	}
	planes := map[string]supervise.Process{}
	for _, p := range found {
		if _, name := component.SplitProcess(p.Name); slices.Contains(planeComponents, name) {
			planes[p.Name] = p
		}
	}
	return planes
}

// planesAreAsBefore fails if a process of a control plane was restarted whose spec is as it was, or if none was left alone.
func (i *installation) planesAreAsBefore(were map[string]supervise.Process) {
	i.t.Helper()
	are, same := i.planes(), 0
	for name, was := range were {
		switch is := are[name]; {
		case is.PID == was.PID:
			same++
		case is.Spec == was.Spec:
			i.t.Errorf("%s was process %d and is %d, of the same spec", name, was.PID, is.PID)
		default:
			i.t.Logf("%s has another spec now", name)
		}
	}
	if i.t.Logf("%d of %d processes of control planes are as they were", same, len(were)); same == 0 {
		i.t.Error("no process was left alone")
	}
}

// podContainers are the containers of the pods of both clusters, and how often each was restarted.
func (i *installation) podContainers() string {
	i.t.Helper()
	var all []string
	for _, cluster := range []string{"muster", "blue"} {
		all = append(all, i.mustKubectl("--context", cluster, "get", "pods", "-A", "--sort-by=.metadata.uid",
			"-o", `jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[*].containerID} {.status.containerStatuses[*].restartCount}{"\n"}{end}`))
	}
	return strings.Join(all, "\n")
}

// refusesToGoBack has the programs of an earlier Muster refuse what is newer than they are, in one line.
func (i *installation) refusesToGoBack(before string) {
	i.t.Helper()
	planes, bin := i.planes(), i.bin
	service := i.processes()["serve"]
	for _, command := range []string{"up", "serve"} {
		i.bin = before
		_, talk, err := i.try(command)
		i.bin = bin
		if err == nil || strings.Count(strings.TrimSpace(talk), "\n") > 0 {
			i.t.Errorf("the earlier muster %s: %v\n%s", command, err, talk)
		}
		if command == "up" && (!strings.Contains(talk, string(i.dir)+" has layout version ") || !strings.Contains(talk, "use the Muster that made it, or a newer one")) {
			i.t.Errorf("the earlier muster %s says %s", command, talk)
		}
		i.t.Logf("the earlier muster %s says: %s", command, talk)
	}
	if is := i.planes(); !maps.EqualFunc(is, planes, func(a, b supervise.Process) bool { return a.PID == b.PID }) {
		i.t.Errorf("it changed what runs: %v, and were %v", is, planes)
	}
	if is := i.processes()["serve"]; is.PID != service.PID {
		i.t.Errorf("the service was process %d and is %d", service.PID, is.PID)
	}
	i.ready()
}

// refusesNewer has this Muster refuse the state directory as a newer one marks it.
func (i *installation) refusesNewer() {
	i.t.Helper()
	marks := map[string]string{i.dir.Layout(): "1000\n", filepath.Join(string(i.dir), "written.json"): `{"release":"v9.0.0","layout":1000,"from":1000}`}
	for path, newer := range marks {
		was, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(newer), 0o600)
		}
		if err != nil {
			i.t.Fatal(err)
		}
		defer func() {
			if err := os.WriteFile(path, was, 0o600); err != nil {
				i.t.Error(err)
			}
		}()
	}
	_, talk, err := i.try("up")
	if err == nil || strings.Count(strings.TrimSpace(talk), "\n") > 0 || !strings.Contains(talk, string(i.dir)+" was written by Muster v9.0.0 (layout 1000), and this is Muster ") {
		i.t.Errorf("muster up: %v\n%s", err, talk)
	}
}
