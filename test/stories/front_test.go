// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/test/prober"
)

// askedEach is the pause between two requests of a prober of a kind on a way.
const askedEach = 100 * time.Millisecond

// TestFront replaces the front of a control plane by one of another program, as an upgrade of Muster does, while it is
// asked over new connections and over one that is kept, and watched: nothing fails, and the front before goes with its
// last connection. That the prober sees failures is shown by a front that is killed. A front that hangs is replaced, too.
//
//story:about plane/planefront plane/frontservers plane/supervise plane/component
func TestFront(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.withOwnFront()
	i.muster("up", "--provider", "simulated", "--nodes", "1", "--timeout", "3m")
	p := i.probe()
	i.asks(p, 100)
	before := i.fronts()
	i.replaceFront()
	i.kill("serve")
	i.eventually("the next front serves", func() error { return i.frontIs(func(pid int) bool { return pid != before[0].PID }) })
	i.asks(p, 300)
	if now := i.fronts(); len(now) != 2 || now[0].PID != before[0].PID {
		t.Errorf("connections are kept, and these fronts run: %+v", now)
	}
	seen := p.Stop()
	if t.Logf("%+v", seen); seen.Failed > 0 {
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
		t.Errorf("the front was killed, and the prober saw nothing of it: %+v", seen)
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
	i.replaceFront()
	i.kill("serve")
	i.eventually("the next front serves", func() error { return i.frontIs(func(pid int) bool { return pid != hung }) })
	i.ready()
	if now := i.fronts(); len(now) != 1 || now[0].PID == hung {
		t.Errorf("front %d hung, and these run: %+v", hung, now)
	}
}

// withOwnFront gives the installation programs of which the front's is its own file.
func (i *installation) withOwnFront() {
	i.t.Helper()
	i.bin = filepath.Join(filepath.Dir(string(i.dir)), "bin")
	if err := os.Mkdir(i.bin, 0o755); err != nil {
		i.t.Fatal(err)
	}
	entries, err := os.ReadDir(programs(i.t))
	if err != nil {
		i.t.Fatal(err)
	}
	for _, entry := range entries {
		from, to := filepath.Join(programs(i.t), entry.Name()), filepath.Join(i.bin, entry.Name())
		if slices.Contains([]string{"muster", "muster-plane-front"}, entry.Name()) {
			copyProgram(i.t, from, to)
		} else if err := os.Symlink(from, to); err != nil {
			i.t.Fatal(err)
		}
	}
}

// replaceFront puts another file with the same program in the place of the front's.
func (i *installation) replaceFront() {
	i.t.Helper()
	path := filepath.Join(i.bin, "muster-plane-front")
	copyProgram(i.t, path, path+".new")
	if err := os.Rename(path+".new", path); err != nil {
		i.t.Fatal(err)
	}
}

// fronts are the processes of fronts that run, the oldest first.
func (i *installation) fronts() (fronts []supervise.Process) {
	i.t.Helper()
	found, err := i.find()
	if err != nil {
		i.t.Fatal(err)
	}
	for _, p := range found {
		if _, name := component.SplitProcess(p.Name); name == component.Front {
			fronts = append(fronts, p)
		}
	}
	return fronts
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

// probe starts a prober of the API server of the installation's one cluster.
func (i *installation) probe() *prober.Prober {
	i.t.Helper()
	return side{i, clusterconfig.DefaultClusterName}.probe()
}

// probe starts a prober of the cluster's API server, with an object of its own.
func (s side) probe() *prober.Prober {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.dir.Cluster(s.cluster).Kubeconfig())
	if err != nil {
		s.t.Fatal(err)
	}
	at, err := url.Parse(config.Host)
	if err != nil {
		s.t.Fatal(err)
	}
	secured, err := rest.TLSConfigFor(config)
	if err != nil {
		s.t.Fatal(err)
	}
	namespace := fmt.Sprintf("probed-%d", time.Now().UnixNano())
	s.mustKubectl("--context", s.cluster, "create", "namespace", namespace)
	s.mustKubectl("--context", s.cluster, "-n", namespace, "create", "configmap", "probed", "--from-literal=number=0")
	collection := "/api/v1/namespaces/" + namespace + "/configmaps"
	p, err := prober.Start(s.t.Context(), prober.Config{
		URL: at, TLS: secured, Every: askedEach, Object: collection + "/probed", Collection: collection,
		Body: func(number int) []byte {
			return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"probed"},"data":{"number":"%d"}}`, number)
		},
		Number: func(raw json.RawMessage) (int, error) {
			var object corev1.ConfigMap
			if err := json.Unmarshal(raw, &object); err != nil {
				return 0, err
			}
			return strconv.Atoi(object.Data["number"])
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { p.Stop() })
	return p
}

// asks waits until a prober has asked some more.
func (i *installation) asks(p *prober.Prober, more int) {
	i.t.Helper()
	before := p.Report().Asked
	i.eventually("the prober goes on", func() error {
		if n := p.Report().Asked - before; n < more {
			return fmt.Errorf("%d of %d requests", n, more)
		}
		return nil
	})
}
