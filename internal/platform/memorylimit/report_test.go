// SPDX-License-Identifier: Apache-2.0

package memorylimit

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"testing"

	"muster.dev/muster/internal/platform/host"
)

// group makes a group of files as the kernel has them.
func group(t *testing.T, unified bool, files map[string]string) Group {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "g")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	files["../cgroup.controllers"] = "memory\n"
	files["../cgroup.subtree_control"] = "memory\n"
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := host.Hierarchy{MountPoint: top, Options: []string{"memory"}}
	if unified {
		h = host.Hierarchy{MountPoint: top, Unified: true}
	}
	return Controller{host.Cgroups{Hierarchies: []host.Hierarchy{h}}}.Group("/g")
}

func version1(changed map[string]string) map[string]string {
	files := map[string]string{
		"memory.limit_in_bytes": "10000000\n", "memory.usage_in_bytes": "100\n", "memory.max_usage_in_bytes": "400\n",
		"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
	}
	maps.Copy(files, changed)
	return files
}

func version2(changed map[string]string) map[string]string {
	files := map[string]string{"memory.max": "1000\n", "memory.current": "100\n", "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n"}
	maps.Copy(files, changed)
	return files
}

func TestReport(t *testing.T) {
	t.Parallel()
	const ended1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"
	for name, test := range map[string]struct {
		unified bool
		files   map[string]string
		want    Report
		failed  bool
	}{
		"version 1":                  {false, version1(nil), Report{10_000_000, 100, 400, 0}, false},
		"1, at its limit, alive":     {false, version1(map[string]string{"memory.max_usage_in_bytes": "10000000\n"}), Report{10_000_000, 100, 10_000_000, 0}, false},
		"1, ended at its limit":      {false, version1(map[string]string{"memory.max_usage_in_bytes": "9990000\n", "memory.oom_control": ended1}), Report{10_000_000, 100, 9_990_000, 2}, false},
		"1, by memory and swap":      {false, version1(map[string]string{"memory.memsw.max_usage_in_bytes": "9999000\n", "memory.oom_control": ended1}), Report{10_000_000, 100, 9_999_000, 2}, false},
		"1, the host had none":       {false, version1(map[string]string{"memory.memsw.max_usage_in_bytes": "400\n", "memory.oom_control": ended1}), Report{10_000_000, 100, 400, 0}, false},
		"1, a kernel before 4.13":    {false, version1(map[string]string{"memory.max_usage_in_bytes": "10000000\n", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n"}), Report{10_000_000, 100, 10_000_000, 0}, false},
		"1, nonsense":                {false, version1(map[string]string{"memory.max_usage_in_bytes": "many\n"}), Report{}, true},
		"1, gone":                    {false, map[string]string{}, Report{}, false},
		"version 2":                  {true, version2(nil), Report{1000, 100, 100, 0}, false},
		"2, without a limit":         {true, version2(map[string]string{"memory.max": "max\n"}), Report{math.MaxInt64, 100, 100, 0}, false},
		"2, with a peak":             {true, version2(map[string]string{"memory.peak": "400\n"}), Report{1000, 100, 400, 0}, false},
		"2, ended at its limit":      {true, version2(map[string]string{"memory.events": "oom 1\noom_kill 1\n"}), Report{1000, 100, 1000, 1}, false},
		"2, the host had no memory":  {true, version2(map[string]string{"memory.events": "oom 0\noom_kill 1\n"}), Report{1000, 100, 100, 0}, false},
		"2, a line that has no name": {true, version2(map[string]string{"memory.events": "oom\n"}), Report{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := group(t, test.unified, test.files).Report()
			if (err != nil) != test.failed || !test.failed && got != test.want {
				t.Errorf("%+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

// Version 2 would end a program that uses more than a new limit. Memory that the kernel can take from it does not
// count.
func TestHoldRefusesVersion2(t *testing.T) {
	t.Parallel()
	g := group(t, true, version2(map[string]string{
		"memory.current": "1000\n", "memory.stat": "anon 500\ninactive_file 150\nactive_file 50\n", "memory.swap.max": "max\n",
	}))
	err := g.Hold(799)
	if inUse, ok := errors.AsType[*InUse](err); !ok || *inUse != (InUse{Asked: 799, Used: 1000, Limit: 1000}) {
		t.Errorf("a limit of 799: %v", err)
	}
	for _, limit := range []int64{800, 8001} {
		if err := g.Hold(limit); err != nil {
			t.Errorf("a limit of %d: %v", limit, err)
		}
	}
	if report, err := g.Report(); err != nil || report.Limit != 8001 {
		t.Errorf("the limit is %d: %v", report.Limit, err)
	}
}

func TestInUse(t *testing.T) {
	t.Parallel()
	const want = "a limit of 512 MiB cannot take effect while 600 MiB are in use; the limit stays 1024 MiB"
	if got := (&InUse{Asked: 512 << 20, Used: 600 << 20, Limit: 1 << 30}).Error(); got != want {
		t.Error(got)
	}
}
