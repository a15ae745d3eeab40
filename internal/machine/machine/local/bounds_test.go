// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/platform/host"
)

func TestLimitsOf(t *testing.T) {
	of := capacity.Bounds{Memory: 24 << 30, PIDs: 32768}
	for kind, want := range map[string]host.Limits{
		"":           {Memory: 18 << 30, PIDs: 14336},
		"t3.small":   {CPUs: 2, Memory: 2 << 30, PIDs: 14336},
		"m5.4xlarge": {CPUs: 16, Memory: 18 << 30, PIDs: 14336},
	} {
		if got := limitsOf(of, kind); got != want {
			t.Errorf("a machine of type %q has %+v, want %+v", kind, got, want)
		}
	}
	if got, want := together(of), (host.Limits{Memory: 21 << 30, PIDs: 28672}); got != want {
		t.Errorf("all machines have %+v, want %+v", got, want)
	}
	for bound, want := range map[int64]int64{0: 5, 3: 3, 9: 5} {
		if got := lesser(5, bound); got != want {
			t.Errorf("5 within %d is %d", bound, got)
		}
	}
}

// Machines that an earlier service has booted are bounded while they run, and those that use more are left as they are.
func TestBoundThoseThatRun(t *testing.T) {
	s := newSite(t)
	p := s.provider(t)
	if err := Bound(s.dir); err != nil {
		t.Fatalf("no machine runs: %v", err)
	}
	if err := host.OOMScore(os.Getpid(), 300); err != nil {
		t.Fatal(err)
	}
	_, err := p.Launch(t.Context(), machine.LaunchRequest{ID: machinetest.First, UserData: []byte("none"), Type: "t3.small"})
	if err := errors.Join(err, host.OOMScore(os.Getpid(), 0)); err != nil {
		t.Fatal(err)
	}
	pid, _, err := p.find(machinetest.First)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj")); got != "0\n" {
		t.Errorf("the machine has its service's OOM score: %s", got)
	}
	groups, err := host.ReadCgroups()
	if err != nil {
		t.Fatal(err)
	}
	dir := "" // of the machine's processes
	for _, h := range groups.Hierarchies {
		if at := filepath.Join(h.MountPoint, cgroupName(s.dir, machinetest.First)); pathExists(filepath.Join(at, "pids.max")) && h.Unified == (groups.Version() == 2) {
			dir = at
		}
	}
	want := strconv.FormatInt(p.bounds.Machine("t3.small").PIDs, 10)
	set := func(most string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "pids.max"), []byte(most), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want string) {
		t.Helper()
		if got := strings.TrimSpace(read(t, filepath.Join(dir, "pids.max"))); got != want {
			t.Errorf("the machine may have %s processes, want %s", got, want)
		}
	}
	is(want)
	set("max")
	if err := Bound(s.dir); err != nil {
		t.Error(err)
	}
	is(want)
	set("max")
	for end := time.Now().Add(time.Minute); strings.TrimSpace(read(t, filepath.Join(dir, "pids.current"))) == "1"; <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the machine has one process, and no other thread")
		}
	}
	if err := groups.Limit(cgroupName(s.dir, machinetest.First), host.Limits{PIDs: 1, Memory: 1 << 30}); !errors.Is(err, host.ErrInUse) {
		t.Errorf("one process for a machine: %v", err)
	}
	is("max")
	if _, running, err := p.find(machinetest.First); err != nil || !running {
		t.Errorf("the machine does not run: %v", err)
	}
}
