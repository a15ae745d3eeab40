// SPDX-License-Identifier: Apache-2.0

// These tests make real machines: they need root, and the programs that make build builds.

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/platform/statedir"
)

func TestProvider(t *testing.T) {
	// User data that is none makes a machine that boots and then waits for better.
	machinetest.Run(t, v1alpha1.ProviderLocal, []byte("none"), func(t *testing.T) machinetest.Factory {
		t.Helper()
		s := newSite(t)
		return func(t *testing.T) machine.Provider { t.Helper(); return s.provider(t) }
	})
}

// A machine has a root, a name, an address, control groups and kernel settings of its own, sees nothing of the host's,
// and runs containerd.
func TestMachine(t *testing.T) {
	s := newSite(t)
	p := s.provider(t)
	overcommit := read(t, "/proc/sys/vm/overcommit_memory")
	stop := s.serve(t)
	t.Cleanup(stop)
	if _, err := p.Launch(t.Context(), machine.LaunchRequest{ID: machinetest.First, UserData: userData(t), Type: "m5.large"}); err != nil {
		t.Fatal(err)
	}
	pid, running, err := p.find(machinetest.First)
	if err != nil || !running {
		t.Fatalf("machine does not run: %v", err)
	}
	root := filepath.Join("/proc", strconv.Itoa(pid), "root")

	eventually(t, "containerd answers", func() error {
		if log := read(t, filepath.Join(s.dir.MachineLogs(machinetest.First), "node.log")); !strings.Contains(log, "containerd answers") {
			return errors.New(log)
		}
		return nil
	})
	eventually(t, "the sandbox image is imported", func() error {
		_, err := os.Stat(filepath.Join(root, "var/lib/muster/imported-pause"))
		return err
	})
	for path, want := range map[string]string{
		"etc/hostname":                  "ip-192-168-64-11.ap-test-1.compute.internal\n",
		"etc/resolv.conf":               "# The VPC's name server, which knows its machines. Pods get the cluster's.\nnameserver 192.168.64.2\nsearch ap-test-1.compute.internal\n",
		"etc/aws/config":                "# Written by muster at every boot. Point AWS_CONFIG_FILE at it.\n[default]\nregion = ap-test-1\nendpoint_url = https://192.168.64.3\nca_bundle = /etc/aws/ca.pem\n",
		"proc/sys/kernel/panic":         "10\n",
		"proc/sys/vm/overcommit_memory": "1\n",
		"home/ran":                      "ran on ip-192-168-64-11.ap-test-1.compute.internal\n",
		"var/log/user-data.log":         "ran on ip-192-168-64-11.ap-test-1.compute.internal\n",
	} {
		if got := maybeRead(filepath.Join(root, path)); got != want {
			t.Errorf("%s on the machine is %q, want %q", path, got, want)
		}
	}
	if now := read(t, "/proc/sys/vm/overcommit_memory"); now != overcommit {
		t.Errorf("the host's vm.overcommit_memory has changed from %q to %q", overcommit, now)
	}
	for _, path := range []string{"usr/muster-was-here", "opt/muster/bin/muster-was-here", "proc/sys/kernel/hostname", "sys/kernel/mm/ksm/run"} {
		if err := os.WriteFile(filepath.Join(root, path), []byte("1"), 0o644); !errors.Is(err, unix.EROFS) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("writing %s on the machine: %v, want a read-only file system", path, err)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "var/log/user-data.log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("what scripts print is open to others: %v, %v", info, err)
	}
	if target, err := os.Readlink(filepath.Join(root, "etc/eks/bootstrap.sh")); err != nil || target != "/opt/muster/bin/muster" {
		t.Errorf("bootstrap.sh is %q, %v", target, err)
	}
	if config := read(t, filepath.Join(root, "etc/kubernetes/kubelet/config.json")); !strings.Contains(config, `"maxPods": 29,`) {
		t.Errorf("an m5.large takes 29 pods; the kubelet's configuration is\n%s", config)
	}
	for _, path := range []string{".host", "run/muster/seed", filepath.Join(".", string(s.dir)), "dev/mem", "dev/vda", "boot"} {
		if _, err := os.Stat(filepath.Join(root, path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the machine sees /%s: %v", path, err)
		}
	}
	for _, namespace := range []string{"cgroup", "ipc", "mnt", "net", "pid", "uts"} {
		own, _ := os.Readlink(filepath.Join("/proc/self/ns", namespace))
		if its, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns", namespace)); err != nil || its == own {
			t.Errorf("the machine shares the host's %s namespace: %v", namespace, err)
		}
	}
	if groups := read(t, filepath.Join("/proc", strconv.Itoa(pid), "cgroup")); strings.Count(groups, cgroupName(s.dir, machinetest.First)) != strings.Count(groups, "\n") {
		t.Errorf("the machine is not in its own control groups:\n%s", groups)
	}
	var stat unix.Stat_t
	if err := unix.Stat(filepath.Join(root, "dev/null"), &stat); err != nil || stat.Rdev != unix.Mkdev(1, 3) || stat.Mode&0o777 != 0o666 {
		t.Errorf("/dev/null on the machine: %+v, %v", stat, err)
	}
}

// A machine that is killed is stopped; launched again it boots with the disk and the address it had. One that is asked
// to stop does so in time.
func TestReboot(t *testing.T) {
	s := newSite(t)
	p := s.provider(t)
	request := machine.LaunchRequest{ID: machinetest.First, UserData: []byte("none")}
	first, err := p.Launch(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	pid, _, err := p.find(machinetest.First)
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join("/proc", strconv.Itoa(pid), "root/home/kept")
	if err := os.WriteFile(kept, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if mounts := s.mounts(t); strings.Count(mounts, "\n") != 2 || !strings.Contains(mounts, "nsfs") || !strings.Contains(mounts, " ext4 /dev/loop") {
		t.Errorf("mounts on the host, want the VPC's namespace and the machine's disk only:\n%s", mounts)
	}
	boot := read(t, filepath.Join("/proc", strconv.Itoa(pid), "root/proc/sys/kernel/random/boot_id"))
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the machine is stopped", func() error {
		if instance, err := p.Get(t.Context(), machinetest.First); err != nil || instance.State != machine.Stopped {
			return fmt.Errorf("%+v, %w", instance, err)
		}
		return nil
	})
	request.UserData = []byte("other")
	again, err := p.Launch(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("the machine has changed (-first +again):\n%s", diff)
	}
	pid, _, err = p.find(machinetest.First)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("/proc", strconv.Itoa(pid), "root")
	if got := read(t, filepath.Join(root, "home/kept")); got != "kept" {
		t.Errorf("the disk was not kept: %q", got)
	}
	if got := read(t, filepath.Join(s.dir.Machine(machinetest.First), machine.UserDataFile)); got != "other" {
		t.Errorf("user data is %q", got)
	}
	if got := read(t, filepath.Join(root, "proc/sys/kernel/random/boot_id")); got == boot {
		t.Error("the second boot has the first one's identity")
	}
	started := time.Now()
	if err := p.Stop(t.Context(), machinetest.First); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(started); took > 4*time.Second {
		t.Errorf("it took %v to shut down", took)
	}
	if instance, err := p.Get(t.Context(), machinetest.First); err != nil || instance.State != machine.Stopped {
		t.Errorf("after Stop: %+v, %v", instance, err)
	}
}

// A machine that boots before there is anybody to ask waits; it is told of new user data, and that alone makes it try
// again; scripts run once in the life of an instance, however often it boots and whatever it is told. That one failed
// keeps the machine from becoming a node, which it reports, until it is told to go on nevertheless.
func TestUserData(t *testing.T) {
	s := newSite(t)
	p := s.provider(t)
	request := machine.LaunchRequest{ID: machinetest.First, UserData: []byte("#!/bin/sh\necho first >>/home/ran\necho no disk\nexit 3\n")}
	if _, err := p.Launch(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	nodeLog := filepath.Join(s.dir.MachineLogs(machinetest.First), "node.log")
	says := func(text string) {
		t.Helper()
		eventually(t, text, func() error {
			if log := read(t, nodeLog); !strings.Contains(log, text) {
				return errors.New(log)
			}
			return nil
		})
	}
	says("does not say who this machine is")
	stop := s.serve(t)
	t.Cleanup(func() { stop() })
	says("exit status 3")
	says("there is no NodeConfig")
	if got, ok := p.Report(machinetest.First); !ok || got.Reason != bootreport.UserDataFailed || !strings.Contains(got.Message, "exit status 3; its last lines: no disk") {
		t.Errorf("the machine reports %+v", got)
	}
	stop() // as if it had been killed; another takes its place
	stop = s.serve(t)
	request.UserData = userDataFor(t, nodeconfig.Instance{UserDataFailurePolicy: nodeconfig.Ignore})
	if _, err := p.Launch(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	says("containerd answers")
	if got, ok := p.Report(machinetest.First); ok {
		t.Errorf("the machine goes on, and reports %+v", got)
	}
	if err := p.Stop(t.Context(), machinetest.First); err != nil {
		t.Fatal(err)
	}
	if err := p.prepareDisk(t.Context(), machine.Record{ID: machinetest.First}); err != nil { // for this test to write there
		t.Fatal(err)
	}
	if err := os.Truncate(nodeLog, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Launch(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	says("containerd answers")
	if got := read(t, filepath.Join(s.dir.Machine(machinetest.First), "root/home/ran")); got != "first\n" {
		t.Errorf("scripts ran: %q", got)
	}
}

// Whenever a service is killed during a launch, the next one can launch the machine or remove every trace of it.
func TestLaunchCutShort(t *testing.T) {
	for _, milliseconds := range []int{5, 15, 25, 40, 60, 80, 120} {
		after := time.Duration(milliseconds) * time.Millisecond
		t.Run(after.String(), func(t *testing.T) {
			s := newSite(t)
			service := exec.Command(filepath.Join(s.binDir, "muster"), "launch", string(s.dir), s.binDir)
			if err := service.Start(); err != nil {
				t.Fatal(err)
			}
			<-time.After(after)
			_ = service.Process.Kill()
			_ = service.Wait()
			p := s.provider(t)
			if after%(10*time.Millisecond) == 0 { // now and then it is not only removed, but launched first
				if _, err := p.Launch(t.Context(), machine.LaunchRequest{ID: machinetest.First, UserData: []byte("none")}); err != nil {
					t.Error(err)
				}
			}
			if err := p.Terminate(t.Context(), machinetest.First); err != nil {
				t.Error(err)
			}
			s.nothingLeft(t, machinetest.First)
		})
	}
}

// What cannot work is said in one line, before anything is made.
func TestNew(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	_, err := New(config(dir, t.TempDir()))
	if err == nil || !strings.Contains(err.Error(), "make build") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without programs: %v", err)
	}
	entries, err := os.ReadDir(string(dir))
	if err != nil || len(entries) > 0 {
		t.Errorf("New left %v, %v", entries, err)
	}
}
