// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/test/promise"
)

// promisedTimes is how often each promise is asked for. The worst must hold.
const promisedTimes = 10

// TestPromises measures the figures of docs/promises.md on one cluster. It runs before all other stories and alone:
// nothing scales a figure, so whatever else takes the processors may have it missed. Other stories ask for the same
// effects with as much patience as it takes.
//
//story:about iam plane/supervise network/securitygroup network/balancer
func TestPromises(t *testing.T) {
	figures, err := promise.Read(filepath.Join("..", "..", "docs", "promises.md"))
	if err != nil {
		t.Fatal(err)
	}
	i := newInstallation(t)
	i.muster("up", "--nodes", "2", "--timeout", "5m")
	i.ready()
	w := &promises{iam: newIAM(t, i), tally: &tally{t: t, figures: figures, took: map[promise.Promise][]time.Duration{}}}
	w.connect()
	defer w.tally.report()
	leaders := w.startLeaders()
	for _, step := range []struct {
		name string
		run  func(*promises)
	}{
		{"access", (*promises).access},
		{"network", (*promises).network},
		{"pods", (*promises).podsEnd},
		{"volumes", (*promises).volumes},
		{"leaders", func(w *promises) { leaders.fenced(w) }},
		{"forgotten", func(w *promises) { w.later.Wait() }}, // before anything is killed
		{"processes", (*promises).processesBack},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(w.in(t)) }) {
			break
		}
	}
	w.later.Wait()
}

// promises is the cluster in which promises are measured.
type promises struct {
	*iam
	tally      *tally
	aws        *awsClient
	client     kubernetes.Interface
	cluster    dynamic.Interface
	management dynamic.Interface
	machines   []promisedMachine
	later      *sync.WaitGroup // requests that run while other steps go on
}

type promisedMachine struct {
	member
	node string
}

// in is the same world for a step.
func (w *promises) in(t *testing.T) *promises {
	t.Helper()
	step := *w
	step.iam = w.step(t)
	client := *w.aws
	client.t, step.aws = t, &client
	return &step
}

// connect makes the clients and finds the machines.
func (w *promises) connect() {
	w.t.Helper()
	w.later = &sync.WaitGroup{}
	w.aws = newAWSClient(w.t, w.iam)
	own, err := clientcmd.BuildConfigFromFlags("", w.iam.cluster().Kubeconfig())
	if err != nil {
		w.t.Fatal(err)
	}
	own.QPS = -1
	if w.client, err = kubernetes.NewForConfig(own); err != nil {
		w.t.Fatal(err)
	}
	if w.cluster, err = dynamic.NewForConfig(own); err != nil {
		w.t.Fatal(err)
	}
	plane, err := clientcmd.BuildConfigFromFlags("", w.dir.ManagementKubeconfig())
	if err != nil {
		w.t.Fatal(err)
	}
	plane.QPS = -1
	if w.management, err = dynamic.NewForConfig(plane); err != nil {
		w.t.Fatal(err)
	}
	for address, namespace := range w.namespacesOf("muster") {
		node := nodeAt(address)
		id := w.mustKubectl("get", "node", node, "-o", "jsonpath={.spec.providerID}")
		w.machines = append(w.machines, promisedMachine{member{id[strings.LastIndex(id, "/")+1:], address, namespace}, node})
	}
	if len(w.machines) != 2 {
		w.t.Fatalf("machines are %+v", w.machines)
	}
	slices.SortFunc(w.machines, func(a, b promisedMachine) int { return strings.Compare(a.address, b.address) })
}

// within asks for an effect that was just caused, notes how long it took, and fails if that is longer than promised. A
// goroutine may call it.
func (w *promises) within(p promise.Promise, what string, ask func() error) {
	w.t.Helper()
	w.withinOf(time.Now(), p, 10*time.Millisecond, what, ask)
}

// withinOf is within for an effect that was caused at a moment, and is asked for after pauses.
func (w *promises) withinOf(began time.Time, p promise.Promise, pause time.Duration, what string, ask func() error) {
	w.t.Helper()
	for {
		err := ask()
		took := time.Since(began) // the moment of the answer: an answer that comes late counts
		if err == nil {
			w.tally.add(p, what, took)
			return
		}
		if took > patience {
			w.tally.t.Errorf("%s: %s: not after %s: %v", p, what, patience, err)
			return
		}
		select {
		case <-w.tally.t.Context().Done():
			return
		case <-time.After(pause):
		}
	}
}

// tally holds what was measured.
type tally struct {
	t       *testing.T // of the story: steps may have ended
	figures promise.Figures
	mutex   sync.Mutex
	took    map[promise.Promise][]time.Duration
}

// add notes how long an effect took.
func (y *tally) add(p promise.Promise, what string, took time.Duration) {
	y.t.Helper()
	y.mutex.Lock()
	y.took[p] = append(y.took[p], took)
	y.mutex.Unlock()
	row, err := y.figures.Of(p)
	if err != nil {
		y.t.Error(err)
	} else if took > row.Within {
		y.t.Errorf("%s: %s: after %s, and %s is promised; 1, 5 and 15 minutes' load: %s", p, what, took.Round(time.Millisecond), row.Figure, load())
	}
}

// load is how many tasks the kernel has had to run: more than a story has are somebody else's.
func load() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(string(raw))[:3], ", ")
}

// report prints the table, and fails for a promise that was not asked for often enough.
func (y *tally) report() {
	y.t.Helper()
	y.mutex.Lock()
	defer y.mutex.Unlock()
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "PROMISE\tFIGURE\tMEDIAN\tWORST\tASKED")
	for _, row := range y.figures {
		took := slices.Sorted(slices.Values(y.took[row.Promise]))
		if len(took) < promisedTimes {
			y.t.Errorf("%s was asked for %d times, not %d", row.Promise, len(took), promisedTimes)
		}
		if len(took) > 0 {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\n", row.Promise, row.Figure, took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), len(took))
		}
	}
	_ = table.Flush()
	y.t.Logf("load %s\n%s", load(), out.String())
}
