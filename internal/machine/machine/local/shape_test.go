// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/platform/host"
)

func TestShapeOf(t *testing.T) {
	for name, want := range map[string]shape{
		"t3.small": {CPUs: 2, Memory: 2 << 30}, "m5.4xlarge": {CPUs: 16, Memory: 64 << 30}, "": {}, machine.DefaultType: {}, "m4.xlarge": {},
	} {
		if got := shapeOf(name); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, want %+v", name, got, want)
		}
	}
}

const hostCPUs = `processor	: 0
vendor_id	: GenuineIntel
cpu MHz		: 2900.000
physical id	: 1
siblings	: 64
core id		: 7
cpu cores	: 32
apicid		: 14
initial apicid	: 14
flags		: fpu vme

processor	: 1
vendor_id	: GenuineIntel
`

func TestShapeFiles(t *testing.T) {
	files := shape{CPUs: 4, Memory: 16 << 30}.files(hostCPUs)
	const meminfo = "MemTotal:       16777216 kB\nMemFree:        16777216 kB\nMemAvailable:   16777216 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n"
	for path, want := range map[string]string{
		"proc/meminfo":                  meminfo,
		"sys/devices/system/cpu/online": "0-3\n",

		"sys/devices/system/node/node0/cpu3/topology/core_id":         "1\n",
		"sys/devices/system/cpu/cpu2/topology/physical_package_id":    "0\n",
		"sys/devices/system/node/node0/cpu4/topology/core_id":         "",
		"sys/devices/system/node/node0/meminfo":                       "Node 0 MemTotal:       16777216 kB\nNode 0 MemFree:        16777216 kB\n",
		"sys/devices/system/node/node0/cpu0/topology/thread_siblings": "",
	} {
		if files[path] != want {
			t.Errorf("%s is %q, want %q", path, files[path], want)
		}
	}
	cpus := strings.Split(strings.TrimSpace(files["proc/cpuinfo"]), "\n\n")
	if len(cpus) != 4 {
		t.Fatalf("there are %d processors:\n%s", len(cpus), files["proc/cpuinfo"])
	}
	const third = "processor\t: 2\nvendor_id\t: GenuineIntel\ncpu MHz\t\t: 2900.000\nphysical id\t: 0\nsiblings\t: 4\ncore id\t\t: 1\ncpu cores\t: 2\napicid\t\t: 2\ninitial apicid\t: 2\nflags\t\t: fpu vme"
	if cpus[2] != third {
		t.Errorf("the third processor is\n%s", cpus[2])
	}
	if one := (shape{CPUs: 1, Memory: 1 << 30}).files(hostCPUs); one["sys/devices/system/cpu/online"] != "0\n" || !strings.Contains(one["proc/cpuinfo"], "cpu cores\t: 1\n") {
		t.Errorf("a machine of one processor has %q and %s", one["sys/devices/system/cpu/online"], one["proc/cpuinfo"])
	}
}

// A machine that runs on some of the host's processors sees them by their numbers. Where its type has more, a kubelet counts as
// many, and no number is the host's that the host may not have: the kubelet binds its control group to all that it finds.
func TestShapeOfChosenProcessors(t *testing.T) {
	for _, c := range []struct {
		cpus   int
		runsOn []int
		online string
		found  [][]int // numbers by cores, as cadvisor reads the directories
	}{
		{2, []int{2, 3}, "2-3", [][]int{{2, 3}}},
		{1, []int{5}, "5", [][]int{{5}}},
		{2, []int{1, 6}, "1,6", [][]int{{1, 6}}},
		{4, []int{2, 3}, "2-3", [][]int{{2, 3}, {2, 3}}},
		{6, []int{0, 1}, "0-1", [][]int{{0, 1}, {0, 1}, {0, 1}}},
		{2, []int{0}, "0", [][]int{{0}, {0}}},
		{4, []int{2, 0, 1}, "0-2", [][]int{{0, 1}, {2}, {0}}},
		{2, nil, "0-1", [][]int{{0, 1}}},
		{2, []int{0, 1, 2, 3}, "0-1", [][]int{{0, 1}}},
	} {
		s := shape{CPUs: c.cpus, Memory: 4 << 30, RunsOn: c.runsOn}
		files := s.files(hostCPUs)
		for _, path := range []string{"sys/devices/system/cpu/online", "sys/devices/system/cpu/possible", "sys/devices/system/cpu/present", "sys/devices/system/node/node0/cpulist"} {
			if files[path] != c.online+"\n" {
				t.Errorf("%+v: %s is %q, want %q", s, path, files[path], c.online)
			}
		}
		for _, parent := range []string{"sys/devices/system/cpu", "sys/devices/system/node/node0"} {
			if found := processors(t, files, parent); !reflect.DeepEqual(found, c.found) {
				t.Errorf("%+v: below %s are %v, want %v", s, parent, found, c.found)
			}
		}
		if n := strings.Count(files["proc/cpuinfo"], "processor"); n != c.cpus {
			t.Errorf("%+v: %d processors in /proc/cpuinfo", s, n)
		}
	}
}

// processors are the numbers of processors by their cores, as cadvisor finds them: by the digits of directories' names.
func processors(t *testing.T, files map[string]string, parent string) [][]int {
	t.Helper()
	var cores [][]int
	for _, path := range slices.Sorted(maps.Keys(files)) {
		m := regexp.MustCompile("^" + parent + "/cpu([0-9]+)/topology/core_id$").FindStringSubmatch(path)
		if m == nil {
			continue
		}
		cpu, err := strconv.Atoi(m[1])
		core, wrong := strconv.Atoi(strings.TrimSpace(files[path]))
		if err = errors.Join(err, wrong); err != nil {
			t.Fatal(err)
		}
		for len(cores) <= core {
			cores = append(cores, nil)
		}
		cores[core] = append(cores[core], cpu)
		slices.Sort(cores[core])
	}
	return cores
}

// A machine of a type sees the type's processors and memory where a kubelet looks, more than the host has or fewer, and
// its control groups hold it to them, and to less than all machines of the host may have.
func TestShape(t *testing.T) {
	s := newSite(t)
	p := s.provider(t)
	stop := s.serve(t)
	t.Cleanup(stop)
	groups, err := host.ReadCgroups()
	if err != nil {
		t.Fatal(err)
	}
	bounds, err := hostBounds(groups)
	if err != nil {
		t.Fatal(err)
	}
	all := bounds.Machines()
	for id, test := range map[string]struct{ kind, memTotal string }{
		machinetest.First:  {"t3.small", "2097152 kB"},
		machinetest.Second: {"m5.4xlarge", "67108864 kB"},
	} {
		if _, err := p.Launch(t.Context(), machine.LaunchRequest{ID: id, UserData: userData(t), Type: test.kind}); err != nil {
			t.Fatal(err)
		}
		pid, running, err := p.find(id)
		if err != nil || !running {
			t.Fatalf("machine does not run: %v", err)
		}
		root := filepath.Join("/proc", strconv.Itoa(pid), "root")
		if total, _, _ := strings.Cut(read(t, filepath.Join(root, "proc/meminfo")), "\n"); !strings.HasSuffix(total, " "+test.memTotal) {
			t.Errorf("%s: %s", test.kind, total)
		}
		online, err := host.ParseCPUs(strings.TrimSpace(read(t, filepath.Join(root, "sys/devices/system/cpu/online"))))
		if err != nil || len(online) != min(host.CPUs(), shapeOf(test.kind).CPUs) {
			t.Errorf("%s: processors %v, %v", test.kind, online, err)
		}
		cpus, err := filepath.Glob(filepath.Join(root, "sys/devices/system/node/node*/cpu[0-9]*/topology/core_id"))
		if err != nil || len(cpus) != shapeOf(test.kind).CPUs && pathExists("/sys/devices/system/node") {
			t.Errorf("%s: memory nodes have processors %v, %v", test.kind, cpus, err)
		}
		if blocks := strings.Count(read(t, filepath.Join(root, "proc/cpuinfo")), "processor"); blocks < 2 {
			t.Errorf("%s: /proc/cpuinfo has %d processors", test.kind, blocks)
		}
		own := bounds.Machine(test.kind)
		if got := read(t, filepath.Join(root, "proc/sys/kernel/threads-max")); got != strconv.FormatInt(own.PIDs, 10)+"\n" || own.PIDs >= all.PIDs {
			t.Errorf("%s: kernel.threads-max is %s", test.kind, got)
		}
		for _, h := range groups.Hierarchies {
			for group, want := range map[string]capacity.Bounds{cgroupName(s.dir, id): own, machinesGroup: all} {
				for file, bound := range map[string]int64{"memory.max": want.Memory, "memory.limit_in_bytes": want.Memory, "pids.max": want.PIDs} {
					path := filepath.Join(h.MountPoint, group, file)
					if !pathExists(path) || h.Unified && groups.Version() == 1 {
						continue
					}
					if got, err := strconv.ParseInt(strings.TrimSpace(read(t, path)), 10, 64); err != nil || got > bound || got < bound-int64(os.Getpagesize()) {
						t.Errorf("%s: %s is %s, want %d", test.kind, path, read(t, path), bound)
					}
				}
			}
			if path := filepath.Join(h.MountPoint, cgroupName(s.dir, id), "cpuset.cpus"); slices.Contains(h.Options, "cpuset") {
				if cpus, err := host.ParseCPUs(strings.TrimSpace(read(t, path))); err != nil || !slices.Equal(cpus, online) { // to which the kubelet binds all pods
					t.Errorf("%s runs on %v, and says that it has %v: %v", test.kind, cpus, online, err)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(root, "proc/meminfo"), []byte("x"), 0o644); err == nil {
			t.Error("the machine's memory can be written")
		}
		kubeletSees(t, filepath.Join(s.dir.MachineLogs(id), "kubelet.log"), fmt.Sprintf(" NumCores:%d ", shapeOf(test.kind).CPUs), fmt.Sprintf(" MemoryCapacity:%d ", shapeOf(test.kind).Memory))
	}
}

// kubeletSees waits until the kubelet has logged what it takes the machine for, from which it makes the capacity of its
// node.
func kubeletSees(t *testing.T, log string, wants ...string) {
	t.Helper()
	eventually(t, "the kubelet describes its machine", func() error {
		for line := range strings.Lines(maybeRead(log)) {
			if !strings.Contains(line, " NumCores:") {
				continue
			}
			for _, want := range wants {
				if !strings.Contains(line, want) {
					return fmt.Errorf("it has not %s: %s", want, line)
				}
			}
			return nil
		}
		return errors.New("it has not done so yet")
	})
}

func pathExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
