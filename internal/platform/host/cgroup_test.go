// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// The three kinds of host, as their mountinfo shows them.
const (
	unified = `22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
`
	hybrid = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset,clone_children
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,release_agent=/lib/systemd/systemd-cgroups-agent,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
99 22 0:32 /docker /elsewhere/memory rw,relatime - cgroup cgroup rw,memory
`
	legacy = `32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:32 / /sys/fs/with\040space/memory rw,relatime - cgroup cgroup rw,memory
`
)

func TestParseCgroups(t *testing.T) {
	for name, test := range map[string]struct {
		mountinfo string
		version   int
		want      []Hierarchy
	}{
		"unified": {unified, 2, []Hierarchy{{MountPoint: "/sys/fs/cgroup", Unified: true}}},
		"hybrid": {hybrid, 1, []Hierarchy{
			{MountPoint: "/sys/fs/cgroup/cpu,cpuacct", Options: []string{"cpu", "cpuacct"}},
			{MountPoint: "/sys/fs/cgroup/cpuset", Options: []string{"cpuset"}},
			{MountPoint: "/sys/fs/cgroup/memory", Options: []string{"memory"}},
			{MountPoint: "/sys/fs/cgroup/pids", Options: []string{"pids"}},
			{MountPoint: "/sys/fs/cgroup/systemd", Options: []string{"name=systemd"}},
			{MountPoint: "/sys/fs/cgroup/unified", Unified: true},
		}},
		"legacy": {legacy, 1, []Hierarchy{
			{MountPoint: "/sys/fs/cgroup/cpu", Options: []string{"cpu"}},
			{MountPoint: "/sys/fs/with space/memory", Options: []string{"memory"}},
		}},
		"none": {"22 1 254:1 / / rw - ext4 /dev/vda1 rw\nnonsense\n", 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseCgroups(strings.NewReader(test.mountinfo))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Hierarchies); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Version() != test.version {
				t.Errorf("version %d, want %d", got.Version(), test.version)
			}
		})
	}
}

// The hierarchy that has a controller is of version 1, also on a hybrid host; on one of version 2 the tree must offer
// it.
func TestWith(t *testing.T) {
	top := t.TempDir()
	put(t, filepath.Join(top, "cgroup.controllers"), "cpu memory\n")
	one, two := Hierarchy{MountPoint: "/one", Options: []string{"memory"}}, Hierarchy{MountPoint: top, Unified: true}
	for name, test := range map[string]struct {
		groups     []Hierarchy
		controller string
		want       []Hierarchy
	}{
		"version 1":            {[]Hierarchy{{MountPoint: "/cpu", Options: []string{"cpu"}}, one}, "memory", []Hierarchy{one}},
		"hybrid":               {[]Hierarchy{two, one}, "memory", []Hierarchy{one}},
		"hybrid, of version 2": {[]Hierarchy{one, two}, "cpu", []Hierarchy{two}},
		"version 2":            {[]Hierarchy{two}, "memory", []Hierarchy{two}},
		"version 2, not there": {[]Hierarchy{two}, "pids", nil},
		"none":                 {nil, "memory", nil},
	} {
		got, err := Cgroups{Hierarchies: test.groups}.With(test.controller)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got.Hierarchies); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := (Cgroups{Hierarchies: []Hierarchy{{MountPoint: "/nowhere", Unified: true}}}).With("memory"); err == nil {
		t.Error("a tree that cannot be read has no controllers")
	}
}

func TestMissing(t *testing.T) {
	for name, test := range map[string]struct {
		controllers string // of version 2; empty for version 1
		options     []string
		want        []string
	}{
		"version 2, all":     {controllers: "cpuset cpu io memory hugetlb pids rdma", want: []string{}},
		"version 2, no cpus": {controllers: "io memory pids", want: []string{"cpu", "cpuset"}},
		"version 1, all":     {options: []string{"cpu,cpuacct", "cpuset", "memory", "pids"}, want: []string{}},
		"version 1, one":     {options: []string{"cpu,cpuacct", "cpuset", "pids"}, want: []string{"memory"}},
	} {
		t.Run(name, func(t *testing.T) {
			var groups Cgroups
			if test.controllers != "" {
				dir := t.TempDir()
				put(t, filepath.Join(dir, "cgroup.controllers"), test.controllers+"\n")
				groups.Hierarchies = []Hierarchy{{MountPoint: dir, Unified: true}}
			}
			for _, options := range test.options {
				groups.Hierarchies = append(groups.Hierarchies, Hierarchy{MountPoint: "/nowhere", Options: strings.Split(options, ",")})
			}
			got, err := groups.Missing()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// On version 2 every group above a machine's hands the controllers down, and the machine's own does not yet: it will
// have processes until its agent has moved them into the leaf.
func TestCreateUnified(t *testing.T) {
	top := t.TempDir()
	put(t, filepath.Join(top, "cgroup.controllers"), "cpuset cpu io memory pids misc\n")
	for _, dir := range []string{"", "muster", "muster/x", "muster/x/i-1"} {
		put(t, filepath.Join(top, dir, "cgroup.subtree_control"), "")
	}
	groups := Cgroups{Hierarchies: []Hierarchy{{MountPoint: top, Unified: true}}}
	if err := groups.Create("/muster/x/i-1"); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"": "+pids", "muster": "+pids", "muster/x": "+pids", "muster/x/i-1": ""} {
		// A plain file keeps the last write at its start; the kernel's takes each.
		if got := get(t, filepath.Join(top, dir, "cgroup.subtree_control")); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q hands down %q, want %q last", dir, got, want)
		}
	}
}

// A new version 1 cpuset gets its parent's processors and memory at every level, and keeps what it has.
func TestCreateCpuset(t *testing.T) {
	top := t.TempDir()
	put(t, filepath.Join(top, "cpuset.cpus"), "0-1\n")
	put(t, filepath.Join(top, "cpuset.mems"), "0\n")
	put(t, filepath.Join(top, "muster/cpuset.cpus"), "1\n")
	put(t, filepath.Join(top, "muster/cpuset.mems"), "\n")
	put(t, filepath.Join(top, "muster/i-1/cpuset.cpus"), "")
	put(t, filepath.Join(top, "muster/i-1/cpuset.mems"), "")
	groups := Cgroups{Hierarchies: []Hierarchy{{MountPoint: top, Options: []string{"cpuset"}}}}
	if err := groups.Create("/muster/i-1"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"muster/cpuset.mems": "0", "muster/i-1/cpuset.cpus": "1", "muster/i-1/cpuset.mems": "0", "muster/cpuset.cpus": "1"} {
		if got := strings.TrimSpace(get(t, filepath.Join(top, path))); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// The processes move into the leaf, and memory is handed down before what would make a group with processes a threaded
// domain.
func TestDelegate(t *testing.T) {
	top := t.TempDir()
	put(t, filepath.Join(top, "cgroup.controllers"), "cpu memory\n")
	put(t, filepath.Join(top, "cgroup.procs"), "1\n")
	control := filepath.Join(top, "cgroup.subtree_control") // a pipe keeps every write, as no plain file does
	if err := unix.Mkfifo(control, 0o600); err != nil {
		t.Fatal(err)
	}
	written, err := os.OpenFile(control, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = written.Close() }()
	put(t, filepath.Join(top, "init.scope/cgroup.procs"), "")
	if err := Delegate(top); err != nil {
		t.Fatal(err)
	}
	if got := get(t, filepath.Join(top, "init.scope/cgroup.procs")); got != "1" {
		t.Errorf("the leaf has %q, want process 1", got)
	}
	got := make([]byte, 100)
	n, err := written.Read(got)
	if want := "+memory+cpu"; err != nil || string(got[:n]) != want {
		t.Errorf("controllers handed down: %q, %v, want %q", got[:n], err, want)
	}
}

// Groups go with all below them, and empty parents too. Groups of others stay.
func TestRemove(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"muster/x/i-1/kubepods/pod", "muster/y"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	groups := Cgroups{Hierarchies: []Hierarchy{{MountPoint: top, Options: []string{"pids"}}}}
	for range 2 {
		if err := groups.Remove("/muster/x/i-1", time.Second); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		left = append(left, strings.TrimPrefix(path, top))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", "/muster", "/muster/y"}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
