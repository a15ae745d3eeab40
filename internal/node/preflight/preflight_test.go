// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// byName finds the result of a check.
func byName(t *testing.T, results []Result, name string) Result {
	t.Helper()
	for _, r := range results {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("there is no check %q", name)
	return Result{}
}

func TestGoodMachinePasses(t *testing.T) {
	host := good()
	results := Run(t.Context(), host)
	for _, r := range results {
		if r.Status != OK || r.Fix != "" || r.Saw == "" {
			t.Errorf("%+v", r)
		}
	}
	if failed(results) {
		t.Error("it failed")
	}
	if host.asked != 1 {
		t.Errorf("the server was asked %d times", host.asked)
	}
}

// Each case makes one thing of a good machine different. Only the checks that are named may say anything but OK.
func TestChecks(t *testing.T) {
	at := good().endpoint.At
	for name, test := range map[string]struct {
		change func(*fake)
		check  string
		status string
		saw    string // a part of it
		also   []string
	}{
		"not root":        {change: func(f *fake) { f.root = false }, check: "root", status: Fail, saw: "not root"},
		"another init":    {change: func(f *fake) { f.systemd = false }, check: "systemd", status: Fail, saw: "not the first process"},
		"capitals":        {change: func(f *fake) { f.hostname = "Worker_1" }, check: "hostname", status: Fail, saw: `"Worker_1"`},
		"no name":         {change: func(f *fake) { f.hostname = "" }, check: "hostname", status: Fail, saw: `""`},
		"a long name":     {change: func(f *fake) { f.hostname = strings.Repeat("a", 60) + ".example" }, check: "hostname", status: Fail, saw: "63"},
		"everybody":       {change: func(f *fake) { f.hostname = "localhost" }, check: "hostname", status: Fail, saw: "every machine"},
		"everybody's own": {change: func(f *fake) { f.hostname = "localhost.localdomain" }, check: "hostname", status: Fail, saw: "every machine"},
		"kernel 3":        {change: func(f *fake) { f.kernel = "3.10.0-1160.el7.x86_64" }, check: "kernel", status: Fail, saw: "3.10.0"},
		"kernel 4.18":     {change: func(f *fake) { f.kernel = "4.18.0-553.el8" }, check: "kernel", status: Fail, saw: "4.18"},
		"kernel 4.19":     {change: func(f *fake) { f.kernel = "4.19.0" }, check: "kernel", status: Warn, saw: "nftables"},
		"kernel 5.12":     {change: func(f *fake) { f.kernel = "5.12-rc3" }, check: "kernel", status: Warn, saw: "nftables"},
		"kernel 5.13":     {change: func(f *fake) { f.kernel = "5.13.0" }, check: "kernel", status: OK, saw: "5.13.0"},
		"a strange one":   {change: func(f *fake) { f.kernel = "mine" }, check: "kernel", status: Warn, saw: "not known"},
		"version 1":       {change: func(f *fake) { f.cgroups.Version = 1 }, check: "cgroups", status: Warn, saw: "version 1"},
		"no memory": {
			change: func(f *fake) { f.cgroups.Missing = []string{"memory", "pids"} },
			check:  "cgroups", status: Fail, saw: "without memory, pids",
		},
		"kubeadm's drop-in": {
			change: func(f *fake) {
				f.dropIns = []DropIn{{Path: "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", Decides: true}, {Path: "/etc/systemd/system/kubelet.service.d/limits.conf"}}
			},
			check: "kubelet drop-ins", status: Fail, saw: "10-kubeadm.conf: the kubelet would be started with",
		},
		"a drop-in of limits": {
			change: func(f *fake) { f.dropIns = []DropIn{{Path: "/etc/systemd/system/kubelet.service.d/limits.conf"}} },
			check:  "kubelet drop-ins", status: Warn, saw: "limits.conf",
		},
		"swap": {change: func(f *fake) { f.swap = []string{"/swap.img"} }, check: "swap", status: Fail, saw: "/swap.img"},
		"swap for the kubelet": {
			change: func(f *fake) { f.swap, f.swapAllowed = []string{"/swap.img"}, true },
			check:  "swap", status: OK, saw: "/swap.img, which the kubelet is told to run with",
		},
		"no overlay":   {change: func(f *fake) { f.overlay = false }, check: "overlay", status: Fail, saw: "lacks the overlay file system"},
		"no nftables":  {change: func(f *fake) { f.nftables = false }, check: "nf_tables", status: Fail, saw: "lacks nf_tables"},
		"no conntrack": {change: func(f *fake) { f.conntrack = false }, check: "conntrack", status: Fail, saw: "lacks connection tracking"},
		"no forwarding": {
			change: func(f *fake) { f.settings["net.ipv4.ip_forward"] = "0" },
			check:  "ip_forward", status: Warn, saw: `"0"`,
		},
		"no inotify": {
			change: func(f *fake) { f.inotify = 0 },
			check:  "inotify", status: Fail, saw: "fs.inotify.max_user_instances is 128, 0 of them are left, and the programs of a node need 8",
		},
		"one inotify instance too few": {change: func(f *fake) { f.inotify = 7 }, check: "inotify", status: Fail, saw: "7 of them are left"},
		"just enough inotify":          {change: func(f *fake) { f.inotify = 8 }, check: "inotify", status: OK, saw: "the 8 instances that they need"},
		"no inotify after an earlier join": {
			change: func(f *fake) { f.inotify, f.existing.ByMuster = 1, true },
			check:  "inotify", status: Warn, saw: "1 of them are left",
		},
		"no mount": {change: func(f *fake) { delete(f.programs, "mount") }, check: "programs", status: Fail, saw: "missing: mount"},
		"no runtime": {
			change: func(f *fake) { f.runtime.Program = "" },
			check:  "container runtime", status: Fail, saw: "neither",
		},
		"a dead socket": {
			change: func(f *fake) { f.runtime.Exists = true },
			check:  "container runtime", status: Fail, saw: "nobody answers",
		},
		"a runtime that runs": {
			change: func(f *fake) { f.runtime.Exists, f.runtime.Answers, f.runtime.Program = true, true, "" },
			check:  "container runtime", status: OK, saw: "it answers",
		},
		"a node already": {
			change: func(f *fake) { f.existing.Files = []string{"/var/lib/kubelet/config.yaml"} },
			check:  "existing state", status: Fail, saw: "/var/lib/kubelet/config.yaml",
		},
		"a kubelet that runs": {
			change: func(f *fake) { f.processes = map[string][]int{"kubelet": {4711}} },
			check:  "existing state", status: Fail, saw: "process 4711",
		},
		"an earlier join": {
			change: func(f *fake) {
				f.existing = Existing{Files: []string{"/var/lib/kubelet/kubeconfig"}, ByMuster: true}
				f.processes = map[string][]int{"kubelet": {4711}}
				f.listeners = map[int]string{10250: "kubelet (process 4711)", 10248: "kubelet (process 4711)", 10256: "kube-proxy (process 4712)"}
			},
			check: "existing state", status: OK, saw: "earlier muster join",
		},
		"a port is taken": {
			change: func(f *fake) { f.listeners = map[int]string{10250: "nginx (process 12)"} },
			check:  "port 10250", status: Fail, saw: "taken by nginx (process 12)",
		},
		"a port is taken by another's kubelet": {
			change: func(f *fake) { f.listeners = map[int]string{10248: "kubelet (process 12)"} },
			check:  "port 10248", status: Fail, saw: "taken by kubelet",
		},
		"a port is taken in spite of an earlier join": {
			change: func(f *fake) {
				f.existing.ByMuster = true
				f.listeners = map[int]string{10256: "nginx (process 12)"}
			},
			check: "port 10256", status: Fail, saw: "nginx",
		},
		"no room":       {change: func(f *fake) { f.space = Space{Free: 1 << 29, Total: 2 << 30} }, check: "disk", status: Fail, saw: "0.5 GiB of 2.0 GiB"},
		"little room":   {change: func(f *fake) { f.space = Space{Free: 3 << 30, Total: 40 << 30} }, check: "disk", status: Warn, saw: "evicts"},
		"few inodes":    {change: func(f *fake) { f.space.FreeInodes = 99 }, check: "disk", status: Warn, saw: "99 of 2000 inodes"},
		"no inodes":     {change: func(f *fake) { f.space.FreeInodes, f.space.TotalInodes = 0, 0 }, check: "disk", status: OK, saw: "20.0 GiB"},
		"no size":       {change: func(f *fake) { f.space = Space{} }, check: "disk", status: Warn, saw: "not known"},
		"not reachable": {change: func(f *fake) { f.endpointErr = errors.New("no route to host") }, check: "endpoint", status: Fail, saw: "no route to host", also: []string{"clock"}},
		"a sick server": {change: func(f *fake) { f.endpoint.Status = 503 }, check: "endpoint", status: Warn, saw: "503 Service Unavailable"},
		"no date":       {change: func(f *fake) { f.endpoint.Date = time.Time{} }, check: "clock", status: Warn, saw: "not known"},
		"14 s ahead":    {change: func(f *fake) { f.endpoint.Date = at.Add(-14900 * time.Millisecond) }, check: "clock", status: OK, saw: "as the server's"},
		"15 s ahead":    {change: func(f *fake) { f.endpoint.Date = at.Add(-15 * time.Second) }, check: "clock", status: Warn, saw: "15s ahead of"},
		"1 m behind":    {change: func(f *fake) { f.endpoint.Date = at.Add(time.Minute) }, check: "clock", status: Warn, saw: "1m0s behind"},
		"5 m ahead":     {change: func(f *fake) { f.endpoint.Date = at.Add(-5 * time.Minute) }, check: "clock", status: Fail, saw: "5m0s ahead of"},
		"a year behind": {change: func(f *fake) { f.endpoint.Date = at.AddDate(1, 0, 0) }, check: "clock", status: Fail, saw: "8760h0m0s behind"},
	} {
		t.Run(name, func(t *testing.T) {
			host := good()
			test.change(host)
			results := Run(t.Context(), host)
			got := byName(t, results, test.check)
			if got.Status != test.status || !strings.Contains(got.Saw, test.saw) {
				t.Errorf("%+v, want %s and %q", got, test.status, test.saw)
			}
			if (got.Fix == "") != (got.Status == OK) {
				t.Errorf("what is not OK needs a fix, and nothing else: %+v", got)
			}
			if failed(results) != (test.status == Fail) {
				t.Errorf("failed is %v", failed(results))
			}
			for _, r := range results {
				if r.Status != OK && r.Name != test.check && strings.Join(test.also, " ") != r.Name {
					t.Errorf("another check minds: %+v", r)
				}
			}
		})
	}
}

func TestUnknownIsNeverOK(t *testing.T) {
	host := good()
	host.err = errors.New("permission denied")
	for _, r := range Run(t.Context(), host) {
		if r.Status == OK || r.Fix == "" {
			t.Errorf("%+v", r)
		}
		if r.Name != "clock" && !strings.Contains(r.Saw, "permission denied") {
			t.Errorf("it does not say why: %+v", r)
		}
	}
}

// The names are those of the results, so that each can be told to be ignored.
func TestNames(t *testing.T) {
	var names []string
	for _, r := range Run(t.Context(), good()) {
		names = append(names, r.Name)
	}
	if diff := cmp.Diff(names, Names()); diff != "" {
		t.Errorf("names (-results +names):\n%s", diff)
	}
}

func failed(results []Result) bool {
	return slices.ContainsFunc(results, func(r Result) bool { return r.Status == Fail })
}
