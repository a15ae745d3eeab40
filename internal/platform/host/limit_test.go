// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLimitUnified(t *testing.T) {
	top := t.TempDir()
	for path, content := range map[string]string{
		"m/cpuset.cpus.effective": "0-7\n", "m/a/cpuset.cpus": "0-1,4\n", "m/b/cpuset.cpus": "0\n", "m/c/cpuset.cpus": "\n",
		"m/i-1/cpuset.cpus": "\n", "m/i-1/memory.max": "max\n", "m/i-1/memory.swap.max": "max\n",
	} {
		put(t, filepath.Join(top, path), content)
	}
	groups := Cgroups{Hierarchies: []Hierarchy{{MountPoint: top, Unified: true}}}
	for _, limits := range []Limits{{}, {CPUs: 8}, {CPUs: 16}} { // more than the host has are no bound
		if err := groups.Limit("/m/i-1", limits); err != nil || strings.TrimSpace(get(t, filepath.Join(top, "m/i-1/cpuset.cpus"))) != "" {
			t.Fatalf("%+v: %v", limits, err)
		}
	}
	if err := groups.Limit("/m/i-1", Limits{CPUs: 6, Memory: 4 << 30}); err != nil {
		t.Fatal(err)
	}
	// 0 has two neighbours; of 1 and 4, which have one, the lower is taken.
	for path, want := range map[string]string{"cpuset.cpus": "1,2,3,5,6,7", "memory.max": "4294967296", "memory.swap.max": "0"} {
		if got := strings.TrimSpace(get(t, filepath.Join(top, "m/i-1", path))); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestLimitVersion1(t *testing.T) {
	cpuset, memory, pids := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, filepath.Join(cpuset, "m/cpuset.cpus"), "2-3\n")
	put(t, filepath.Join(cpuset, "m/other/cpuset.cpus"), "2\n")
	put(t, filepath.Join(cpuset, "m/i-1/cpuset.cpus"), "2-3\n")
	put(t, filepath.Join(memory, "m/i-1/memory.limit_in_bytes"), "9223372036854771712\n")
	groups := Cgroups{Hierarchies: []Hierarchy{
		{MountPoint: cpuset, Options: []string{"cpuset"}},
		{MountPoint: memory, Options: []string{"memory"}},
		{MountPoint: pids, Options: []string{"pids"}},
		{MountPoint: "/nowhere", Unified: true}, // of a hybrid host
	}}
	if err := groups.Limit("/m/i-1", Limits{CPUs: 1, Memory: 2 << 30}); err != nil {
		t.Fatal(err)
	}
	if got := get(t, filepath.Join(cpuset, "m/i-1/cpuset.cpus")); !strings.HasPrefix(got, "3") {
		t.Errorf("the processors are %q", got)
	}
	if got := get(t, filepath.Join(memory, "m/i-1/memory.limit_in_bytes")); !strings.HasPrefix(got, "2147483648") {
		t.Errorf("the memory is %q", got)
	}
	if err := groups.Limit("/m/i-2", Limits{Memory: 1}); err == nil {
		t.Error("a group that is not there has been limited")
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
	if err := groups.Limit(name, Limits{CPUs: 1, Memory: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	for _, h := range groups.Hierarchies {
		for file, want := range map[string]string{"memory.max": "67108864", "memory.limit_in_bytes": "67108864"} {
			if raw, err := os.ReadFile(filepath.Join(h.MountPoint, name, file)); err == nil && strings.TrimSpace(string(raw)) != want {
				t.Errorf("%s of %s is %s", file, h.MountPoint, raw)
			}
		}
		if cpus, err := readCPUs(filepath.Join(h.MountPoint, name, "cpuset.cpus")); err == nil && slices.Contains(h.Options, "cpuset") && len(cpus) != 1 {
			t.Errorf("the group has processors %v", cpus)
		}
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
