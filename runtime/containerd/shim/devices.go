// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/pkg/oci"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// podUID is the annotation in which containerd's CRI says of which pod a container is (containerd,
// internal/cri/annotations).
const podUID = "io.kubernetes.cri.sandbox-uid"

// blockDevice is how a specification that containerd has written begins to speak of a block device. Others are not
// read.
var blockDevice = []byte(`"type":"b"`)

// where is where things are found on a machine.
type where struct {
	uidMap string // says whether the machine has a user namespace of its own
	pods   string // has the devices of volumes, as the kubelet maps them: UID/volumeDevices/PLUGIN/VOLUME
}

var machine = where{uidMap: "/proc/self/uid_map", pods: "/var/lib/kubelet/pods"}

// mountDevices has the raw block volumes of a bundle's container mounted from where the kubelet has them, on a machine
// that cannot make devices.
func mountDevices(bundle string, on where) error {
	path := filepath.Join(bundle, oci.ConfigFilename)
	raw, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(raw, blockDevice) || !on.ownIDs() {
		return nil //nolint:nilerr // runc says it better
	}
	changed, err := on.change(raw)
	if err != nil {
		return fmt.Errorf("mounting block devices: %w", err)
	}
	if changed == nil {
		return nil
	}
	return os.WriteFile(path, changed, 0o600)
}

// ownIDs reports whether the machine has a user namespace of its own (user_namespaces(7)): the first one maps every id
// to itself.
func (w where) ownIDs() bool {
	raw, err := os.ReadFile(w.uidMap)
	return err == nil && !slices.Equal(strings.Fields(string(raw)), []string{"0", "0", "4294967295"})
}

// change returns a specification with mounts in place of devices that are found elsewhere on the machine, or nil if
// there is none. All other parts of it stay as they are, rules for devices too.
func (w where) change(raw []byte) ([]byte, error) {
	var of specs.Spec
	if err := json.Unmarshal(raw, &of); err != nil || of.Linux == nil {
		return nil, err
	}
	sources := w.sources(of.Annotations[podUID])
	var devices []specs.LinuxDevice
	mounts := of.Mounts
	for _, device := range of.Linux.Devices {
		source := sources[unix.Mkdev(uint32(device.Major), uint32(device.Minor))]
		if device.Type != "b" || source == "" || isBlock(device.Path, device) {
			devices = append(devices, device)
			continue
		}
		mounts = append(mounts, specs.Mount{Destination: device.Path, Type: "bind", Source: source, Options: []string{"bind", "private", "nosuid", "noexec"}})
	}
	if len(mounts) == len(of.Mounts) {
		return nil, nil
	}
	return replace(raw, mounts, devices)
}

// sources are the block devices of a pod's volumes, by their numbers.
func (w where) sources(uid string) map[uint64]string {
	all := map[uint64]string{}
	if uid == "" || uid == "." || uid == ".." || strings.Contains(uid, "/") {
		return all
	}
	plugins := filepath.Join(w.pods, uid, "volumeDevices")
	for _, plugin := range names(plugins) {
		for _, volume := range names(filepath.Join(plugins, plugin)) {
			path, err := filepath.EvalSymlinks(filepath.Join(plugins, plugin, volume)) // it is a link to the device
			if err != nil {
				continue
			}
			var is unix.Stat_t
			if err := unix.Lstat(path, &is); err == nil && is.Mode&unix.S_IFMT == unix.S_IFBLK {
				all[is.Rdev] = path
			}
		}
	}
	return all
}

func names(dir string) (all []string) {
	entries, _ := os.ReadDir(dir) // pods without such volumes have none
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

// isBlock reports whether the machine has a device at a path: runc mounts it then.
func isBlock(path string, device specs.LinuxDevice) bool {
	var is unix.Stat_t
	return unix.Lstat(path, &is) == nil && is.Mode&unix.S_IFMT == unix.S_IFBLK && is.Rdev == unix.Mkdev(uint32(device.Major), uint32(device.Minor))
}

// replace writes mounts and devices into a specification, and leaves what this program does not know as it was.
func replace(raw []byte, mounts []specs.Mount, devices []specs.LinuxDevice) ([]byte, error) {
	var whole, linux map[string]json.RawMessage
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(whole["linux"], &linux); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		in    map[string]json.RawMessage
		name  string
		value any
	}{{linux, "devices", devices}, {whole, "linux", linux}, {whole, "mounts", mounts}} {
		text, err := json.Marshal(part.value)
		if err != nil {
			return nil, err
		}
		part.in[part.name] = text
	}
	return json.Marshal(whole)
}
