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
)

// snapshot is what a cluster could leave behind on a host, as sorted lines by kind.
type snapshot map[string][]string

// ours are the programs that a cluster runs; other processes of the host come and go as they please.
var ours = []string{"muster", "muster-certificate-controller", "kubernetes", "containerd", "containerd-shim-runc-v2", "runc", "ctr", "pause", "coredns", "workload"}

// takeSnapshot lists everything of that kind.
func takeSnapshot(t *testing.T) snapshot {
	t.Helper()
	s := snapshot{}
	for kind, list := range map[string]func() ([]string, error){
		"processes": processes, "namespaces": namespaces, "mounts": mounts, "cgroups": cgroups, "links": links,
	} {
		lines, err := list()
		if err != nil {
			t.Fatalf("listing %s: %v", kind, err)
		}
		slices.Sort(lines)
		s[kind] = lines
	}
	return s
}

// expectSame fails the test for whatever is there now and was not before, or is missing. A namespace or a cgroup may take the
// kernel a moment to take down after its last process.
func (s snapshot) expectSame(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		diff := cmp.Diff(s, takeSnapshot(t))
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

func processes() ([]string, error) {
	return eachProcess(func(root string, pid int) []string {
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

// namespaces lists those in use by any process, and those kept by a mount.
func namespaces() ([]string, error) {
	seen := map[string]bool{}
	_, err := eachProcess(func(root string, _ int) []string {
		for _, kind := range []string{"net", "mnt", "pid", "uts", "ipc", "cgroup"} {
			if ns, err := os.Readlink(filepath.Join(root, "ns", kind)); err == nil {
				seen[ns] = true
			}
		}
		return nil
	})
	return slices.Collect(maps.Keys(seen)), err
}

func eachProcess(visit func(root string, pid int) []string) ([]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			lines = append(lines, visit(filepath.Join("/proc", entry.Name()), pid)...)
		}
	}
	return lines, nil
}

func mounts() ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var lines []string
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		lines = append(lines, fields[4]+" "+fields[3])
	}
	return lines, scanner.Err()
}

// cgroups lists all of them but those beside our own: these belong to who runs beside us, and come and go.
func cgroups() ([]string, error) {
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
	beside := func(path string) bool {
		return slices.ContainsFunc(own, func(o string) bool {
			return strings.HasSuffix(filepath.Dir(path), filepath.Dir(o)) && !strings.HasSuffix(path, o)
		})
	}
	var lines []string
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil, entry.IsDir() && beside(path):
			return fs.SkipDir // the former went away while we looked
		case entry.IsDir():
			lines = append(lines, path)
		}
		return nil
	})
	return lines, err
}

func links() ([]string, error) {
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
