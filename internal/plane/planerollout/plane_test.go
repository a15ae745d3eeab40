// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/frontservers"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/plane/runner/runnertest"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
)

// plane is a control plane in memory, whose service can be restarted.
type plane struct {
	t      *testing.T
	place  *runnertest.Place
	config component.Config
	room   int64
	turns  *Turns
	began  []string
	took   time.Duration // of the last service's rollout
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	dir := statedir.Dir(t.TempDir())
	c := component.Config{Account: component.Account{State: dir, BinDir: "/bin"}, Dir: dir.Cluster("blue"), Network: clusternetworktest.Network()}
	c.Release = release.Release{Version: "v1.36.3", Folder: "."}
	c.Cluster.Name, c.Cluster.Spec.Name = "blue", "blue"
	c.Cluster.Default()
	for i, place := range []*component.Place{&c.Places.Published, &c.Places.APIServer0, &c.Places.APIServer1, &c.Places.APIServer2} {
		*place = component.At(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(20000+i)))
	}
	if err := os.MkdirAll(string(c.Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	return &plane{t: t, place: runnertest.NewPlace(), config: c, room: NewcomerMemory, turns: new(Turns)}
}

// rollout is one of the plane, by a runner.
func (p *plane) rollout(running runner.Runner) *Rollout {
	p.t.Helper()
	wanted, err := component.ClusterPlane(p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := New(Config{Runner: running, Plane: wanted, Room: func() (int64, error) { return p.room, nil }, Turns: p.turns, Began: func(message string) { p.began = append(p.began, message) }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// change is another configuration of the plane, whose API server and scheduler have other flags.
func (p *plane) change(n int) {
	p.config.Release.Flags = map[string]map[string]string{"kube-apiserver": {"v": fmt.Sprint(n)}, "kube-scheduler": {"v": fmt.Sprint(n)}}
}

// replicas is how many API servers of the plane are to serve.
func (p *plane) replicas(n int32) { p.config.Cluster.Spec.ControlPlane.Replicas = &n }

// service runs the plane until the context ends or the rollout is done.
func (p *plane) service(ctx context.Context) (*Refusal, runner.Runner, error) {
	p.t.Helper()
	running := p.place.New(ctx)
	r := p.rollout(running)
	if err := r.Begin(ctx); err != nil {
		p.t.Fatal(err)
	}
	outcome, err := r.Run(ctx)
	p.took = outcome.Took
	return outcome.Refusal, running, err
}

// version is the flag that the components of a list have that run.
func (p *plane) version(running runner.Runner, name string) string {
	p.t.Helper()
	wanted, err := component.ClusterPlane(p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	processes, err := running.Running()
	if err != nil {
		p.t.Fatal(err)
	}
	var found []string
	for _, process := range processes {
		_, of := component.SplitProcess(process.Process)
		for _, spec := range append(wanted.Servers, wanted.Specs...) {
			if (of == name || name == component.APIServer && component.IsAPIServer(of)) && spec.Name == of {
				state := "old"
				if spec.Hash() == process.Spec {
					state = "new"
				}
				found = append(found, of+" "+state)
			}
		}
	}
	slices.Sort(found)
	return strings.Join(slices.Compact(found), ", ")
}

// told are the servers that the front knows.
func (p *plane) told() string {
	p.t.Helper()
	raw, err := os.ReadFile(p.config.FrontServers())
	if err != nil {
		p.t.Fatal(err)
	}
	servers, err := frontservers.Read(raw)
	if err != nil {
		p.t.Fatal(err)
	}
	var told []string
	for _, s := range servers {
		text := fmt.Sprint(s.Address.Port())
		if s.Draining {
			text += " drains"
		}
		told = append(told, text)
	}
	return strings.Join(told, ", ")
}

// failing is a runner in which a component ends again and again.
type failing struct {
	runner.Runner
	name string
}

func (f failing) Status() []runner.Status {
	statuses := f.Runner.Status()
	for i, s := range statuses {
		if s.Name == f.name {
			statuses[i].State, statuses[i].Restarts = runner.Backoff, maxEnds
		}
	}
	return statuses
}
