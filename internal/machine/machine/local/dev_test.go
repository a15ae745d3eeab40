// SPDX-License-Identifier: Apache-2.0

package local

import (
	"log/slog"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/platform/devicerules"
	"muster.dev/muster/internal/platform/host"
)

// A machine that cannot be kept from devices is not launched, unless the host has no device control for anybody.
func TestLimitDevicesFails(t *testing.T) {
	for name, test := range map[string]struct {
		of    []host.Hierarchy
		fails bool
	}{
		"no device control":          {nil, false},
		"the group is not there":     {[]host.Hierarchy{{MountPoint: t.TempDir(), Options: []string{"devices"}}}, true},
		"another controller than it": {[]host.Hierarchy{{MountPoint: t.TempDir(), Options: []string{"memory"}}}, false},
	} {
		if err := limitDevices(host.Cgroups{Hierarchies: test.of}, "machine", slog.New(slog.DiscardHandler)); (err != nil) != test.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever nodes a machine comes by, its control group opens the devices that it may have and no others.
func TestDeviceRules(t *testing.T) {
	p, _ := launchIsolated(t)
	if !slices.ContainsFunc(p.cgroups.Hierarchies, func(h host.Hierarchy) bool { return h.Unified || slices.Contains(h.Options, "devices") }) {
		t.Skip("this host has no rules of devices:", devicerules.ErrNone)
	}
	dir := t.TempDir()
	nodes := map[string]struct {
		mode, major, minor uint32
		refused            bool
	}{
		"null":  {unix.S_IFCHR, 1, 3, false},
		"full":  {unix.S_IFCHR, 1, 7, false},
		"mem":   {unix.S_IFCHR, 1, 1, true},
		"kmsg":  {unix.S_IFCHR, 1, 11, true},
		"loops": {unix.S_IFCHR, 10, 237, true},
		"disk":  {unix.S_IFBLK, 8, 0, true},
		"nvme":  {unix.S_IFBLK, 259, 0, true},
	}
	for name, node := range nodes {
		if err := unix.Mknod(filepath.Join(dir, name), node.mode|0o600, int(unix.Mkdev(node.major, node.minor))); err != nil {
			t.Skip("this host lets nobody make device files:", err)
		}
	}
	names := slices.Sorted(maps.Keys(nodes))
	inside := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `read go; for f; do echo "$f $( (: <"$f") 2>&1)"; done; mknod made c 1 3 2>&- && echo made`, "sh"}, names...)...)
	inside.Dir, inside.Env = dir, []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}
	start, err := inside.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	inside.Stdout = &out
	if err := inside.Start(); err != nil {
		t.Fatal(err)
	}
	if err := p.cgroups.Enter(p.cgroup(machinetest.First), inside.Process.Pid); err != nil {
		t.Error(err)
	}
	_ = start.Close()
	_ = inside.Wait() // mknod fails
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(names) {
		t.Fatalf("it printed %q", lines)
	}
	for i, name := range names {
		if refused := strings.HasSuffix(lines[i], "Operation not permitted"); refused != nodes[name].refused {
			t.Errorf("%s: refused %t, want %t", lines[i], refused, nodes[name].refused)
		}
	}
}
