// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// Rule says which devices may be opened, for reading and for writing. Device nodes may not be made.
type Rule struct {
	// Block devices are meant, and not character devices.
	Block        bool
	Major, Minor uint32
	// EveryMinor means all devices of the driver.
	EveryMinor bool
}

// String is the rule as version 1 reads it (devices.rst).
func (r Rule) String() string {
	kind, minor := "c", strconv.FormatUint(uint64(r.Minor), 10)
	if r.Block {
		kind = "b"
	}
	if r.EveryMinor {
		minor = "*"
	}
	return fmt.Sprintf("%s %d:%s rw", kind, r.Major, minor)
}

// ErrNone says that a host has no device control, or lets nobody here use it, as a host that is a container may.
var ErrNone = errors.New("control groups here have no device control")

// none says why a host has no device control, if one of the errors means that, and not that something else failed.
func none(err error, means ...error) error {
	if err != nil && slices.ContainsFunc(means, func(one error) bool { return errors.Is(err, one) }) {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	return err
}

// Limit lets the processes of a control group open what the rules say and no other device. The group has no groups
// below it yet. Devices that the host denies by itself, as a host that is a container does, stay denied. After an error
// that is ErrNone the group may open what it could before, and no try to come has another result.
func Limit(cgroups host.Cgroups, name string, allowed []Rule) error {
	if at := slices.IndexFunc(cgroups.Hierarchies, func(h host.Hierarchy) bool { return slices.Contains(h.Options, "devices") }); at >= 0 {
		return limit1(filepath.Join(cgroups.Hierarchies[at].MountPoint, name), allowed)
	}
	if at := slices.IndexFunc(cgroups.Hierarchies, func(h host.Hierarchy) bool { return h.Unified }); at >= 0 {
		return limit2(filepath.Join(cgroups.Hierarchies[at].MountPoint, name), allowed)
	}
	return fmt.Errorf("%w: version 1 without the controller devices, and no version 2 mounted", ErrNone)
}

// limit1 writes the rules of a version 1 group.
func limit1(dir string, allowed []Rule) error {
	if err := write(filepath.Join(dir, "devices.deny"), "a"); err != nil {
		return none(err, unix.EPERM, unix.EACCES, unix.EROFS) // EINVAL would be a group that has groups
	}
	for _, rule := range allowed {
		if err := write(filepath.Join(dir, "devices.allow"), rule.String()); err != nil && !errors.Is(err, unix.EPERM) { // the group above may not, either
			return fmt.Errorf("allowing devices %s: %w", rule, err)
		}
	}
	return nil
}

// write writes one value to a file of the kernel's, in one write.
func write(name, value string) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}
