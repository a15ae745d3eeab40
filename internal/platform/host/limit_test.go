// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestLimitUnified(t *testing.T) {
	top := t.TempDir()
	for path, content := range map[string]string{
		"m/cpuset.cpus.effective": "0-7\n", "m/a/cpuset.cpus": "0-1,4\n", "m/b/cpuset.cpus": "0\n", "m/c/cpuset.cpus": "\n",
		"m/i-1/cpuset.cpus": "\n", "m/i-1/memory.max": "max\n", "m/i-1/memory.swap.max": "max\n", "m/i-1/memory.current": "0\n",
		"m/i-1/pids.max": "max\n", "m/i-1/pids.current": "0\n",
	} {
		put(t, filepath.Join(top, path), content)
	}
	groups := Cgroups{Hierarchies: []Hierarchy{{MountPoint: top, Unified: true}}}
	for _, limits := range []Limits{{}, {CPUs: 8}, {CPUs: 16}} { // more than the host has are no bound
		if err := groups.Limit("/m/i-1", limits); err != nil || strings.TrimSpace(get(t, filepath.Join(top, "m/i-1/cpuset.cpus"))) != "" {
			t.Fatalf("%+v: %v", limits, err)
		}
	}
	if err := groups.Limit("/m/i-1", Limits{CPUs: 6, Memory: 4 << 30, PIDs: 500}); err != nil {
		t.Fatal(err)
	}
	// 0 has two neighbours; of 1 and 4, which have one, the lower is taken.
	for path, want := range map[string]string{"cpuset.cpus": "1,2,3,5,6,7", "memory.max": "4294967296", "memory.swap.max": "0", "pids.max": "500"} {
		if got := strings.TrimSpace(get(t, filepath.Join(top, "m/i-1", path))); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// A group's processors have the numbers that the kernel gives them.
func TestCPUs(t *testing.T) {
	top := t.TempDir()
	put(t, filepath.Join(top, "m/i-1/cpuset.cpus.effective"), "2-3,6\n")
	put(t, filepath.Join(top, "m/i-1/cpuset.cpus"), "4\n")
	for _, c := range []struct {
		h    Hierarchy
		want []int
	}{
		{Hierarchy{MountPoint: top, Unified: true}, []int{2, 3, 6}}, {Hierarchy{MountPoint: top, Options: []string{"cpuset"}}, []int{4}}, {Hierarchy{MountPoint: top, Options: []string{"memory"}}, nil},
	} {
		if got, err := (Cgroups{Hierarchies: []Hierarchy{c.h}}).CPUs("/m/i-1"); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, %v", c.h, got, err)
		}
	}
	if got, err := (Cgroups{Hierarchies: []Hierarchy{{MountPoint: top, Unified: true}}}).CPUs("/m/i-2"); err == nil {
		t.Errorf("a group that is not there has %v", got)
	}
}

func TestLimitVersion1(t *testing.T) {
	cpuset, memory, pids := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, filepath.Join(cpuset, "m/cpuset.cpus"), "2-3\n")
	put(t, filepath.Join(cpuset, "m/other/cpuset.cpus"), "2\n")
	put(t, filepath.Join(cpuset, "m/i-1/cpuset.cpus"), "2-3\n")
	put(t, filepath.Join(memory, "m/i-1/memory.limit_in_bytes"), "9223372036854771712\n")
	put(t, filepath.Join(pids, "m/i-1/pids.max"), "max\n")
	put(t, filepath.Join(pids, "m/i-1/pids.current"), "7\n")
	groups := Cgroups{Hierarchies: []Hierarchy{
		{MountPoint: cpuset, Options: []string{"cpuset"}},
		{MountPoint: memory, Options: []string{"memory"}},
		{MountPoint: pids, Options: []string{"pids"}},
		{MountPoint: "/nowhere", Unified: true}, // of a hybrid host
	}}
	if err := groups.Limit("/m/i-1", Limits{CPUs: 1, Memory: 2 << 30, PIDs: 7}); err != nil {
		t.Fatal(err)
	}
	if got := get(t, filepath.Join(cpuset, "m/i-1/cpuset.cpus")); !strings.HasPrefix(got, "3") {
		t.Errorf("the processors are %q", got)
	}
	if got := get(t, filepath.Join(memory, "m/i-1/memory.limit_in_bytes")); !strings.HasPrefix(got, "2147483648") {
		t.Errorf("the memory is %q", got)
	}
	if got := get(t, filepath.Join(pids, "m/i-1/pids.max")); !strings.HasPrefix(got, "7") {
		t.Errorf("the processes are %q", got)
	}
	if err := groups.Limit("/m/i-2", Limits{Memory: 1}); err == nil {
		t.Error("a group that is not there has been limited")
	}
}

// Running processes are not ended for a bound, and the other bounds count.
func TestLimitInUse(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		processes, memory, stat string
		inUse                   []string
		pids, max               string
	}{
		"below":                     {"40", "100", "", nil, "50", "104857600"},
		"at the bound":              {"50", "104857600", "", nil, "50", "104857600"},
		"more processes":            {"51", "100", "", []string{"51 processes with their threads, and 50 are allowed"}, "max", "104857600"},
		"more memory":               {"40", "209715200", "anon 209715200\ninactive_file 1048576\nactive_file 1048576\n", []string{"207618048 bytes of memory, and 104857600 are allowed"}, "50", "max"},
		"copies of files":           {"40", "209715200", "inactive_file 104857600\nactive_file 10485760\nshmem 5\n", nil, "50", "104857600"},
		"both, files in memory too": {"60", "209715200", "file 209715200\nshmem 209715200\n", []string{"60 processes", "209715200 bytes"}, "max", "max"},
	} {
		top := t.TempDir()
		for file, content := range map[string]string{
			"pids.current": test.processes, "pids.max": "max", "memory.current": test.memory, "memory.stat": test.stat, "memory.max": "max", "memory.swap.max": "max",
		} {
			put(t, filepath.Join(top, "m", file), content)
		}
		err := Cgroups{Hierarchies: []Hierarchy{{MountPoint: top, Unified: true}}}.Limit("/m", Limits{Memory: 100 * mib, PIDs: 50})
		if errors.Is(err, ErrInUse) != (len(test.inUse) > 0) || (err != nil) != (len(test.inUse) > 0) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range test.inUse {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
		// A plain file keeps the end of what was longer.
		if got := get(t, filepath.Join(top, "m/pids.max")); !strings.HasPrefix(got, test.pids) {
			t.Errorf("%s: pids.max is %q", name, got)
		}
		if got := get(t, filepath.Join(top, "m/memory.max")); !strings.HasPrefix(got, test.max) {
			t.Errorf("%s: memory.max is %q", name, got)
		}
	}
}

func TestWithin(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  Limits
	}{
		"a host":      {map[string]string{"memory.limit_in_bytes": "9223372036854771712\n"}, Limits{}},
		"a container": {map[string]string{"memory.max": "4294967296\n", "pids.max": "max\n"}, Limits{Memory: 4 << 30}},
		"version 1":   {map[string]string{"memory.limit_in_bytes": "4294967296\n", "pids.max": "4096\n"}, Limits{Memory: 4 << 30, PIDs: 4096}},
	} {
		top := t.TempDir()
		for file, content := range test.files {
			put(t, filepath.Join(top, file), content)
		}
		if got := (Cgroups{Hierarchies: []Hierarchy{{MountPoint: "/nowhere"}, {MountPoint: top}}}).Within(); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestMemoryLeft(t *testing.T) {
	const stat = "active_file 1000\ninactive_file 2000\ntotal_active_file 3000\ntotal_inactive_file 4000\nshmem 5000\n"
	for name, test := range map[string]struct {
		files   map[string]string
		want    int64
		bounded bool
	}{
		"a host of version 1": {map[string]string{"memory.limit_in_bytes": "9223372036854771712\n", "memory.usage_in_bytes": "10000\n"}, 0, false},
		"a host of version 2": {map[string]string{"memory.stat": stat}, 0, false},
		"version 1":           {map[string]string{"memory.limit_in_bytes": "100000\n", "memory.usage_in_bytes": "20000\n", "memory.stat": stat}, 87000, true},
		"version 2":           {map[string]string{"memory.max": "100000\n", "memory.current": "20000\n", "memory.stat": "active_file 1000\ninactive_file 2000\n"}, 83000, true},
		"no figures":          {map[string]string{"memory.max": "100000\n", "memory.current": "20000\n"}, 80000, true},
		"used up":             {map[string]string{"memory.max": "100000\n", "memory.current": "100001\n"}, 0, true},
	} {
		top := t.TempDir()
		for file, content := range test.files {
			put(t, filepath.Join(top, file), content)
		}
		left, bounded := Cgroups{Hierarchies: []Hierarchy{{MountPoint: "/nowhere"}, {MountPoint: top}}}.memoryLeft()
		if left != test.want || bounded != test.bounded {
			t.Errorf("%s: %d, %v; want %d, %v", name, left, bounded, test.want, test.bounded)
		}
	}
	if room, err := MemoryRoom(); err != nil || room <= 0 {
		t.Errorf("here: %d, %v", room, err)
	}
}

// A real group of the host's, whichever version it has.
func TestLimitHere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("control groups are made by root")
	}
	groups, err := ReadCgroups()
	if err != nil {
		t.Fatal(err)
	}
	const name = "/muster-limit-test/a"
	t.Cleanup(func() {
		if err := groups.Remove(name, 5e9); err != nil {
			t.Error(err)
		}
	})
	if err := groups.Create(name); err != nil {
		t.Fatal(err)
	}
	for _, memory := range []int64{128 << 20, 256 << 20, 64 << 20} { // up and down
		if err := groups.Limit(name, Limits{CPUs: 1, Memory: memory, PIDs: 20}); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range groups.Hierarchies {
		for file, want := range map[string]string{"memory.max": "67108864", "memory.limit_in_bytes": "67108864", "memory.memsw.limit_in_bytes": "67108864", "pids.max": "20"} {
			if raw, err := os.ReadFile(filepath.Join(h.MountPoint, name, file)); err == nil && strings.TrimSpace(string(raw)) != want {
				t.Errorf("%s of %s is %s", file, h.MountPoint, raw)
			}
		}
		if cpus, err := readCPUs(filepath.Join(h.MountPoint, name, "cpuset.cpus")); err == nil && slices.Contains(h.Options, "cpuset") && len(cpus) != 1 {
			t.Errorf("the group has processors %v", cpus)
		}
	}
	// A fork bomb ends in the group, and leaves the host its processes.
	bomb := exec.CommandContext(t.Context(), "sh", "-c", "read go; for i in $(seq 40); do sleep 1000 & done")
	bomb.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	start, err := bomb.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	bomb.Cancel = func() error { return syscall.Kill(-bomb.Process.Pid, syscall.SIGKILL) }
	if err := bomb.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-bomb.Process.Pid, syscall.SIGKILL)
		_ = bomb.Wait()
	})
	if err := groups.Enter(name, bomb.Process.Pid); err != nil {
		t.Fatal(err)
	}
	_, _ = start.Write([]byte("\n"))
	eventually := time.Now().Add(30 * time.Second)
	for count := int64(0); count < 20; {
		for _, h := range groups.Hierarchies {
			if n, err := readCount(filepath.Join(h.MountPoint, name, "pids.current")); err == nil {
				count = n
			}
		}
		if time.Now().After(eventually) {
			t.Fatalf("the group has %d processes", count)
		}
		<-time.After(10 * time.Millisecond)
	}
	if err := groups.Limit(name, Limits{PIDs: 10}); !errors.Is(err, ErrInUse) {
		t.Errorf("a bound below what runs: %v", err)
	}
	if err := exec.CommandContext(t.Context(), "true").Run(); err != nil {
		t.Errorf("the host starts a process: %v", err)
	}
}

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string][]int{"": nil, "0": {0}, "0-3,8": {0, 1, 2, 3, 8}, "8,0-1": {0, 1, 8}, "1,0-2": {0, 1, 2}} {
		if got, err := ParseCPUs(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is %v, %v", list, got, err)
		}
	}
	for _, list := range []string{"a", "1-", "-1", "3-1", "0,,1", "0-99999999999"} {
		if got, err := ParseCPUs(list); err == nil {
			t.Errorf("%q is %v", list, got)
		}
	}
}
