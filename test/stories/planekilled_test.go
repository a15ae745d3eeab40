// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planerollout"
	"muster.dev/muster/internal/platform/release"
)

const (
	// planeRounds is how often a plane is changed at least, planeFor how long at most, and planeKills how often each process
	// of the table is killed at each step.
	planeRounds = 60
	planeFor    = 60 * time.Minute
	planeKills  = 3
)

// The steps of a change of a plane, in their order.
const (
	stepAccepted  = "accepted"        // nothing has begun
	stepNewcomer  = "newcomer"        // it is being started
	stepFollowers = "followers first" // of a rollback, before the newcomer serves
	stepDraining  = "draining"        // the newcomer serves, the one before ends
	stepAlone     = "alone"           // it has ended; followers, status and the Update are left
)

// kill is a row of the table: a process of a plane that is killed at a step of a change.
type kill struct{ change, step, victim string }

// The victims that are no components.
const (
	theService  = "service"
	theNewcomer = "newcomer"
	theServing  = "serving API server"
	theDraining = "draining API server"
)

func planeTable() (table []kill) {
	for _, change := range []string{"flag", "upgrade", "rollback"} {
		table = append(table,
			kill{change, stepAccepted, theService},
			kill{change, stepNewcomer, theService}, kill{change, stepNewcomer, theNewcomer}, kill{change, stepNewcomer, theServing},
			kill{change, stepNewcomer, component.Front}, kill{change, stepNewcomer, component.Etcd},
			kill{change, stepDraining, theService}, kill{change, stepDraining, theServing}, kill{change, stepDraining, theDraining}, kill{change, stepDraining, component.Front},
			kill{change, stepAlone, theService}, kill{change, stepAlone, component.ControllerManager})
	}
	return append(table, kill{"rollback", stepFollowers, theService}, kill{"rollback", stepFollowers, component.ControllerManager})
}

// TestPlaneKilledAtEachStep changes a plane again and again, by a flag, an upgrade and a rollback in turns, and kills a
// process of it at each step. Every change is carried through, what was written is there, and while only the service is
// killed no call fails.
//
//story:about plane/planerollout cluster/updatecontroller
//story:needs kubernetes MINOR=1.37
func TestPlaneKilledAtEachStep(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "1", "--timeout", "3m")
	is, next := release.Default(), minorAfter(release.Default())
	i.mustKubectl("--context", "muster", "create", "configmap", "kept", "--from-literal=round=none")

	done, until := map[kill]int{}, time.Now().Add(planeFor)
	rounds, changes := 0, []string{"flag", "upgrade", "rollback"}
	for ; (rounds < planeRounds || missing(done) > 0) && time.Now().Before(until); rounds++ {
		round := planeRound{installation: i, number: rounds, change: changes[rounds%len(changes)], to: is}
		if round.change == "upgrade" {
			round.to = next
		}
		round.kills = choose(planeTable(), done, round.change, random)
		round.run(done)
	}
	for _, row := range planeTable() {
		t.Logf("%-9s %-16s %-24s killed %d times", row.change, row.step, row.victim, done[row])
	}
	if t.Logf("%d rounds", rounds); missing(done) > 0 {
		t.Errorf("%d of %d rows were killed fewer than %d times", missing(done), len(planeTable()), planeKills)
	}
}

// missing is how many rows were killed too seldom.
func missing(done map[kill]int) (rows int) {
	for _, row := range planeTable() {
		if done[row] < planeKills {
			rows++
		}
	}
	return rows
}

// choose picks a row for each of two steps of a change: those that most is left of. Two in a round leave time for the first
// victim to be back.
func choose(table []kill, done map[kill]int, change string, random *rand.Rand) map[string]kill {
	chosen, left := map[string]kill{}, map[string]int{}
	for _, n := range random.Perm(len(table)) {
		row := table[n]
		if row.change != change || done[row] >= planeKills {
			continue
		}
		left[row.step] += planeKills - done[row]
		if best, ok := chosen[row.step]; !ok || done[row] < done[best] {
			chosen[row.step] = row
		}
	}
	for len(chosen) > 2 {
		least := slices.MinFunc(slices.Sorted(maps.Keys(chosen)), func(a, b string) int { return left[a] - left[b] })
		delete(chosen, least)
	}
	return chosen
}

// planeRound is one change.
type planeRound struct {
	*installation
	number int
	change string
	to     release.Release
	kills  map[string]kill
}

func (r planeRound) name() string { return fmt.Sprintf("round-%d", r.number) }

func (r planeRound) run(done map[kill]int) {
	r.t.Helper()
	r.mustKubectl("--context", "muster", "patch", "configmap", "kept", "--type", "merge", "-p", fmt.Sprintf(`{"data":{"round":%q}}`, r.name()))
	harmless := true
	for _, row := range r.kills {
		harmless = harmless && row.victim == theService
	}
	p := r.probe()
	switch r.change {
	case "flag":
		r.requestUpdate(r.name(), fmt.Sprintf("type: ControlPlaneComponentConfigUpdate, change: {components: {apiServer: {eventTTL: %dm}}}", 10+r.number%50))
	case "upgrade":
		r.requestUpdate(r.name(), fmt.Sprintf("type: VersionUpdate, change: {version: %q}", r.to.Minor()))
	default:
		r.requestUpdate(r.name(), fmt.Sprintf("type: VersionRollback, change: {version: %q}", r.to.Minor()))
	}
	for _, step := range []string{stepAccepted, stepNewcomer, stepFollowers, stepDraining, stepAlone} {
		row, ok := r.kills[step]
		if !ok || !r.reached(step) {
			continue
		}
		if pid := r.pid(row.victim); pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil {
			done[row]++
			r.t.Logf("%s, %s: %s killed at %s", r.name(), r.change, row.victim, step)
		}
	}
	took := r.updateIs(r.name(), `"phase":"Successful"`)
	r.eventually("one API server is left, of "+r.to.Version, func() error {
		running, err := r.running()
		if err != nil {
			return err
		}
		servers := 0
		for slot := range component.APIServers {
			if p, ok := running[component.APIServerName(slot)]; ok {
				servers++
				if program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID)); err != nil || filepath.Base(filepath.Dir(program)) != r.to.Minor() {
					return fmt.Errorf("the API server is %s, %w", program, err)
				}
			}
		}
		if servers != 1 {
			return fmt.Errorf("%d API servers", servers)
		}
		return r.isReady()
	})
	if seen := p.Stop(); harmless && seen.Failed > 0 {
		r.t.Errorf("%s: only the service was killed: %s", r.name(), seen)
	}
	if said := r.mustKubectl("--context", "muster", "get", "configmap", "kept", "-o", "jsonpath={.data.round}"); said != r.name() {
		r.t.Errorf("%s was written, and %s is there", r.name(), said)
	}
	r.t.Logf("%s, %s: done %s after it began", r.name(), r.change, took)
}

// record is what the plane is made of now.
func (r planeRound) record() (planerollout.Record, error) {
	var is planerollout.Record
	raw, err := os.ReadFile(r.cluster().PlaneRecord())
	if err == nil {
		err = json.Unmarshal(raw, &is)
	}
	return is, err
}

func in(is planerollout.Record, phase planerollout.Phase) bool {
	return slices.ContainsFunc(is.Servers, func(s planerollout.Server) bool { return s.Phase == phase })
}

// reached waits until the change is at a step, and reports false if it has gone past it.
func (r planeRound) reached(step string) bool {
	r.t.Helper()
	if step == stepAccepted {
		return true
	}
	begun := false
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		is, err := r.record()
		if err != nil {
			r.t.Fatal(err)
		}
		newcomer, draining := in(is, planerollout.Newcomer), in(is, planerollout.Draining)
		switch {
		case step == stepNewcomer && newcomer, step == stepFollowers && newcomer && len(is.Before) > 0, step == stepDraining && draining:
			return true
		case step == stepAlone && begun && !newcomer && !draining:
			return true
		case step == stepNewcomer && draining, step == stepFollowers && draining, step == stepDraining && begun && !newcomer && !draining:
			return false
		}
		begun = begun || newcomer || draining
		if !begun && strings.Contains(r.mustKubectl(managementContext, "-n", "muster", "get", "update", r.name(), "-o", "jsonpath={.status.phase}"), "Successful") {
			return step == stepAlone
		}
	}
	r.t.Fatal(errors.New(r.name() + " does not come to the step " + step))
	return false
}

// pid is the process of a victim, or 0.
func (r planeRound) pid(victim string) int {
	r.t.Helper()
	is, err := r.record()
	if err != nil {
		r.t.Fatal(err)
	}
	name := victim
	phases := map[string]planerollout.Phase{theNewcomer: planerollout.Newcomer, theServing: planerollout.Serving, theDraining: planerollout.Draining}
	if phase, ok := phases[victim]; ok {
		n := slices.IndexFunc(is.Servers, func(s planerollout.Server) bool { return s.Phase == phase })
		if n < 0 {
			return 0
		}
		name = component.APIServerName(is.Servers[n].Slot)
	}
	if victim == theService {
		name = "serve"
	}
	return r.processes()[name].PID
}
