// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

func TestRuleAsVersion1ReadsIt(t *testing.T) {
	for want, rule := range map[string]Rule{
		"c 1:3 rw":    {Major: 1, Minor: 3},
		"c 136:* rw":  {Major: 136, EveryMinor: true},
		"b 7:0 rw":    {Block: true, Major: 7},
		"b 259:77 rw": {Block: true, Major: 259, Minor: 77},
	} {
		if got := rule.String(); got != want {
			t.Errorf("%+v is %q, want %q", rule, got, want)
		}
	}
}

func TestNoDeviceControl(t *testing.T) {
	without := host.Cgroups{Hierarchies: []host.Hierarchy{{MountPoint: t.TempDir(), Options: []string{"memory"}}}}
	if err := Limit(without, "/a", nil); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
	for _, err := range []error{unix.EPERM, unix.EACCES, unix.EROFS} {
		err := &os.PathError{Op: "write", Path: "devices.deny", Err: err}
		if got := none(err, unix.EPERM, unix.EACCES, unix.EROFS); !errors.Is(got, ErrNone) || !errors.Is(got, err) {
			t.Errorf("a host that does not let the group be limited: %v", got)
		}
	}
	if none(nil, lacking()...) != nil {
		t.Error("no error is one")
	}
}

// A host that has device control and fails to use it is not one without.
func TestDeviceControlFails(t *testing.T) {
	for name, h := range map[string]host.Hierarchy{
		"version 1": {MountPoint: t.TempDir(), Options: []string{"devices"}},
		"version 2": {MountPoint: t.TempDir(), Unified: true},
	} {
		err := Limit(host.Cgroups{Hierarchies: []host.Hierarchy{h}}, "/not-there", nil)
		if h.Unified && errors.Is(err, ErrNone) && os.Geteuid() != 0 { // who may not load the program comes no further
			continue
		}
		if err == nil || errors.Is(err, ErrNone) {
			t.Errorf("%s: a group that is not there: %v", name, err)
		}
	}
	for _, err := range []error{unix.ENOENT, unix.ENOMEM, unix.EMFILE, unix.EACCES} {
		if got := none(err, lacking()...); errors.Is(got, ErrNone) || !errors.Is(got, err) {
			t.Errorf("%v is %v", err, got)
		}
	}
}

// A process in a real group of each version that the host has opens what is allowed, whatever the modes of the others
// are.
func TestLimitHere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("control groups and device files are made by root")
	}
	groups, err := host.ReadCgroups()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, h := range groups.Hierarchies {
		if h.Unified || slices.Contains(h.Options, "devices") {
			tried++
			t.Run(strings.Join(append(h.Options, filepath.Base(h.MountPoint)), " "), func(t *testing.T) { limitHere(t, host.Cgroups{Hierarchies: []host.Hierarchy{h}}) })
		}
	}
	if tried == 0 {
		t.Skip(ErrNone)
	}
}

func limitHere(t *testing.T, groups host.Cgroups) {
	t.Helper()
	for name, test := range map[string]struct {
		allowed []Rule
		opens   []string
	}{
		"one":                   {[]Rule{{Major: 1, Minor: 3}}, []string{"null"}},
		"all of a driver":       {[]Rule{{Block: true, Major: 7, EveryMinor: true}, {Major: 1, EveryMinor: true}}, []string{"null", "zero", "full"}},
		"no block devices only": {[]Rule{{Block: true, Major: 1, EveryMinor: true}, {Major: 1, Minor: 7}}, []string{"full"}},
		"none":                  {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := opened(t, groups, test.allowed); !slices.Equal(got, test.opens) {
				t.Errorf("opened %q, want %q", got, test.opens)
			}
		})
	}
}

// opened are the devices that a process in a group with these rules opens. It says, too, if it made one.
func opened(t *testing.T, groups host.Cgroups, allowed []Rule) []string {
	t.Helper()
	const name = "/muster-devices-test/a"
	t.Cleanup(func() {
		if err := groups.Remove(name, 5*time.Second); err != nil {
			t.Error(err)
		}
	})
	if err := groups.Create(name); err != nil {
		t.Fatal(err)
	}
	if err := Limit(groups, name, allowed); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, node := range []struct {
		name         string
		major, minor uint32
	}{{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"fuse", 10, 229}} {
		if err := unix.Mknod(filepath.Join(dir, node.name), unix.S_IFCHR|0o666, int(unix.Mkdev(node.major, node.minor))); err != nil {
			t.Skip("this host lets nobody make device files:", err)
		}
	}
	inside := exec.CommandContext(t.Context(), "sh", "-c", `read go; for f in null zero full fuse; do (: <>"$f") 2>&- && echo "$f"; done; mknod made c 1 3 2>&- && echo made`)
	inside.Dir = dir
	start, err := inside.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	inside.Stdout = &out
	if err := inside.Start(); err != nil {
		t.Fatal(err)
	}
	if err := groups.Enter(name, inside.Process.Pid); err != nil {
		t.Error(err)
	}
	_ = start.Close()
	_ = inside.Wait() // it ends with an error if a device is refused
	return strings.Fields(out.String())
}
