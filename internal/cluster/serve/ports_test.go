// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/platform/statedir"
)

// choose chooses ports as the service does, and checks what every choice must keep.
func choose(t *testing.T, dir statedir.Cluster, wanted int) component.Ports {
	t.Helper()
	ports, err := serviceOf(t, dir).clusterPorts(dir, wanted)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range []int{ports.Etcd, ports.EtcdPeer, ports.APIServer, ports.ControllerManager, ports.Scheduler, ports.CertificateController, ports.Authenticator} {
		if seen[port] || port != wanted && (port < portMin || port >= portMax) {
			t.Errorf("%+v: %d is there twice, or not from %d to %d", ports, port, portMin, portMax)
		}
		seen[port] = true
	}
	var saved component.Ports
	raw, err := os.ReadFile(dir.Ports())
	if err == nil {
		err = json.Unmarshal(raw, &saved)
	}
	if err != nil || saved != ports {
		t.Errorf("saved %+v, %v; chose %+v", saved, err, ports)
	}
	private(t, dir.Ports())
	return ports
}

// serviceOf is the service of the account that a cluster belongs to.
func serviceOf(t *testing.T, dir statedir.Cluster) *Service {
	t.Helper()
	s, err := NewService(Config{State: statedir.Dir(filepath.Dir(filepath.Dir(string(dir)))), BinDir: "/bin", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// occupy listens on a port, as another program would.
func occupy(t *testing.T, port int) {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
}

// unused is a port that nobody listens on.
func unused(t *testing.T) int {
	t.Helper()
	port, err := freePort(nil)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestPortsAreKept(t *testing.T) {
	dir := newCluster(t)
	first := choose(t, dir, 0)
	if second := choose(t, dir, 0); second != first {
		t.Errorf("chose %+v, then %+v", first, second)
	}
}

func TestTakenPortIsChosenAgain(t *testing.T) {
	dir := newCluster(t)
	first := choose(t, dir, 0)
	occupy(t, first.Etcd)
	want := choose(t, dir, 0)
	if want.Etcd == first.Etcd {
		t.Error("etcd keeps a port that another program has")
	}
	want.Etcd = first.Etcd
	if want != first {
		t.Errorf("others changed as well: %+v, %+v", first, want)
	}
}

// The ports of a plane that is stopped are still its own.
func TestPlanesDoNotTakeEachOthersPorts(t *testing.T) {
	blue := newCluster(t)
	s := serviceOf(t, blue)
	red := s.cfg.State.Cluster("red")
	if err := os.MkdirAll(string(red), 0o700); err != nil {
		t.Fatal(err)
	}
	first := choose(t, blue, 0)
	raw, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	write(t, red.Ports(), string(raw)) // by mistake it says the same
	second := choose(t, red, 0)
	account, err := s.accountPorts()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]string{}
	for name, ports := range map[string]any{"blue": first, "red": second, "account": account} {
		raw, err := json.Marshal(ports)
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]int
		if err := json.Unmarshal(raw, &all); err != nil {
			t.Fatal(err)
		}
		for _, port := range all {
			if other, ok := seen[port]; ok || port == 0 {
				t.Errorf("%s and %s both have port %d", name, other, port)
			}
			seen[port] = name
		}
	}
}

func TestPortThatWasAskedFor(t *testing.T) {
	dir := newCluster(t)
	wanted := unused(t)
	first := choose(t, dir, wanted)
	if first.APIServer != wanted {
		t.Errorf("asked for %d, got %+v", wanted, first)
	}
	if second := choose(t, dir, 0); second != first {
		t.Errorf("asked for no port any more: %+v, then %+v", first, second)
	}
	// It wins over a component that had the port before.
	second := choose(t, dir, first.Scheduler)
	if second.APIServer != first.Scheduler || second.Scheduler == first.Scheduler {
		t.Errorf("asked for %d: %+v, then %+v", first.Scheduler, first, second)
	}
}

func TestPortThatWasAskedForIsInUse(t *testing.T) {
	dir := newCluster(t)
	wanted := unused(t)
	choose(t, dir, wanted)
	before, err := os.ReadFile(dir.Ports())
	if err != nil {
		t.Fatal(err)
	}
	occupy(t, wanted)
	_, err = serviceOf(t, dir).clusterPorts(dir, wanted)
	says(t, err, fmt.Sprintf("spec.apiServer.port: %d is in use", wanted))
	other := unused(t)
	occupy(t, other)
	_, err = serviceOf(t, dir).clusterPorts(dir, other)
	says(t, err, fmt.Sprintf("spec.apiServer.port: %d is in use", other))
	if after, err := os.ReadFile(dir.Ports()); err != nil || string(after) != string(before) {
		t.Errorf("ports changed: %s, %v", after, err)
	}
}

func TestDamagedPorts(t *testing.T) {
	for _, content := range []string{"", "{", `{"etcd":"x"}`, "[]"} {
		dir := newCluster(t)
		write(t, dir.Ports(), content)
		_, err := serviceOf(t, dir).clusterPorts(dir, 0)
		says(t, err, "ports.json is damaged", "remove the file")
		if raw, err := os.ReadFile(dir.Ports()); err != nil || string(raw) != content {
			t.Errorf("the file changed: %s, %v", raw, err)
		}
	}
	// Numbers that cannot be are chosen again.
	dir := newCluster(t)
	write(t, dir.Ports(), `{"etcd":99999,"etcdPeer":-1,"apiServer":0,"management":20001,"controllerManager":20001,"scheduler":20001}`)
	choose(t, dir, 0)
}
