// SPDX-License-Identifier: Apache-2.0

//go:build linux

// These tests make device files, so they need root.
package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

const pod = "0b4c9c2e-0000-4000-8000-000000000001"

// world is a machine with a volume's device, and another device at the path that a container is to have it at.
func world(t *testing.T) (on where, source, there string) {
	t.Helper()
	dir := t.TempDir()
	on = where{uidMap: filepath.Join(dir, "uid_map"), pods: filepath.Join(dir, "pods")}
	source, there = filepath.Join(dir, "published"), filepath.Join(dir, "there")
	volumes := filepath.Join(on.pods, pod, "volumeDevices", "kubernetes.io~csi")
	for _, err := range []error{
		os.WriteFile(on.uidMap, []byte("         0 2013331456      65536\n"), 0o600), os.MkdirAll(volumes, 0o700),
		unix.Mknod(source, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 3))), unix.Mknod(there, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 3))),
		os.Symlink(source, filepath.Join(volumes, "pvc-1")), os.Symlink("/dev/null", filepath.Join(volumes, "pvc-2")), os.Symlink("/nowhere", filepath.Join(volumes, "pvc-3")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return on, source, there
}

// bundle has the specification of a container with a device.
func bundle(t *testing.T, uid string, devices ...specs.LinuxDevice) string {
	t.Helper()
	spec := specs.Spec{
		Version: "1.3.0", Annotations: map[string]string{podUID: uid},
		Mounts: []specs.Mount{{Destination: "/dev", Type: "tmpfs", Source: "tmpfs"}},
		Linux:  &specs.Linux{Devices: devices, Resources: &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}}},
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	raw = append(append([]byte{'{'}, `"unknown":{"kept":1},`...), raw[1:]...)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMountDevices(t *testing.T) {
	on, source, there := world(t)
	disk := func(path string, minor int64) specs.LinuxDevice {
		return specs.LinuxDevice{Path: path, Type: "b", Major: 7, Minor: minor}
	}
	null := specs.LinuxDevice{Path: "/dev/raw-null", Type: "c", Major: 7, Minor: 3}
	for name, c := range map[string]struct {
		uid     string
		devices []specs.LinuxDevice
		ids     string // in place of the machine's
		mounted []string
	}{
		"a volume":                      {uid: pod, devices: []specs.LinuxDevice{null, disk("/dev/raw", 3)}, mounted: []string{"/dev/raw"}},
		"a volume twice":                {uid: pod, devices: []specs.LinuxDevice{disk("/dev/raw", 3), disk("/data", 3)}, mounted: []string{"/dev/raw", "/data"}},
		"another device":                {uid: pod, devices: []specs.LinuxDevice{disk("/dev/raw", 4)}},
		"a device that is there":        {uid: pod, devices: []specs.LinuxDevice{disk(there, 3)}},
		"another pod":                   {uid: "other", devices: []specs.LinuxDevice{disk("/dev/raw", 3)}},
		"no pod":                        {devices: []specs.LinuxDevice{disk("/dev/raw", 3)}},
		"a path in place of a pod":      {uid: "../pods/" + pod, devices: []specs.LinuxDevice{disk("/dev/raw", 3)}},
		"a character device":            {uid: pod, devices: []specs.LinuxDevice{null}},
		"a machine with the host's ids": {uid: pod, devices: []specs.LinuxDevice{disk("/dev/raw", 3)}, ids: "0 0 4294967295\n"},
	} {
		on := on
		if c.ids != "" {
			on.uidMap = filepath.Join(t.TempDir(), "uid_map")
			if err := os.WriteFile(on.uidMap, []byte(c.ids), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		dir := bundle(t, c.uid, c.devices...)
		before, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := mountDevices(dir, on); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		after, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		if c.mounted == nil {
			if string(before) != string(after) {
				t.Errorf("%s: it is changed to %s", name, after)
			}
			continue
		}
		var spec specs.Spec
		if err := json.Unmarshal(after, &spec); err != nil {
			t.Fatal(err)
		}
		var mounted []string
		for _, m := range spec.Mounts[1:] {
			mounted = append(mounted, m.Destination)
			if m.Source != source || m.Type != "bind" || slices.Contains(m.Options, "nodev") {
				t.Errorf("%s: mount %+v", name, m)
			}
		}
		left := len(c.devices) - len(c.mounted)
		if !slices.Equal(mounted, c.mounted) || len(spec.Linux.Devices) != left || len(spec.Linux.Resources.Devices) != 1 || !strings.Contains(string(after), `"unknown":{"kept":1}`) {
			t.Errorf("%s: %s", name, after)
		}
	}
	if err := mountDevices(t.TempDir(), on); err != nil { // runc says it
		t.Error(err)
	}
}

func FuzzChange(f *testing.F) {
	f.Add([]byte(`{"linux":{"devices":[{"type":"b","path":"/dev/raw","major":7,"minor":3}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		changed, err := where{pods: "/nowhere"}.change(raw)
		if changed != nil && !json.Valid(changed) {
			t.Errorf("%s, %v", changed, err)
		}
	})
}

func BenchmarkWithoutDevices(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"x":"`+strings.Repeat("x", 16<<10)+`"}`), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := mountDevices(dir, machine); err != nil {
			b.Fatal(err)
		}
	}
}
