// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Fake is a systemd of a test. It finds unit files where they would be below a root, knows what was enabled and started, and fails
// on demand.
type Fake struct {
	// Root is where the host's files are.
	Root string
	// Before is called before something is done, such as "start kubelet.service"; its error is what comes of it.
	Before func(what string) error
	// Started and Stopped are told of a unit that begins to run and one that ends.
	Started, Stopped func(unit string)

	mu     sync.Mutex
	units  map[string]Unit // as loaded
	loaded map[string]bool // a unit file was there at the last daemon-reload
	calls  []string
}

// unitDirs are where units' files are, the first wins (systemd.unit(5)).
func unitDirs() []string {
	return []string{"/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"}
}

// Do is systemctl's.
func (f *Fake) Do(_ context.Context, verb Verb, units ...string) error {
	if err := checkNames(units); err != nil {
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
	if verb == Reload {
		f.reload()
	}
	for _, name := range units {
		if err := f.one(verb, name); err != nil {
			return err
		}
	}
	return nil
}

// reload finds the unit files that there are now.
func (f *Fake) reload() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded = map[string]bool{}
	for _, dir := range unitDirs() {
		paths, _ := filepath.Glob(filepath.Join(f.Root, dir, "*.*")) // the pattern is right
		for _, path := range paths {
			f.loaded[filepath.Base(path)] = true
		}
	}
}

func (f *Fake) one(verb Verb, name string) error {
	unit := f.show(name)
	var begins, ends bool
	switch {
	case !unit.Exists() && (verb != Enable || !f.hasFile(name)) && verb != Stop && verb != ResetFailed:
		return fmt.Errorf("systemctl %s: Unit %s not found", verb, name)
	case verb == Enable:
		unit.UnitFileState = "enabled"
	case verb == Disable:
		unit.UnitFileState = "disabled"
	case verb == Start:
		begins = !unit.Active()
		unit.ActiveState, unit.SubState = "active", "running"
	case verb == Restart:
		ends, begins = unit.Active(), true
		unit.ActiveState, unit.SubState = "active", "running"
	case verb == Stop:
		ends = unit.Active()
		unit.ActiveState, unit.SubState = "inactive", "dead"
	}
	f.mu.Lock()
	if f.units == nil {
		f.units = map[string]Unit{}
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
func (f *Fake) Show(_ context.Context, name string) (Unit, error) {
	if err := checkNames([]string{name}); err != nil {
		return Unit{}, err
	}
	if f.Before != nil {
		if err := f.Before("show " + name); err != nil {
			return Unit{}, err
		}
	}
	return f.show(name), nil
}

func (f *Fake) show(name string) Unit {
	f.mu.Lock()
	defer f.mu.Unlock()
	unit := f.units[name]
	unit.Name, unit.LoadState, unit.FragmentPath = name, "not-found", ""
	if unit.ActiveState == "" {
		unit.ActiveState, unit.SubState = "inactive", "dead"
	}
	for _, dir := range unitDirs() {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(filepath.Join(f.Root, path)); err == nil && f.loaded[name] {
			unit.LoadState, unit.FragmentPath = "loaded", path
			return unit
		}
	}
	if unit.Active() { // it runs on without its file
		unit.LoadState = "loaded"
	}
	return unit
}

// hasFile tells whether there is a unit's file, loaded or not.
func (f *Fake) hasFile(name string) bool {
	for _, dir := range unitDirs() {
		if _, err := os.Lstat(filepath.Join(f.Root, dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Set makes a unit be in some state.
func (f *Fake) Set(unit Unit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.units == nil {
		f.units = map[string]Unit{}
	}
	f.units[unit.Name] = unit
}

// Units are the names of all units that are active or enabled.
func (f *Fake) Units() map[string]Unit {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[string]Unit{}
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
