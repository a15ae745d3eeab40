// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"testing"

	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/cluster/supervise"
	"muster.dev/muster/internal/platform/statedir"
)

func choose(t *testing.T, dir statedir.Dir, wanted int, running ...supervise.Process) component.Ports {
	t.Helper()
	ports, err := choosePorts(dir, wanted, running)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range []int{ports.Etcd, ports.EtcdPeer, ports.APIServer, ports.Management, ports.ControllerManager, ports.Scheduler, ports.CertificateController, ports.Identity} {
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
	dir := newDir(t)
	first := choose(t, dir, 0)
	if second := choose(t, dir, 0); second != first {
		t.Errorf("chose %+v, then %+v", first, second)
	}
}

func TestTakenPortIsChosenAgain(t *testing.T) {
	dir := newDir(t)
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

func TestPortOfARunningComponentIsItsOwn(t *testing.T) {
	dir := newDir(t)
	first := choose(t, dir, 0)
	occupy(t, first.Etcd) // by etcd itself
	if second := choose(t, dir, 0, supervise.Process{Name: component.Etcd}); second != first {
		t.Errorf("chose %+v, then %+v", first, second)
	}
}

func TestPortThatWasAskedFor(t *testing.T) {
	dir := newDir(t)
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
	dir := newDir(t)
	wanted := unused(t)
	choose(t, dir, wanted)
	before, err := os.ReadFile(dir.Ports())
	if err != nil {
		t.Fatal(err)
	}
	occupy(t, wanted)
	_, err = choosePorts(dir, wanted, nil)
	says(t, err, fmt.Sprintf("spec.apiServer.port: %d is in use", wanted))
	if ports := choose(t, dir, wanted, supervise.Process{Name: component.APIServer}); ports.APIServer != wanted {
		t.Errorf("in use by the API server itself: %+v", ports)
	}
	other := unused(t)
	occupy(t, other)
	_, err = choosePorts(dir, other, nil)
	says(t, err, fmt.Sprintf("spec.apiServer.port: %d is in use", other))
	if after, err := os.ReadFile(dir.Ports()); err != nil || string(after) != string(before) {
		t.Errorf("ports changed: %s, %v", after, err)
	}
}

func TestDamagedPorts(t *testing.T) {
	for _, content := range []string{"", "{", `{"etcd":"x"}`, "[]"} {
		dir := newDir(t)
		write(t, dir.Ports(), content)
		_, err := choosePorts(dir, 0, nil)
		says(t, err, "ports.json is damaged", "remove the file")
		if raw, err := os.ReadFile(dir.Ports()); err != nil || string(raw) != content {
			t.Errorf("the file changed: %s, %v", raw, err)
		}
	}
	// Numbers that cannot be are chosen again.
	dir := newDir(t)
	write(t, dir.Ports(), `{"etcd":99999,"etcdPeer":-1,"apiServer":0,"management":20001,"controllerManager":20001,"scheduler":20001}`)
	choose(t, dir, 0)
}
