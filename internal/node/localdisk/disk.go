// SPDX-License-Identifier: Apache-2.0

package localdisk

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Labels by which what this package made is known again. XFS takes 12 bytes.
const (
	arrayName  = "muster"
	arrayPath  = "/dev/md/" + arrayName
	arrayLabel = "muster-raid"
	diskLabel  = "muster-disk" // and a digit
	maxDisks   = 10
)

// state is what is on a disk.
type state struct {
	device string
	blank  bool
	// array tells that it is a member of this package's own array, label that it has a file system of its own.
	array bool
	label string
	// holds is the array, by the name that the kernel has for it, if it is assembled.
	holds string
}

// device is what lsblk says of one.
type device struct {
	Name        string    `json:"name"`
	Type        string    `json:"type"`
	FSType      *string   `json:"fstype"`
	Label       *string   `json:"label"`
	MountPoints []*string `json:"mountpoints"`
	Children    []device  `json:"children"`
}

// look asks what is on a disk, and refuses one that has anything which is not this package's own.
func (c Config) look(ctx context.Context, disk string) (state, error) {
	said, err := c.Run(ctx, "lsblk", "--json", "--paths", "--output=NAME,TYPE,FSTYPE,LABEL,MOUNTPOINTS", disk)
	if err != nil {
		return state{}, fmt.Errorf("asking what is on %s: %w", disk, err)
	}
	s, err := parse(disk, said)
	if err != nil {
		return state{}, fmt.Errorf("spec.instance.localStorage: %w", err)
	}
	return s, nil
}

func parse(disk, said string) (state, error) {
	var answer struct {
		Devices []device `json:"blockdevices"`
	}
	if err := json.Unmarshal([]byte(said), &answer); err != nil {
		return state{}, fmt.Errorf("what lsblk says of %s cannot be read: %w", disk, err)
	}
	if len(answer.Devices) != 1 {
		return state{}, fmt.Errorf("lsblk tells of %d devices, not of %s alone", len(answer.Devices), disk)
	}
	d := answer.Devices[0]
	s := state{device: disk}
	fs, label := text(d.FSType), text(d.Label)
	switch {
	case fs == "linux_raid_member" && (label == arrayName || strings.HasSuffix(label, ":"+arrayName)):
		s.array = true
		for _, child := range d.Children {
			if !strings.HasPrefix(child.Type, "raid") {
				return state{}, inUse(disk, "it holds "+child.Name)
			}
			s.holds = child.Name
		}
		return s, nil
	case len(d.Children) > 0:
		return state{}, inUse(disk, "it holds "+d.Children[0].Name)
	case fs == "xfs" && strings.HasPrefix(label, diskLabel):
		s.label = label
		return s, nil
	case fs != "":
		return state{}, inUse(disk, fmt.Sprintf("it has a %s %q on it", fs, label))
	}
	for _, point := range d.MountPoints {
		if text(point) != "" {
			return state{}, inUse(disk, "it is mounted at "+text(point))
		}
	}
	s.blank = true
	return s, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func inUse(disk, why string) error {
	return fmt.Errorf("disk %s is in use: %s; nothing is formatted that has anything on it: if it may go, run wipefs --all %s, or leave localStorage out", disk, why, disk)
}

// each gives every disk a file system of its own.
func (c Config) each(ctx context.Context, disks []state) error {
	if len(disks) > maxDisks {
		return fmt.Errorf("spec.instance.localStorage: there are %d disks; %d can be mounted each by itself", len(disks), maxDisks)
	}
	taken := map[string]bool{}
	for _, d := range disks {
		if d.array {
			return fmt.Errorf("spec.instance.localStorage: %w", inUse(d.device, "it is part of an array of another strategy"))
		}
		taken[d.label] = true
	}
	var mounts []mount
	next := 0
	for _, d := range disks {
		label := d.label
		if d.blank {
			for label = diskLabel + strconv.Itoa(next); taken[label]; label = diskLabel + strconv.Itoa(next) {
				next++
			}
			taken[label] = true
			if err := c.format(ctx, label, d.device); err != nil {
				return err
			}
		}
		number, err := strconv.Atoi(strings.TrimPrefix(label, diskLabel))
		if err != nil {
			return fmt.Errorf("spec.instance.localStorage: %w", inUse(d.device, fmt.Sprintf("it is called %q", label)))
		}
		mounts = append(mounts, mount{what: "/dev/disk/by-label/" + label, where: fmt.Sprintf("%s/%d", c.mountPath(), number+1)})
	}
	return c.mount(ctx, mounts)
}

// format makes a file system. Without --force (-f), mkfs.xfs refuses a disk with anything on it.
func (c Config) format(ctx context.Context, label, device string) error {
	if _, err := c.Run(ctx, "mkfs.xfs", "-q", "-L", label, device); err != nil {
		return fmt.Errorf("making a file system on %s: %w", device, err)
	}
	c.Say(fmt.Sprintf("made a file system on %s (%s)", device, label))
	return nil
}
