// SPDX-License-Identifier: Apache-2.0

package portplan

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/statedir"
)

// opened are the planes of an account, whose claims end with the test.
func opened(t *testing.T, state statedir.Dir) *Planes {
	t.Helper()
	planes := New(state, func() ([]runner.Running, error) { return nil, nil })
	t.Cleanup(planes.Close)
	return planes
}

// chosen chooses ports as the service does, and checks what every choice must keep.
func chosen(t *testing.T, dir statedir.Cluster, wanted int) Ports {
	t.Helper()
	planes := opened(t, accountOf(dir))
	defer planes.Close()
	ports, err := planes.Cluster(dir, wanted)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range []int{ports.Etcd, ports.EtcdPeer, ports.Published, ports.APIServer0, ports.APIServer1, ports.APIServer2, ports.ControllerManager, ports.Scheduler, ports.CertificateController, ports.Authenticator} {
		if seen[port] || port != wanted && (port < Min || port >= Max) {
			t.Errorf("%+v: %d is there twice, or not from %d to %d", ports, port, Min, Max)
		}
		seen[port] = true
	}
	var saved Ports
	raw, err := os.ReadFile(dir.Ports())
	if err == nil {
		err = json.Unmarshal(raw, &saved)
	}
	if err != nil || saved != ports {
		t.Errorf("saved %+v, %v; chose %+v", saved, err, ports)
	}
	if info, err := os.Stat(dir.Ports()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v; want mode 0600", dir.Ports(), info, err)
	}
	return ports
}

// newCluster makes the directory of a cluster in an account of its own.
func newCluster(t *testing.T) statedir.Cluster {
	t.Helper()
	dir := statedir.Dir(t.TempDir()).Cluster("blue")
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// accountOf returns the state directory of the account that a cluster belongs to.
func accountOf(dir statedir.Cluster) statedir.Dir {
	return statedir.Dir(filepath.Dir(filepath.Dir(string(dir))))
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// says fails unless the error says all of it.
func says(t *testing.T, err error, want ...string) {
	t.Helper()
	for _, text := range want {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error is %v, want one with %q", err, text)
		}
	}
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
	port, err := Free(loopback)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestPortsAreKept(t *testing.T) {
	dir := newCluster(t)
	first := chosen(t, dir, 0)
	if second := chosen(t, dir, 0); second != first {
		t.Errorf("chose %+v, then %+v", first, second)
	}
}

func TestTakenPortIsChosenAgain(t *testing.T) {
	dir := newCluster(t)
	first := chosen(t, dir, 0)
	occupy(t, first.Etcd)
	want := chosen(t, dir, 0)
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
	state := accountOf(blue)
	red := state.Cluster("red")
	if err := os.MkdirAll(string(red), 0o700); err != nil {
		t.Fatal(err)
	}
	first := chosen(t, blue, 0)
	raw, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	write(t, red.Ports(), string(raw)) // by mistake it says the same
	second := chosen(t, red, 0)
	account, err := opened(t, state).Account()
	if err != nil {
		t.Fatal(err)
	}
	if shared := common(t, first, second, account); len(shared) > 0 {
		t.Errorf("two planes have the ports %v", shared)
	}
}

// Two installations that start at the same moment choose before the processes of either listen.
func TestInstallationsDoNotTakeEachOthersPorts(t *testing.T) {
	blue, red := newCluster(t), newCluster(t)
	of := opened(t, accountOf(blue))
	first, err := of.Cluster(blue, 0)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	write(t, red.Ports(), string(raw)) // by chance it would have the same
	another := opened(t, accountOf(red))
	second, err := another.Cluster(red, 0)
	if err != nil {
		t.Fatal(err)
	}
	if shared := common(t, first, second); len(shared) > 0 {
		t.Errorf("both installations have the ports %v", shared)
	}
	_, err = another.Cluster(red, first.Etcd)
	says(t, err, fmt.Sprintf("spec.apiServer.port: %d is in use: the Muster in %s (process %d) has claimed it", first.Etcd, accountOf(blue), os.Getpid()))

	// A port that one account gives back, the other can have.
	if err := os.RemoveAll(string(blue)); err != nil {
		t.Fatal(err)
	}
	if _, err := of.Account(); err != nil {
		t.Fatal(err)
	}
	if third, err := another.Cluster(red, first.Etcd); err != nil || third.Published != first.Etcd {
		t.Errorf("%+v, %v: want port %d, which nobody has any more", third, err, first.Etcd)
	}
}

// common are the ports that two planes both have.
func common(t *testing.T, planes ...any) (shared []int) {
	t.Helper()
	seen := map[int]bool{}
	for _, plane := range planes {
		raw, err := json.Marshal(plane)
		if err != nil {
			t.Fatal(err)
		}
		var ports map[string]int
		if err := json.Unmarshal(raw, &ports); err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if seen[port] {
				shared = append(shared, port)
			}
			seen[port] = true
		}
	}
	return shared
}

func TestPortThatWasAskedFor(t *testing.T) {
	dir := newCluster(t)
	wanted := unused(t)
	first := chosen(t, dir, wanted)
	if first.Published != wanted {
		t.Errorf("asked for %d, got %+v", wanted, first)
	}
	if second := chosen(t, dir, 0); second != first {
		t.Errorf("asked for no port any more: %+v, then %+v", first, second)
	}
	// It wins over a component that had the port before.
	second := chosen(t, dir, first.Scheduler)
	if second.Published != first.Scheduler || second.Scheduler == first.Scheduler {
		t.Errorf("asked for %d: %+v, then %+v", first.Scheduler, first, second)
	}
}

func TestPortThatWasAskedForIsInUse(t *testing.T) {
	dir := newCluster(t)
	wanted := unused(t)
	chosen(t, dir, wanted)
	before, err := os.ReadFile(dir.Ports())
	if err != nil {
		t.Fatal(err)
	}
	occupy(t, wanted)
	_, err = opened(t, accountOf(dir)).Cluster(dir, wanted)
	says(t, err, fmt.Sprintf("spec.apiServer.port: %d is in use: ", wanted), fmt.Sprintf("(process %d) listens on it", os.Getpid()))
	other := unused(t)
	occupy(t, other)
	_, err = opened(t, accountOf(dir)).Cluster(dir, other)
	says(t, err, fmt.Sprintf("spec.apiServer.port: %d is in use", other))
	if after, err := os.ReadFile(dir.Ports()); err != nil || string(after) != string(before) {
		t.Errorf("ports changed: %s, %v", after, err)
	}
}

func TestDamagedPorts(t *testing.T) {
	for _, content := range []string{"", "{", `{"etcd":"x"}`, "[]"} {
		dir := newCluster(t)
		write(t, dir.Ports(), content)
		_, err := opened(t, accountOf(dir)).Cluster(dir, 0)
		says(t, err, "ports.json is damaged", "remove the file")
		if raw, err := os.ReadFile(dir.Ports()); err != nil || string(raw) != content {
			t.Errorf("the file changed: %s, %v", raw, err)
		}
	}
	// Numbers that cannot be are chosen again.
	dir := newCluster(t)
	write(t, dir.Ports(), `{"etcd":99999,"etcdPeer":-1,"apiServer":0,"management":20001,"controllerManager":20001,"scheduler":20001}`)
	chosen(t, dir, 0)
}

// Who holds all that a claim of earlier releases was, which every user may, keeps nobody from a port.
func TestNobodyElseCanClaimAPort(t *testing.T) {
	dir := newCluster(t)
	wanted := unused(t)
	stranger, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: fmt.Sprintf("@muster/port/127.0.0.1:%d", wanted), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stranger.Close() })
	if ports := chosen(t, dir, wanted); ports.Published != wanted {
		t.Errorf("asked for %d, got %+v", wanted, ports)
	}
}

// A claim is in a directory that no other user can enter, and is gone with the one who made it.
func TestClaimsAreLockFiles(t *testing.T) {
	dir := newCluster(t)
	planes := opened(t, accountOf(dir))
	planes.claims.dir = filepath.Join(t.TempDir(), "locks")
	ports, err := planes.Cluster(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(planes.claims.dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%v, %v", info, err)
	}
	name := planes.claims.name(ports.Published)
	if raw, err := os.ReadFile(filepath.Join(planes.claims.dir, name)); err != nil || !strings.Contains(string(raw), string(accountOf(dir))) {
		t.Errorf("the claim says %q, %v", raw, err)
	}
	planes.Close()
	if _, err := os.Stat(planes.claims.dir); !os.IsNotExist(err) {
		t.Errorf("claims are left: %v", err)
	}
	if err := os.Mkdir(planes.claims.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = planes.Cluster(dir, ports.Published)
	says(t, err, "it cannot be claimed", "that nobody else can enter")
}
