// SPDX-License-Identifier: Apache-2.0

package serviceunit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/systemd"
)

// directory is where an administrator's units are.
const directory = "/etc/systemd/system"

// wants is where the units are listed that systemd starts at a boot.
const wants = "multi-user.target.wants"

// Manager is systemd, as far as units of installations need it; [systemd.Systemctl] is one.
type Manager interface {
	Do(ctx context.Context, verb systemd.Verb, units ...string) error
}

// Host is where units are written.
type Host struct {
	// Root is the root directory of the host; empty but in tests.
	Root string
	// IsRoot says whether the caller may change the host.
	IsRoot bool
	// Systemd is nil where systemd does not run.
	Systemd Manager
}

// ErrNotRoot is returned to a caller who may not change the host.
var ErrNotRoot = errors.New("units of systemd are root's: run it again as root, for instance by sudo")

// ErrForeign is a file that has a unit's name and is not the unit's.
var ErrForeign = errors.New("the file is not of this installation: move it away, or remove it")

// Path is the path of a unit's file.
func (h Host) Path(u Unit) string { return filepath.Join(h.Root, directory, u.Name()) }

// Installed reports whether there is a unit's file. A file of the same name that is another's is an error.
func (h Host) Installed(u Unit) (bool, error) {
	found, err := h.read(u)
	return found != "", err
}

// read returns the content of a unit's file; "" if there is none.
func (h Host) read(u Unit) (string, error) {
	path := h.Path(u)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return "", nil // a file that the caller cannot see is not the caller's
	}
	if err != nil {
		return "", fmt.Errorf("looking for the unit: %w", err)
	}
	if !info.Mode().IsRegular() { // such as /dev/null, by which a unit is masked
		return "", fmt.Errorf("%s: %w", path, ErrForeign)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the unit: %w", err)
	}
	if !strings.HasPrefix(string(content), u.mark()) {
		return "", fmt.Errorf("%s: %w", path, ErrForeign)
	}
	return string(content), nil
}

// Install writes a unit's file unless it is there as it should be, and has systemd start the unit, now and at each boot.
// It reports whether the file has changed.
func (h Host) Install(ctx context.Context, u Unit) (changed bool, err error) {
	if !h.IsRoot {
		return false, ErrNotRoot
	}
	content, err := u.Render()
	if err != nil {
		return false, err
	}
	before, err := h.read(u)
	if err != nil {
		return false, err
	}
	if changed = before != content; changed {
		if err := os.MkdirAll(filepath.Dir(h.Path(u)), 0o755); err != nil { //nolint:gosec // G301: units are read by all
			return false, fmt.Errorf("making the directory of units: %w", err)
		}
		if err := atomicfile.Write(h.Path(u), []byte(content), 0o644); err != nil {
			return false, err
		}
	}
	if h.Systemd == nil {
		return changed, nil
	}
	return changed, errors.Join(h.Systemd.Do(ctx, systemd.Reload), h.Systemd.Do(ctx, systemd.Enable, u.Name()), h.Systemd.Do(ctx, systemd.Restart, u.Name()))
}

// Uninstall removes a unit, and nothing else: the installation runs on. It reports whether the unit was there.
func (h Host) Uninstall(ctx context.Context, u Unit) (removed bool, err error) {
	installed, err := h.Installed(u)
	switch {
	case err != nil:
		return false, err
	case !h.IsRoot && installed:
		return false, ErrNotRoot
	case !installed:
		return false, nil
	}
	if h.Systemd != nil {
		if err := errors.Join(h.Systemd.Do(ctx, systemd.Stop, u.Name()), h.Systemd.Do(ctx, systemd.Disable, u.Name())); err != nil {
			return false, err
		}
	}
	link := filepath.Join(h.Root, directory, wants, u.Name()) // of a unit that was enabled elsewhere, or before
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("removing what starts the unit at boots: %w", err)
	}
	if err := os.Remove(h.Path(u)); err != nil {
		return false, fmt.Errorf("removing the unit: %w", err)
	}
	if h.Systemd != nil {
		return true, h.Systemd.Do(ctx, systemd.Reload)
	}
	return true, nil
}

// Stopped tells systemd that an installation has been stopped by hand, so that `systemctl start` starts it again.
func (h Host) Stopped(ctx context.Context, u Unit) error {
	installed, err := h.Installed(u)
	switch {
	case errors.Is(err, ErrForeign):
		return nil
	case err != nil || !installed || h.Systemd == nil || !h.IsRoot:
		return err
	}
	return h.Systemd.Do(ctx, systemd.Stop, u.Name())
}
