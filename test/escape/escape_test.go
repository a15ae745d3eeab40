// SPDX-License-Identifier: Apache-2.0

//go:build linux

// These tests make namespaces and prizes on this host, which needs root.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/test/escape/prize"
	"muster.dev/muster/test/escape/verdict"
)

// base is the first id of the cells with a user namespace: a range that no installation on this host is likely to have.
const base = 3_000_000_000

// expectations reads what comes of attacks on a machine without a user namespace.
func expectations(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("testdata/root.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		name, expected := fields[0], fields[1]
		if !slices.Contains([]string{"out", "built", "limits", "closed", "either"}, expected) {
			t.Fatalf("testdata/root.txt: %s is %q", name, expected)
		}
		if (expected == "closed" || expected == "either") && len(fields) < 5 {
			t.Errorf("testdata/root.txt: %s is %s without a reason", name, expected)
		}
		if all[name] != "" {
			t.Errorf("testdata/root.txt: %s is there twice", name)
		}
		all[name] = expected
	}
	return all
}

// agrees reports whether an outcome is what is expected.
func agrees(expected string, outcome verdict.Outcome, unlimited bool) bool {
	switch expected {
	case "out":
		return outcome == verdict.Out
	case "built":
		return outcome == verdict.Out || outcome == verdict.NotHere
	case "limits":
		return outcome == verdict.Out == unlimited
	case "closed":
		return outcome.Safe()
	}
	return outcome != verdict.Unclear
}

// Every attack is shown to get out of a machine without a user namespace, or is listed with the reason why none would.
func TestRootOfTheHostGetsOut(t *testing.T) {
	expected := expectations(t)
	planted, program := plant(t)
	before := hostState(t, planted)
	all := cell{}.run(t, planted, program)
	have, err := startedWith()
	if err != nil {
		t.Fatal(err)
	}
	proven := map[string]bool{}
	for _, v := range all {
		t.Logf("%-26s %-9s %s (%d ms)", v.Attack, v.Outcome, v.Why, v.Millis)
		if !agrees(expected[v.Attack], v.Outcome, have.has(unix.CAP_SYS_RESOURCE)) {
			t.Errorf("%s is %q, testdata/root.txt says %q: %s", v.Attack, v.Outcome, expected[v.Attack], v.Why)
		}
		if v.Token != "" && v.Token != planted.Token {
			t.Errorf("%s says that it read %q, which is not the token", v.Attack, v.Token)
		}
		if v.Outcome == verdict.Out && strings.Contains(v.Why, "and made "+v.Attack) {
			proven[v.Attack+".all"] = true
		}
		delete(expected, v.Attack)
	}
	for name := range expected {
		t.Errorf("testdata/root.txt names %s, which was not tried", name)
	}
	marks, err := planted.Marks()
	if err != nil {
		t.Fatal(err)
	}
	if claimed := slices.Sorted(maps.Keys(proven)); !slices.Equal(marks, claimed) {
		t.Errorf("the host has files %v of attacks, which say that they made %v", marks, claimed)
	}
	if after := hostState(t, planted); before != after {
		t.Errorf("the host was\n%s\nand is\n%s", before, after)
	}
}

// In a user namespace with a range of ids none of them gets out, whatever rights it has there.
func TestNobodyGetsOutOfAUserNamespace(t *testing.T) {
	planted, program := plant(t)
	before := hostState(t, planted)
	const rights = "plain,cap_dac_read_search,cap_sys_admin,nested,all"
	all := cell{Users: true, Base: base}.run(t, planted, program, "-rights="+rights)
	for _, v := range all {
		t.Logf("%-26s %-20s %-9s %s (%d ms)", v.Attack, v.Rights, v.Outcome, v.Why, v.Millis)
		if !v.Outcome.Safe() {
			t.Errorf("%s with %s is %q: %s", v.Attack, v.Rights, v.Outcome, v.Why)
		}
	}
	if want := len(attacks()) * len(strings.Split(rights, ",")); len(all) != want {
		t.Errorf("%d verdicts, want %d", len(all), want)
	}
	if marks, err := planted.Marks(); err != nil || len(marks) > 0 {
		t.Errorf("the host has files %v of attacks (%v)", marks, err)
	}
	if after := hostState(t, planted); before != after {
		t.Errorf("the host was\n%s\nand is\n%s", before, after)
	}
}

// Holes that a user namespace alone leaves open are seen, each by itself.
func TestWhatAUserNamespaceLeavesOpen(t *testing.T) {
	planted, program := plant(t)
	for name, c := range map[string]struct {
		cell      cell
		out, held []string
	}{
		"no filter":            {cell: cell{NoFilter: true}, out: []string{"io-uring", "vsock"}},
		"the starter's keys":   {cell: cell{NoKeyring: true}, out: []string{"session-keyring"}, held: []string{"user-keyring"}},
		"no limits":            {cell: cell{NoLimits: true}, out: []string{"memory", "processes"}},
		"the host's disk":      {cell: cell{DiskOfHost: true}, out: []string{"disk-filled"}},
		"the owner's limits":   {cell: cell{Owner: planted.Map.HostUID}, out: []string{"inotify"}, held: []string{"key-quota"}},
		"the kernel's objects": {cell: cell{Objects: true}, out: []string{"loop-files"}, held: []string{"kernel-objects"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.cell.Users, c.cell.Base = true, base
			for _, v := range c.cell.run(t, planted, program, "-only="+strings.Join(slices.Concat(c.out, c.held), ",")) {
				if slices.Contains(c.held, v.Attack) != v.Outcome.Safe() && v.Outcome != verdict.NotHere {
					t.Errorf("%s is %q: %s", v.Attack, v.Outcome, v.Why)
				}
			}
		})
	}
}

// One capability is one right: rows of what was tried on machines without a user namespace.
func TestRightsDecide(t *testing.T) {
	planted, program := plant(t)
	const rights = "plain,cap_dac_read_search,cap_sys_admin,cap_mknod,cap_syslog,cap_sys_time"
	got := map[string][]string{}
	all := cell{}.run(t, planted, program, "-rights="+rights, "-only=file-handle,core-pattern,user-keyring,volume-device,kernel-log,clock")
	for _, v := range all {
		t.Logf("%-16s %-20s %-9s %s", v.Attack, v.Rights, v.Outcome, v.Why)
		if v.Outcome == verdict.Out {
			got[v.Attack] = append(got[v.Attack], v.Rights)
		}
		if v.Outcome == verdict.NotHere { // the disk of this host is another kind
			delete(got, v.Attack)
		}
	}
	for attack, want := range map[string][]string{
		"file-handle":   {"cap_dac_read_search"},
		"core-pattern":  {"cap_sys_admin"},
		"user-keyring":  strings.Split(rights, ","),
		"volume-device": {"cap_mknod"},
		"kernel-log":    {"cap_syslog"},
		"clock":         {"cap_sys_time"},
	} {
		if got[attack] != nil && !slices.Equal(got[attack], want) {
			t.Errorf("%s gets out with %v, want %v", attack, got[attack], want)
		}
	}
	if len(got) < 4 {
		t.Errorf("only %v got out", got)
	}
}

// hostState is what attacks change on the host, or could leave there.
func hostState(t *testing.T, planted *prize.Planted) string {
	t.Helper()
	var text strings.Builder
	for _, path := range []string{
		planted.Map.HostFile, "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/poweroff_cmd", "/proc/sys/kernel/hostname", "/proc/sys/kernel/panic",
		"/proc/sys/kernel/keys/root_maxkeys", "/proc/sys/fs/inotify/max_user_instances", "/proc/sys/vm/overcommit_memory", "/proc/self/cgroup", "/proc/swaps",
		filepath.Join(planted.Shared, "token"), filepath.Join(planted.Shared, "setuid"),
	} {
		raw, err := os.ReadFile(path)
		fmt.Fprintf(&text, "%s: %q %v\n", path, raw, err != nil)
	}
	for _, pattern := range []string{planted.Shared + "/*", planted.Shared + "/.*", planted.Volume + "/*", planted.Volume + "/.*", "/sys/block/loop*/loop/backing_file"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&text, pattern, found)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "escape") || strings.Contains(line, planted.Volume) {
			text.WriteString(line)
		}
	}
	ring := make([]byte, 4096)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, unix.KEY_SPEC_USER_KEYRING, ring, 0)
	fmt.Fprintln(&text, "keys of the user:", n/4, err)
	return text.String()
}
