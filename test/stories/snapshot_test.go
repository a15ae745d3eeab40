// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bufio"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/loopdevice"
	"muster.dev/muster/internal/platform/process"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/test/host"
	"muster.dev/muster/test/plane"
)

// snapshot is what a cluster could leave behind on a host, as sorted lines by kind.
type snapshot map[string][]string

// ours are the programs that a cluster runs; other processes of the host come and go as they please.
var ours = []string{"muster", "muster-certificate-controller", "muster-plane-front", "muster-registry", "muster-token-signer", "muster-webhook-proxy", "muster-egress", "kubernetes", "etcd", "kubectl", "containerd", "containerd-shim-runc-v2", "runc", "ctr", "pause", "coredns", "workload"}

// takeSnapshot lists everything of that kind, but for what another story has that runs at the same time.
func takeSnapshot(t *testing.T, dir statedir.Dir) snapshot {
	t.Helper()
	s := snapshot{}
	for kind, list := range map[string]func(statedir.Dir) ([]string, error){
		"processes": processes, "namespaces": namespaces, "mounts": mounts, "cgroups": cgroups, "links": links, "loop devices": loopDevices,
	} {
		lines, err := list(dir)
		if err != nil {
			t.Fatalf("listing %s: %v", kind, err)
		}
		slices.Sort(lines)
		s[kind] = lines
	}
	return s
}

// expectSame fails the test for whatever is there now and was not before, or is missing. A namespace or a cgroup may
// take the kernel a moment to take down after its last process. Both may be missing: another story's that are just
// being taken down look like the host's.
func (s snapshot) expectSame(t *testing.T, dir statedir.Dir) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		now := takeSnapshot(t, dir)
		for _, kind := range []string{"namespaces", "cgroups"} {
			now[kind] = union(now[kind], s[kind])
		}
		diff := cmp.Diff(s, now)
		if diff == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("the host is not as it was found (-before +after):\n%s", diff)
			return
		}
		<-time.After(100 * time.Millisecond)
	}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// stranger says whether a process belongs to another story: it, or one that it descends from, has another state
// directory in its environment, or is a test of its own.
func stranger(pid int, dir statedir.Dir) bool {
	for pid > 1 && pid != os.Getpid() {
		p, err := process.Read(filepath.Join("/proc", strconv.Itoa(pid)), time.Now().Add(time.Second))
		if p.Parent == 0 { // a thread of the kernel, or it has ended
			return false
		}
		for variable := range strings.SplitSeq(string(p.Environment), "\x00") {
			switch name, of, _ := strings.Cut(variable, "="); name {
			case statedir.Env, supervise.EnvState: // of commands, of a cluster's processes
				return of != string(dir)
			case host.Environment:
				owner, _, _ := strings.Cut(of, "/")
				return !ownsHost(owner, dir)
			case plane.Environment:
				return true
			}
		}
		if err == nil && strings.HasSuffix(p.Executable, ".test") {
			return true
		}
		pid = p.Parent
	}
	return false
}

// hostsOf are the hosts of an installation.
func hostsOf(dir statedir.Dir) string { return filepath.Base(filepath.Dir(string(dir))) }

func ownsHost(owner string, dir statedir.Dir) bool {
	return strings.HasPrefix(owner, strconv.Itoa(os.Getpid())+".") && strings.HasSuffix(owner, "."+hostsOf(dir))
}

func processes(dir statedir.Dir) ([]string, error) {
	return eachProcess(dir, func(root string, pid int) []string {
		executable, err := os.Readlink(filepath.Join(root, "exe"))
		if err != nil {
			return nil
		}
		name := strings.TrimSuffix(filepath.Base(executable), " (deleted)")
		if pid == os.Getpid() || !slices.Contains(ours, name) {
			return nil
		}
		return []string{fmt.Sprintf("%d %s", pid, executable)}
	})
}

// namespaces lists those in use by any process.
func namespaces(dir statedir.Dir) ([]string, error) {
	seen := map[string]bool{}
	_, err := eachProcess(dir, func(root string, _ int) []string {
		for _, kind := range []string{"net", "mnt", "pid", "uts", "ipc", "cgroup"} {
			if ns, err := os.Readlink(filepath.Join(root, "ns", kind)); err == nil {
				seen[ns] = true
			}
		}
		return nil
	})
	return slices.Collect(maps.Keys(seen)), err
}

func eachProcess(dir statedir.Dir, visit func(root string, pid int) []string) ([]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && !stranger(pid, dir) {
			lines = append(lines, visit(filepath.Join("/proc", entry.Name()), pid)...)
		}
	}
	return lines, nil
}

// mounts lists them, but for those below the temporary directories of others.
func mounts(dir statedir.Dir) ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	temporary := filepath.Clean(os.TempDir()) + "/"
	var lines []string
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if strings.HasPrefix(fields[4], temporary) && !strings.HasPrefix(fields[4], filepath.Dir(string(dir))+"/") {
			continue
		}
		lines = append(lines, fields[4]+" "+fields[3])
	}
	return lines, scanner.Err()
}

// Of muster's machines and control planes and of the hosts of tests, the control groups of each service and each test
// are a directory in one of these.
const (
	groupsOfMachines = "muster"
	groupsOfPlanes   = "muster-planes"
	groupsOfHosts    = "muster-test-hosts"
)

// cgroups lists all of them but those beside our own and those of other stories: these belong to who runs beside us,
// and come and go.
func cgroups(dir statedir.Dir) ([]string, error) {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var own []string // directories of groups like ours, below the root of their hierarchy
	for line := range strings.Lines(string(raw)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 && filepath.Dir(parts[2]) != "/" {
			own = append(own, parts[2])
		}
	}
	hash := statedir.Hash(dir)
	beside := func(path string) bool {
		switch parent, name := filepath.Dir(path), filepath.Base(path); filepath.Base(parent) {
		case groupsOfMachines, groupsOfPlanes:
			return name != hash
		case groupsOfHosts:
			return !ownsHost(name, dir)
		}
		return slices.ContainsFunc(own, func(o string) bool {
			return strings.HasSuffix(filepath.Dir(path), filepath.Dir(o)) && !strings.HasSuffix(path, o)
		})
	}
	shared := func(path string) bool { // it is there as long as anybody's is, and left behind when it has none
		entries, _ := os.ReadDir(path)
		return slices.Contains([]string{groupsOfMachines, groupsOfPlanes, groupsOfHosts}, filepath.Base(path)) && slices.ContainsFunc(entries, fs.DirEntry.IsDir)
	}
	var lines []string
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil, entry.IsDir() && beside(path):
			return fs.SkipDir // the former went away while we looked
		case entry.IsDir() && !shared(path):
			lines = append(lines, path)
		}
		return nil
	})
	return lines, err
}

// loopDevices lists those with a file beside or below the state directory, even if it is removed.
func loopDevices(dir statedir.Dir) ([]string, error) { return attachedBelow(filepath.Dir(string(dir))) }

// attachedBelow lists the loop devices with a file below a directory.
func attachedBelow(dir string) ([]string, error) {
	all, err := loopdevice.List()
	var lines []string
	for _, one := range all {
		if strings.HasPrefix(one.Path, dir+"/") {
			lines = append(lines, fmt.Sprintf("%s %s %s", one.Node(), one.Name, one.Path))
		}
	}
	return lines, err
}

func links(statedir.Dir) ([]string, error) {
	entries, err := os.ReadDir("/sys/class/net")
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, entry := range entries {
		lines = append(lines, entry.Name())
	}
	return lines, nil
}
