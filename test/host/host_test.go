// SPDX-License-Identifier: Apache-2.0

// These tests make namespaces, which needs root, and run systemd.

package host

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/process"
)

var cidr = netip.MustParsePrefix("192.168.64.0/18")

// TestMain lets the test's own binary be a test that is killed while its host runs.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "victim" {
		fmt.Println(victim(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// victim starts a host in a network that is there already, says so, and waits to be killed.
func victim(dir string) error {
	network, err := vpc.New(vpc.Config{Dir: dir, CIDR: cidr})
	if err != nil {
		return err
	}
	ctx := context.Background() //nolint:forbidigo // there is no test
	h, err := Start(ctx, Config{Name: "victim", Address: netip.MustParseAddr("192.168.64.202"), Network: network, Bin: "/usr/bin"})
	if err != nil {
		return err
	}
	fmt.Println(h.PID())
	select {}
}

func newNetwork(t *testing.T) *vpc.Network {
	t.Helper()
	network, err := vpc.New(vpc.Config{Dir: filepath.Join(t.TempDir(), "vpc"), CIDR: cidr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Delete(); err != nil {
			t.Error(err)
		}
	})
	if err := network.Ensure(); err != nil {
		t.Fatal(err)
	}
	return network
}

func start(t *testing.T, config Config) *Host {
	t.Helper()
	h, err := Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func run(t *testing.T, h *Host, args ...string) string {
	t.Helper()
	out, err := h.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// control groups of hosts of this process.
func groups(t *testing.T) []string {
	t.Helper()
	me, err := self()
	if err != nil {
		t.Fatal(err)
	}
	all, err := host.ReadCgroups()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, h := range all.Hierarchies {
		matches, _ := filepath.Glob(filepath.Join(h.MountPoint, groupsOf, me+".*"))
		found = append(found, matches...)
	}
	return found
}

func TestHostRunsSystemd(t *testing.T) {
	network := newNetwork(t)
	settings, before := kernelSettings(t), mounts(t)
	h := start(t, Config{Name: "worker-1", Address: netip.MustParseAddr("192.168.64.200"), Network: network, Bin: "/usr/bin", Install: []string{"true"}})
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"systemctl", "is-system-running"}, "running"},
		{[]string{"cat", "/proc/1/comm"}, "systemd"},
		{[]string{"hostname"}, "worker-1"},
		{[]string{"readlink", "/usr/local/bin/true"}, "/opt/muster/bin/true"},
		{[]string{"sh", "-c", "touch /usr/x /opt/muster/bin/x /proc/sys/kernel/panic /sys/x 2>&1 | grep -c Read-only"}, "3"}, // not the host's own setting
		{[]string{"sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward && cat /proc/sys/net/ipv4/ip_forward"}, "1"},
		{[]string{"sh", "-c", "ls /sys/class/net"}, "eth0\nlo"},
	} {
		if got := run(t, h, test.args...); got != test.want {
			t.Errorf("%s printed %q, not %q", strings.Join(test.args, " "), got, test.want)
		}
	}
	if out, err := h.Run(t.Context(), "sh", "-c", "echo so; exit 3"); err == nil || !strings.Contains(err.Error(), "exit status 3: so") || out != "so\n" {
		t.Errorf("a program that fails: %q, %v", out, err)
	}
	if out, err := h.RunWith(t.Context(), "typed", "cat"); err != nil || out != "typed" {
		t.Errorf("cat printed %q, %v", out, err)
	}
	if after := kernelSettings(t); after != settings {
		t.Errorf("settings of this machine were\n%s\nand are\n%s", settings, after)
	}
	unit(t, h)

	pid := h.PID()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
		t.Error("its first process is left")
	}
	if left := groups(t); len(left) > 0 {
		t.Errorf("control groups are left: %v", left)
	}
	if left, err := network.Attached(); err != nil || len(left) > 0 {
		t.Errorf("links are left: %v, %v", left, err)
	}
	if after := mounts(t); after != before {
		t.Errorf("mounts were\n%s\nand are\n%s", before, after)
	}
	if err := h.Close(); err != nil {
		t.Errorf("closing it again: %v", err)
	}
}

func mounts(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// kernelSettings are those of the whole machine that systemd, its units or a kubelet like to change.
func kernelSettings(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{
		"kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/core_pattern", "kernel/sysrq", "vm/overcommit_memory",
		"fs/protected_hardlinks", "fs/protected_symlinks", "fs/protected_regular", "fs/protected_fifos", "fs/file-max", "fs/nr_open",
	} {
		raw, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err != nil {
			continue // a kernel without it
		}
		fmt.Fprintf(&all, "%s %s", name, raw)
	}
	return all.String()
}

// unit runs a service of the host's own, in a control group of its own, and finds in the journal what it said.
func unit(t *testing.T, h *Host) {
	t.Helper()
	err := h.Write("/etc/systemd/system/hello.service", "[Service]\nExecStart=/bin/sh -c 'echo it says hello; exec sleep 600'\nMemoryMax=64M\n[Install]\nWantedBy=multi-user.target\n", 0o644)
	if err != nil {
		t.Fatal(err)
	}
	run(t, h, "systemctl", "enable", "--now", "hello")
	run(t, h, "systemctl", "is-active", "hello")
	pid := run(t, h, "systemctl", "show", "--property=MainPID", "--value", "hello")
	if groups := run(t, h, "cat", "/proc/"+pid+"/cgroup"); !strings.Contains(groups, "/system.slice/hello.service") || strings.Contains(groups, groupsOf) {
		t.Errorf("control groups of the service:\n%s", groups)
	}
	eventually(t, "its words are in the journal", func() bool {
		return strings.Contains(run(t, h, "journalctl", "--unit=hello", "--output=cat", "--no-pager"), "it says hello")
	})
	run(t, h, "kill", "-9", pid)
	eventually(t, "a unit whose process was killed has failed", func() bool {
		state, _ := h.Run(t.Context(), "systemctl", "is-failed", "hello")
		return strings.TrimSpace(state) == "failed"
	})
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("not so after a minute: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// A host ends with the process that started it, however that ends; the next start removes what is left.
func TestHostOfKilledTest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "vpc")
	network, err := vpc.New(vpc.Config{Dir: dir, CIDR: cidr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Delete(); err != nil {
			t.Error(err)
		}
	})
	if err := network.Ensure(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "victim", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		_ = cmd.Process.Kill()
		t.Fatalf("the victim did not start a host: %v", err)
	}
	held, err := process.Hold(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	owner := fmt.Sprint(cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), endPatience)
	defer cancel()
	if err := held.Wait(ctx); err != nil {
		t.Fatalf("the host outlives its test: %v", err)
	}
	all, err := host.ReadCgroups()
	if err != nil {
		t.Fatal(err)
	}
	if err := sweep(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	for _, h := range all.Hierarchies {
		left, _ := filepath.Glob(filepath.Join(h.MountPoint, groupsOf, owner+".*"))
		if len(left) > 0 {
			t.Errorf("left after sweeping: %v", left)
		}
	}
}

// Control groups of a test that runs are not swept.
func TestSweepLeavesTheLiving(t *testing.T) {
	h := start(t, Config{Name: "living", Address: netip.MustParseAddr("192.168.64.203"), Network: newNetwork(t), Bin: "/usr/bin"})
	if err := sweep(t.Context(), h.cgroups); err != nil {
		t.Fatal(err)
	}
	run(t, h, "true")
	if alive("1.0") || alive("none") || alive("999999999.1") {
		t.Error("processes that never were pass for alive")
	}
}

// On a machine with version 2 beside version 1 a host can be given that alone, as on one that has nothing else.
func TestHostOnVersion2(t *testing.T) {
	all, err := host.ReadCgroups()
	if err != nil {
		t.Fatal(err)
	}
	all.Hierarchies = slices.DeleteFunc(all.Hierarchies, func(h host.Hierarchy) bool { return !h.Unified })
	if len(all.Hierarchies) == 0 {
		t.Log("this machine has no control groups of version 2 at all: what a host on them is like cannot be seen here")
		return
	}
	h, err := startIn(t.Context(), Config{Name: "unified", Address: netip.MustParseAddr("192.168.64.204"), Network: newNetwork(t), Bin: "/usr/bin"}, all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if got := run(t, h, "stat", "--file-system", "--format=%T", "/sys/fs/cgroup"); got != "cgroup2fs" {
		t.Errorf("/sys/fs/cgroup is a %s", got)
	}
	unit(t, h)
}

func TestCgroupMounts(t *testing.T) {
	v1 := host.Cgroups{Hierarchies: []host.Hierarchy{
		{MountPoint: "/sys/fs/cgroup/cpu,cpuacct", Options: []string{"cpu", "cpuacct"}},
		{MountPoint: "/sys/fs/cgroup/systemd", Options: []string{"name=systemd"}},
		{MountPoint: "/sys/fs/cgroup/unified", Unified: true},
	}}
	if got, err := cgroupMounts(v1); err != nil || strings.Join(got, " ") != "cgroup:cpu,cpuacct cgroup:name=systemd" {
		t.Errorf("version 1: %v, %v", got, err)
	}
	v1.Hierarchies = v1.Hierarchies[:1]
	if got, err := cgroupMounts(v1); err == nil {
		t.Errorf("without name=systemd: %v", got)
	}
	if got, err := cgroupMounts(host.Cgroups{Hierarchies: []host.Hierarchy{{MountPoint: "/sys/fs/cgroup", Unified: true}}}); err != nil || strings.Join(got, " ") != "cgroup2" {
		t.Errorf("version 2: %v, %v", got, err)
	}
}
