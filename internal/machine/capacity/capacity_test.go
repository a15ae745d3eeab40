// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

const mib = 1 << 20

// is compares an error with its whole text, "" for none.
func is(t *testing.T, name string, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%s: error %q, want %q", name, got, want)
	}
}

func TestControlPlanes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		available int64
		running   int
		want      string
	}{
		"plenty":        {available: 20 << 30, running: 9},
		"just enough":   {available: ControlPlaneMemory},
		"a byte short":  {available: ControlPlaneMemory - 1, want: "the host has 767 MiB of memory available, and the control plane of a cluster needs 768 MiB: stop other programs, or use a host with more memory"},
		"one runs":      {available: 300 * mib, running: 1, want: "the host has 300 MiB of memory available, and the control plane of a cluster needs 768 MiB: delete the cluster that runs here, stop other programs, or use a host with more memory"},
		"many run":      {available: 0, running: 12, want: "the host has 0 MiB of memory available, and the control plane of a cluster needs 768 MiB: delete one of the 12 clusters that run here, stop other programs, or use a host with more memory"},
		"promised away": {available: -ControlPlaneMemory, running: 2, want: "the host has 0 MiB of memory available, and the control plane of a cluster needs 768 MiB: delete one of the 2 clusters that run here, stop other programs, or use a host with more memory"},
	} {
		is(t, name, ControlPlanes(tc.available, tc.running), tc.want)
	}
}

func TestOvercommitted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		types []string
		want  string
	}{
		"nothing":             {nil, ""},
		"all of the host":     {[]string{""}, ""},
		"all of it, twice":    {[]string{"", "m4.xlarge"}, "The host is overcommitted: 2 local nodes together claim 4 CPUs and 47.0 GiB of memory; the host has 2 CPUs and 23.5 GiB."},
		"a type that fits":    {[]string{"t3.medium"}, ""},
		"a type that is more": {[]string{"m5.xlarge"}, "The host is overcommitted: 1 local node claims 4 CPUs and 16.0 GiB of memory; the host has 2 CPUs and 23.5 GiB."},
		"several types":       {[]string{"t3.small", "t3.small"}, "The host is overcommitted: 2 local nodes together claim 4 CPUs and 4.0 GiB of memory; the host has 2 CPUs and 23.5 GiB."},
	} {
		host := Host{CPUs: 2, Memory: 24652052 << 10}
		for _, kind := range test.types {
			host.Claim(kind)
		}
		if got := host.Overcommitted(); got != test.want || host.Nodes != len(test.types) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	unknown := Host{}
	unknown.Claim("t3.medium")
	if got := unknown.Overcommitted(); got != "" {
		t.Errorf("a host that is not known: %q", got)
	}
}

// What is about to be claimed is told in the future.
func TestWillBeOvercommitted(t *testing.T) {
	t.Parallel()
	host := Host{CPUs: 2, Memory: 24652052 << 10}
	host.Claim("")
	if got := host.WillBeOvercommitted(); got != "" {
		t.Errorf("one node: %q", got)
	}
	for range 98 {
		host.Claim("")
	}
	if got, want := host.WillBeOvercommitted(), "The host will be overcommitted: 99 local nodes together claim 198 CPUs and 2327.5 GiB of memory; the host has 2 CPUs and 23.5 GiB."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBoots(t *testing.T) {
	t.Parallel()
	for cpus, want := range map[int]int{0: 5, 1: 5, 2: 5, 3: 6, 64: 128} {
		if got := Boots(cpus); got != want {
			t.Errorf("%d CPUs boot %d machines at once, want %d", cpus, got, want)
		}
	}
}

func TestInotify(t *testing.T) {
	t.Parallel()
	group := func(provider v1alpha1.Provider, size int32) *v1alpha1.NodeGroup {
		g := &v1alpha1.NodeGroup{}
		g.Spec.Provider, g.Spec.ScalingConfig.DesiredSize = provider, size
		return g
	}
	if got := InotifyInstances(nil); got != 18 {
		t.Errorf("a control plane alone needs %d", got)
	}
	need := InotifyInstances([]*v1alpha1.NodeGroup{group(v1alpha1.ProviderLocal, 2), group(v1alpha1.ProviderSimulated, 500), group(v1alpha1.ProviderLocal, 1)})
	if need != 18+3*8 {
		t.Errorf("three local machines need %d", need)
	}
	is(t, "enough", Inotify(need, need, "128"), "")
	is(t, "one too few", Inotify(need, need-1, "128"), "fs.inotify.max_user_instances is 128 on this host, 41 of them are left, and the cluster's programs need 42: allow more with `sysctl fs.inotify.max_user_instances=1024`, or stop other clusters")
	is(t, "none", Inotify(18, 0, "not known"), "fs.inotify.max_user_instances is not known on this host, 0 of them are left, and the cluster's programs need 18: allow more with `sysctl fs.inotify.max_user_instances=1024`, or stop other clusters")
}

func TestFewInotifyInstances(t *testing.T) {
	t.Parallel()
	const few = "fs.inotify.max_user_instances is 128 on this host, and pods of local machines may need 1024: add the line `fs.inotify.max_user_instances = 1024` " +
		"to /etc/sysctl.d/60-muster.conf, then run `sysctl --system`"
	for limit, want := range map[string]string{"128": few, "1023": strings.Replace(few, "128", "1023", 1), "1024": "", "8192": "", "not known": "", "": ""} {
		if got := FewInotifyInstances(limit); got != want {
			t.Errorf("limit %q: %q, want %q", limit, got, want)
		}
	}
}

func TestFewOpenFiles(t *testing.T) {
	t.Parallel()
	const few = "fs.file-max is 2466170 on this host, and 28672 processes of local machines may open more files, after which none is left for programs that are not root's: " +
		"add the line `fs.file-max = 9223372036854775807`, which systemd sets, to /etc/sysctl.d/60-muster.conf, then run `sysctl --system`"
	for limit, want := range map[string]string{
		"2466170": few, "1879048192": strings.Replace(few, "2466170", "1879048192", 1), "1879048193": "", "9223372036854775807": "", "not known": "",
	} {
		if got := FewOpenFiles(limit, 28672); got != want {
			t.Errorf("limit %q: %q, want %q", limit, got, want)
		}
	}
}

func TestDisk(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		available, total uint64
		want             string
	}{
		"plenty":              {available: 90 << 30, total: 100 << 30},
		"just enough":         {available: 1 << 30, total: 10 << 30},
		"too little to start": {available: 1<<30 - 1, total: 2 << 30, want: "the file system of /s has 1023 MiB left, and a cluster needs 1024 MiB to start: free some space, or choose another --state-dir"},
		"none":                {want: "the file system of /s has 0 MiB left, and a cluster needs 1024 MiB to start: free some space, or choose another --state-dir"},
		"a large disk":        {available: 10 << 30, total: 1000 << 30},
		"the reserve":         {available: 5 << 30, total: 100 << 30},
		"less than that":      {available: 5<<30 - 1, total: 100 << 30, want: "the file system of /s has 5119 MiB left, and with less than 5120 MiB no volumes are made and machines are stopped: free some space, or choose another --state-dir"},
	} {
		is(t, name, Disk("/s", tc.available, tc.total), tc.want)
	}
}
