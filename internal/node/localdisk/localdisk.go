// SPDX-License-Identifier: Apache-2.0

package localdisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"muster.dev/muster/internal/node/nodeconfig"
)

// The strategies (amazon-eks-ami, nodeadm/api/v1alpha1), and where EKS's nodes have what they mount.
const (
	RAID0  = "RAID0"
	RAID10 = "RAID10"
	Mount  = "Mount"

	defaultMountPath = "/mnt/k8s-disks"
)

// Run runs a program to its end and returns what it wrote to its standard output.
type Run func(ctx context.Context, program string, args ...string) (string, error)

// Config says what to do, and by what.
type Config struct {
	// Root is put before all paths; it is empty but in tests.
	Root    string
	Storage nodeconfig.LocalStorage
	// Systemd tells that systemd runs here. Without it, disks cannot be mounted at every boot.
	Systemd bool
	Run     Run
	Say     func(string)
}

// Wanted reports whether a NodeConfig asks for any of it.
func Wanted(s nodeconfig.LocalStorage) bool { return s.Strategy != "" }

// Setup does it. A setup that is there already is left as it is; on a machine without such disks there is nothing to
// do, and that is said.
func Setup(ctx context.Context, c Config) error {
	if !Wanted(c.Storage) {
		return nil
	}
	disks, err := c.detect()
	if err != nil {
		return err
	}
	if len(disks) == 0 {
		c.Say("spec.instance.localStorage: this machine has no instance-store disks, so there is nothing to do")
		return nil
	}
	if !c.Systemd {
		return fmt.Errorf("spec.instance.localStorage: this machine has %d instance-store disks, and no systemd to mount them at every boot: leave it out", len(disks))
	}
	if err := checkMountPath(c.mountPath()); err != nil {
		return err
	}
	var states []state
	for _, disk := range disks {
		s, err := c.look(ctx, disk)
		if err != nil {
			return err
		}
		states = append(states, s)
	}
	switch c.Storage.Strategy {
	case RAID0, RAID10:
		return c.array(ctx, states)
	case Mount:
		return c.each(ctx, states)
	}
	return fmt.Errorf("spec.instance.localStorage.strategy: %q is none of %s, %s and %s", c.Storage.Strategy, RAID0, RAID10, Mount)
}

// byID is how EC2's instance-store disks are called; partOf is a part of one.
const byID = "/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*"

var partOf = regexp.MustCompile(`-part[0-9]+$`)

// detect lists the disks, each once, though it has several names.
func (c Config) detect() ([]string, error) {
	names, err := filepath.Glob(filepath.Join(c.Root, byID))
	if err != nil {
		return nil, fmt.Errorf("looking for instance-store disks: %w", err)
	}
	var disks []string
	for _, name := range names {
		if partOf.MatchString(name) {
			continue
		}
		device, err := filepath.EvalSymlinks(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking for instance-store disks: %w", err)
		}
		device = strings.TrimPrefix(device, strings.TrimSuffix(c.Root, "/"))
		if !slices.Contains(disks, device) {
			disks = append(disks, device)
		}
	}
	slices.Sort(disks)
	return disks, nil
}

func (c Config) mountPath() string {
	if c.Storage.MountPath == "" {
		return defaultMountPath
	}
	return filepath.Clean(c.Storage.MountPath)
}

func (c Config) disabled(mount string) bool { return slices.Contains(c.Storage.DisabledMounts, mount) }
