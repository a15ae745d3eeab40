// SPDX-License-Identifier: Apache-2.0

package healthprobe

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster.dev/muster/internal/node/nodehealth"
)

func TestNetwork(t *testing.T) {
	t.Parallel()
	node := netip.MustParseAddr("172.31.0.5")
	const running = net.FlagUp | net.FlagRunning
	lo := Interface{"lo", running | net.FlagLoopback, []netip.Addr{netip.MustParseAddr("127.0.0.1")}}
	eth := func(flags net.Flags) Interface { return Interface{"eth0", flags, []netip.Addr{node}} }
	pod := Interface{Name: "veth1"} // a pod's, which comes and goes
	for name, test := range map[string]struct {
		interfaces []Interface
		want       []nodehealth.Reason
	}{
		"well":               {[]Interface{lo, eth(running), pod}, nil},
		"not up":             {[]Interface{lo, eth(0)}, []nodehealth.Reason{nodehealth.InterfaceNotUp}},
		"not running":        {[]Interface{lo, eth(net.FlagUp)}, []nodehealth.Reason{nodehealth.InterfaceNotRunning}},
		"no loopback":        {[]Interface{eth(running)}, []nodehealth.Reason{nodehealth.LoopbackMissing}},
		"another's address":  {[]Interface{lo, {"eth0", 0, []netip.Addr{netip.MustParseAddr("172.31.0.6")}}}, nil},
		"nobody has it":      {[]Interface{lo}, nil},
		"both, told as both": {[]Interface{eth(0)}, []nodehealth.Reason{nodehealth.InterfaceNotUp, nodehealth.LoopbackMissing}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := Network(test.interfaces, node)
			if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, test.want) {
				t.Errorf("found %v, want %v", found, test.want)
			}
		})
	}
}

// This host, too, has a loopback interface.
func TestInterfaces(t *testing.T) {
	t.Parallel()
	list, err := Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	if found := Network(list, netip.MustParseAddr("127.0.0.1")); len(found) > 0 {
		t.Errorf("%v: %v", list, found)
	}
}

func TestDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "probe")
	for range 2 {
		if found, err := Disk(path, true); found != "" || err != nil {
			t.Errorf("%q, %v", found, err)
		}
	}
	if raw, err := os.ReadFile(path); string(raw) != "ok\n" || err != nil {
		t.Errorf("%q, %v", raw, err)
	}
	for _, test := range []struct {
		err   error
		found bool
	}{{nil, false}, {syscall.EIO, true}, {syscall.EROFS, true}, {syscall.ENOSPC, false}, {syscall.EDQUOT, false}, {syscall.EACCES, false}} {
		found, err := diskFault(test.err)
		if (found != "") != test.found || test.found && err != nil || !test.found && !errors.Is(err, test.err) {
			t.Errorf("of %v: %q, %v", test.err, found, err)
		}
	}
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	for pid, text := range map[string]string{
		"1":  "1 (muster) S 0 1 1 0 -1 4194560 9 0 0 0 1 1 0 0 20 0 12 0 5 6 7",
		"7":  "7 (a) b (c)) Z 1 7 7 0 -1 4194560 9 0 0 0 1 1 0 0 20 0 1 0 5 6 7",
		"12": "12 (x) R 1 7 7 0 -1 4194560 9 0 0 0 1 1 0 0 20 0 3 0 5 6 7",
	} {
		if err := os.Mkdir(filepath.Join(proc, pid), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "stat"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if threads, zombies, err := Processes(proc); threads != 16 || zombies != 1 || err != nil {
		t.Errorf("%d threads, %d zombies, %v", threads, zombies, err)
	}
	if threads, _, err := Processes("/proc"); threads < 1 || err != nil {
		t.Errorf("this host has %d threads, %v", threads, err)
	}
	for _, text := range []string{"", "1", "1 (a", "1 (a) S 0 1", "1 (a) S 0 1 1 0 -1 4194560 9 0 0 0 1 1 0 0 20 0 x 0"} {
		if _, _, err := stat([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "n")
	for text, want := range map[string]int{"14336\n": 14336, "": 0, "max\n": 0, "-1\n": 0, "0": 0} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := Number(path); n != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	}
}

// Lines as a kubelet 1.36 writes them.
func TestKubeletLog(t *testing.T) {
	t.Parallel()
	const header = `1129 17:00:00.123456     42 `
	var k KubeletLog
	say := func(level, text string) { k.Line([]byte(level + header + text + "\n")) }
	say("I", `kubelet_node_status.go:76] "Attempting to register node" node="a"`)
	say("E", `kubelet.go:3216] "Unable to register mirror pod because node is not registered yet" node="a"`)
	if registered, failure := k.Registered(); registered || failure != "" {
		t.Errorf("registered %v, %q", registered, failure)
	}
	say("E", `kubelet_node_status.go:107] "Unable to register node with API server" err="nodes is forbidden"`)
	say("E", `kubelet.go:3216] "Unable to register mirror pod because node is not registered yet" node="a"`)
	say("I", `kubelet.go:1] "calm"`)
	if _, failure := k.Registered(); failure != `kubelet_node_status.go:107] "Unable to register node with API server" err="nodes is forbidden"` {
		t.Errorf("its last error is %q", failure)
	}
	say("E", strings.Repeat("x", 5000))
	if _, failure := k.Registered(); len(failure) != longestKept {
		t.Errorf("%d bytes are kept", len(failure))
	}
	say("I", `kubelet_node_status.go:79] "Successfully registered node" node="a"`)
	if registered, _ := k.Registered(); !registered {
		t.Error("it is not registered")
	}
	if k.Forks() {
		t.Error("nothing failed to fork")
	}
	for i, text := range []string{
		`E` + header + `remote_runtime.go:1] "RunPodSandbox failed" err="failed to start shim: fork/exec /usr/bin/containerd-shim-runc-v2: resource temporarily unavailable"`,
		"runtime: failed to create new OS thread (have 14 already; errno=11)",
	} {
		k.Line([]byte(text))
		if !k.Forks() || k.Forks() {
			t.Error(fmt.Sprint("line ", i, " counts not once"))
		}
	}
}
