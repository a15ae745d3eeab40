// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/clusternetwork"
)

func TestWatcherLooks(t *testing.T) {
	w := newWorld(t)
	watch := newWatcher(w.parts, nil)
	look := func(want ...string) {
		t.Helper()
		if got := watch.look(t.Context()); !slices.Equal(got, want) {
			t.Errorf("nudges %q, want %q", got, want)
		}
	}
	look()
	w.provider.instances = []machine.Instance{{ID: "a", State: machine.Running}, {ID: "b", State: machine.Pending}}
	look("a", "b")
	look()
	w.provider.instances[1].State = machine.Running
	look("b")
	w.faults.fail("List", 1)
	watch.later("c")
	watch.later("c")
	look("c")
	w.provider.instances = w.provider.instances[1:]
	w.provider.instances[0].State = machine.Stopped
	watch.later("b")
	look("a", "b")
	look("b") // it may have run in between, and stopped again
	w.provider.instances = nil
	look("b")
	look()
}

func TestWatcherStarts(t *testing.T) {
	defer goleak.VerifyNone(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Poll = time.Second
		nudges := make(chan event.TypedGenericEvent[string])
		watch := newWatcher(w.parts, nudges)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- watch.Start(ctx) }()
		watch.later("a")
		if got := (<-nudges).Object; got != "a" {
			t.Errorf("nudge %q", got)
		}
		watch.later("b")
		synctest.Wait()
		<-time.After(2 * time.Second) // in the bubble: the nudge of b is waiting for a taker
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestPacer(t *testing.T) {
	p := newPacer()
	now := time.Unix(0, 0)
	for _, seconds := range []int{0, 1, 2, 4, 8, 16, 30, 30} {
		want := time.Duration(seconds) * time.Second
		if want > 0 {
			if got := p.wait(id, now); got != want {
				t.Errorf("wait %v, want %v", got, want)
			}
			if got := p.wait(id, now.Add(want-time.Millisecond)); got != time.Millisecond {
				t.Errorf("wait %v, want 1ms", got)
			}
		}
		now = now.Add(want)
		if got := p.wait(id, now); got != 0 {
			t.Errorf("wait %v when the pause is over", got)
		}
	}
	now = now.Add(calmAfter + time.Second)
	if got := p.wait(id, now); got != 0 {
		t.Errorf("wait %v after a calm life", got)
	}
	p.forget(id)
	if got := p.wait(id, now); got != 0 {
		t.Errorf("wait %v for a machine that is new", got)
	}
}

func TestConfig(t *testing.T) {
	plane, err := cluster.New(&rest.Config{Host: "127.0.0.1:1"}, ClusterOptions)
	if err != nil {
		t.Fatal(err)
	}
	whole := func() Config {
		config := newWorld(t).Config
		config.Cluster, config.AuditLogs = plane, []string{"audit.log"}
		config.Random, config.Now = nil, nil
		return config
	}
	config, err := whole().withDefaults()
	if err != nil || config.Random == nil || config.Now == nil || config.Workers != 8 || config.Poll != time.Second {
		t.Errorf("defaults %+v, %v", config, err)
	}
	for name, damage := range map[string]func(*Config){
		"name":     func(c *Config) { c.ClusterName = "" },
		"cluster":  func(c *Config) { c.Cluster = nil },
		"userdata": func(c *Config) { c.UserData = nil },
		"health":   func(c *Config) { c.Health = nil },
		"audit":    func(c *Config) { c.AuditLogs = nil },
		"log":      func(c *Config) { c.Log = nil },
		"network":  func(c *Config) { c.Network = clusternetwork.Network{} },
		"usage":    func(c *Config) { c.Usage = nil },
		"pods":     func(c *Config) { c.Network.PodCIDR = netip.Prefix{} },
	} {
		config := whole()
		damage(&config)
		if _, err := config.withDefaults(); err == nil {
			t.Errorf("a configuration without %s is taken", name)
		}
	}
}

func TestNodeChanged(t *testing.T) {
	was, is := newTestNode("True"), newTestNode("True")
	is.ResourceVersion = "2"
	is.Status.Images = append(is.Status.Images, newTestNode("True").Status.Images...)
	if nodeChanged(was, is) {
		t.Error("a heartbeat counts as a change")
	}
	is.Spec.PodCIDR = "10.244.2.0/24"
	if !nodeChanged(was, is) {
		t.Error("a pod range is no change")
	}
	if !nodeChanged(was, newTestNode("False")) {
		t.Error("readiness is no change")
	}
	was.Spec.ProviderID = "aws:///x"
	if machineOf(was) != "" || machineOf(is) != id {
		t.Errorf("machines %q, %q", machineOf(was), machineOf(is))
	}
}
