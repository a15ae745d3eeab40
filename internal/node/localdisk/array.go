// SPDX-License-Identifier: Apache-2.0

package localdisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// leastOfRAID10 is what EKS's nodes ask for, too: with fewer, a disk that fails takes the array along.
const leastOfRAID10 = 4

// array makes one array of all disks, and has the node's programs keep their data on it.
func (c Config) array(ctx context.Context, disks []state) error {
	level := "0"
	if c.Storage.Strategy == RAID10 {
		level = "10"
		if len(disks) < leastOfRAID10 {
			return fmt.Errorf("spec.instance.localStorage.strategy: RAID10 needs %d disks, and this machine has %d: use RAID0 or Mount", leastOfRAID10, len(disks))
		}
	}
	binds := c.binds()
	for _, b := range binds { // before anything is changed
		if err := c.free(ctx, b.where); err != nil {
			return err
		}
	}
	blank, members, path := 0, 0, ""
	devices := make([]string, 0, len(disks))
	for _, d := range disks {
		if d.label != "" {
			return fmt.Errorf("spec.instance.localStorage: %w", inUse(d.device, "it has a file system of another strategy"))
		}
		if d.blank {
			blank++
		} else {
			members++
			path = d.holds
		}
		devices = append(devices, d.device)
	}
	switch {
	case members > 0 && blank > 0:
		return fmt.Errorf("spec.instance.localStorage: %d disks are in an array already and %d are not: see mdadm --detail %s, and add them or wipe all", members, blank, arrayPath)
	case blank > 0:
		args := append([]string{"--create", arrayPath, "--run", "--force", "--level=" + level, "--name=" + arrayName, "--raid-devices=" + strconv.Itoa(len(devices))}, devices...)
		if _, err := c.Run(ctx, "mdadm", args...); err != nil {
			return fmt.Errorf("making an array: %w", err)
		}
		path = arrayPath
		c.Say(fmt.Sprintf("made an array (RAID%s) of %s", level, strings.Join(devices, ", ")))
	case path == "":
		if _, err := c.Run(ctx, "mdadm", append([]string{"--assemble", arrayPath}, devices...)...); err != nil {
			return fmt.Errorf("assembling the array: %w", err)
		}
		path = arrayPath
	}
	said, err := c.Run(ctx, "lsblk", "--noheadings", "--nodeps", "--output=FSTYPE,LABEL", path)
	if err != nil {
		return fmt.Errorf("asking what is on %s: %w", path, err)
	}
	switch on := strings.Join(strings.Fields(said), " "); on {
	case "": // killed in between, or new
		if err := c.format(ctx, arrayLabel, path); err != nil {
			return err
		}
	case "xfs " + arrayLabel:
	default:
		return fmt.Errorf("spec.instance.localStorage: %w", inUse(path, "it has "+on+" on it"))
	}
	return c.mount(ctx, append([]mount{{what: "/dev/disk/by-label/" + arrayLabel, where: c.arrayMount()}}, binds...))
}

func (c Config) arrayMount() string { return filepath.Join(c.mountPath(), "0") }

// binds are the directories of the node's programs that go onto the array. Muster has no SOCI snapshotter.
func (c Config) binds() []mount {
	base := c.arrayMount()
	all := []mount{{what: base + "/kubelet", where: "/var/lib/kubelet", bind: true}}
	if !c.disabled("Containerd") {
		all = append(all, mount{what: base + "/containerd", where: "/var/lib/containerd", bind: true})
	}
	if !c.disabled("PodLogs") {
		all = append(all, mount{what: base + "/pods", where: "/var/log/pods", bind: true})
	}
	return all
}

// free refuses to hide what is in a directory.
func (c Config) free(ctx context.Context, dir string) error {
	if c.mounted(ctx, dir) {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(c.Root, dir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("looking at %s: %w", dir, err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("spec.instance.localStorage: %s is not empty, and would be hidden by the disk: do this before the machine is a node, or move it away", dir)
	}
	return nil
}
