// SPDX-License-Identifier: Apache-2.0

// Package systemdtest has a systemd in memory, which fails on demand.
package systemdtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"muster.dev/muster/internal/platform/systemd"
)

// Fake is a systemd of a test. It finds unit files where they would be below a root, knows what was enabled and
// started, and fails on demand. Like systemd it reads a unit's file when it first hears of the unit, and then again at
// a daemon-reload; unlike systemd it does not start one whose file has changed meanwhile.
type Fake struct {
	// Root is where the host's files are.
	Root string
	// Before is called before something is done, such as "start kubelet.service"; its error is what comes of it.
	Before func(what string) error
	// Started and Stopped are told of a unit that begins to run and one that ends.
	Started, Stopped func(unit string)

	mu    sync.Mutex
	units map[string]systemd.Unit // as loaded
	read  map[string]string       // content of the unit's file when it was read
	calls []string
}

// unitDirs are where units' files are, the first wins (systemd.unit(5)).
func unitDirs() []string {
	return []string{"/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"}
}

// Do is systemctl's.
func (f *Fake) Do(_ context.Context, verb systemd.Verb, units ...string) error {
	if err := systemd.CheckNames(units); err != nil {
		return err
	}
	what := strings.TrimSpace(string(verb) + " " + strings.Join(units, " "))
	if f.Before != nil {
		if err := f.Before(what); err != nil {
			return err
		}
	}
	f.mu.Lock()
	f.calls = append(f.calls, what)
	f.mu.Unlock()
	if verb == systemd.Reload {
		f.mu.Lock()
		f.read = nil
		f.mu.Unlock()
	}
	for _, name := range units {
		if err := f.one(verb, name); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fake) one(verb systemd.Verb, name string) error {
	unit := f.show(name)
	var begins, ends bool
	switch {
	case !unit.Exists() && verb != systemd.Stop && verb != systemd.ResetFailed:
		return fmt.Errorf("systemctl %s: Unit %s not found", verb, name)
	case unit.Outdated && (verb == systemd.Start || verb == systemd.Restart):
		return fmt.Errorf("systemctl %s: the file of %s has changed since it was read", verb, name)
	case verb == systemd.Enable:
		unit.UnitFileState = "enabled"
	case verb == systemd.Disable:
		unit.UnitFileState = "disabled"
	case verb == systemd.Start:
		begins = !unit.Active()
		unit.ActiveState, unit.SubState = "active", "running"
	case verb == systemd.Restart:
		ends, begins = unit.Active(), true
		unit.ActiveState, unit.SubState = "active", "running"
	case verb == systemd.Stop:
		ends = unit.Active()
		unit.ActiveState, unit.SubState = "inactive", "dead"
	}
	f.mu.Lock()
	if f.units == nil {
		f.units = map[string]systemd.Unit{}
	}
	f.units[name] = unit
	f.mu.Unlock()
	if ends && f.Stopped != nil {
		f.Stopped(name)
	}
	if begins && f.Started != nil {
		f.Started(name)
	}
	return nil
}

// Show is systemctl's.
func (f *Fake) Show(_ context.Context, name string) (systemd.Unit, error) {
	if err := systemd.CheckNames([]string{name}); err != nil {
		return systemd.Unit{}, err
	}
	if f.Before != nil {
		if err := f.Before("show " + name); err != nil {
			return systemd.Unit{}, err
		}
	}
	return f.show(name), nil
}

// ShowAll is systemctl's.
func (f *Fake) ShowAll(ctx context.Context, names ...string) ([]systemd.Unit, error) {
	units := make([]systemd.Unit, len(names))
	for i, name := range names {
		unit, err := f.Show(ctx, name)
		if err != nil {
			return nil, err
		}
		units[i] = unit
	}
	return units, nil
}

func (f *Fake) show(name string) systemd.Unit {
	f.mu.Lock()
	defer f.mu.Unlock()
	unit := f.units[name]
	unit.Name, unit.LoadState, unit.FragmentPath, unit.Outdated = name, "not-found", "", false
	if unit.ActiveState == "" {
		unit.ActiveState, unit.SubState = "inactive", "dead"
	}
	for _, dir := range unitDirs() {
		path := filepath.Join(dir, name)
		content, err := os.ReadFile(filepath.Join(f.Root, path))
		if err != nil {
			continue
		}
		before, known := f.read[name]
		if !known {
			if f.read == nil {
				f.read = map[string]string{}
			}
			f.read[name], before = string(content), string(content)
		}
		unit.LoadState, unit.FragmentPath, unit.Outdated = "loaded", path, string(content) != before
		return unit
	}
	if unit.Active() { // it runs on without its file
		unit.LoadState = "loaded"
	}
	return unit
}

// Set makes a unit be in some state.
func (f *Fake) Set(unit systemd.Unit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.units == nil {
		f.units = map[string]systemd.Unit{}
	}
	f.units[unit.Name] = unit
}

// Units are the names of all units that are active or enabled.
func (f *Fake) Units() map[string]systemd.Unit {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[string]systemd.Unit{}
	for name, unit := range f.units {
		if unit.Active() || unit.UnitFileState == "enabled" {
			found[name] = unit
		}
	}
	return found
}

// Calls are all that was done, in order.
func (f *Fake) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}
