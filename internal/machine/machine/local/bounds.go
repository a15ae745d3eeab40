// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"io/fs"
	"path/filepath"

	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/statedir"
)

// machinesGroup is the control group of the machines of this host, of all state directories.
const machinesGroup = "/muster"

// HostBounds is how much memory and how many processes this host has, or the container that it is.
func HostBounds() (capacity.Bounds, error) {
	cgroups, err := host.ReadCgroups()
	if err != nil {
		return capacity.Bounds{}, err
	}
	return hostBounds(cgroups)
}

func hostBounds(cgroups host.Cgroups) (capacity.Bounds, error) {
	memory, err := host.Memory()
	if err != nil {
		return capacity.Bounds{}, err
	}
	pids, err := host.PIDs()
	if err != nil {
		return capacity.Bounds{}, err
	}
	within := cgroups.Within()
	return capacity.Bounds{Memory: lesser(memory, within.Memory), PIDs: lesser(pids, within.PIDs)}, nil
}

// lesser is the lesser of a figure and a bound. A bound of 0 means no bound.
func lesser(figure, bound int64) int64 {
	if bound == 0 {
		return figure
	}
	return min(figure, bound)
}

// limitsOf are the bounds of the control group of a machine of an instance type.
func limitsOf(bounds capacity.Bounds, instanceType string) host.Limits {
	own := bounds.Machine(instanceType)
	return host.Limits{CPUs: shapeOf(instanceType).CPUs, Memory: own.Memory, PIDs: own.PIDs}
}

// limit bounds the control group of a machine, and returns the bounds with the shape that the machine sees.
func limit(p *Provider, record machine.Record) (host.Limits, shape, error) {
	limits, looks := limitsOf(p.bounds, record.Type), shapeOf(record.Type)
	if err := p.cgroups.Limit(p.cgroup(record.ID), limits); err != nil {
		return limits, looks, err
	}
	var err error
	if looks.RunsOn, err = p.cgroups.CPUs(p.cgroup(record.ID)); errors.Is(err, fs.ErrNotExist) { // without the controller it may run on any
		err = nil
	}
	return limits, looks, err
}

// together are the bounds of all machines of a host.
func together(bounds capacity.Bounds) host.Limits {
	all := bounds.Machines()
	return host.Limits{Memory: all.Memory, PIDs: all.PIDs}
}

// boundTogether sets the bound of all machines of this host together. If they use more already, the bound is not set,
// and a warning is logged.
func (p *Provider) boundTogether() error {
	err := p.cgroups.Limit(machinesGroup, together(p.bounds))
	if errors.Is(err, host.ErrInUse) {
		p.config.Log.Warn("the machines of this host are not bounded together", "error", err)
		return nil
	}
	return err
}

// Bound gives machines of a state directory that run already, as after an upgrade, the bounds of memory and processes
// that they would boot with. A machine that uses more, or all together if they do, is left as it is, and the error is
// [host.ErrInUse]. All others are bounded nevertheless.
func Bound(dir statedir.Dir) error {
	if !Possible() {
		return nil
	}
	running, err := Running(dir)
	if err != nil || len(running) == 0 {
		return err
	}
	cgroups, err := host.ReadCgroups()
	if err != nil {
		return err
	}
	bounds, err := hostBounds(cgroups)
	if err != nil {
		return err
	}
	errs := []error{cgroups.Limit(machinesGroup, together(bounds))}
	for id := range running {
		record, err := machine.ReadRecord(filepath.Join(dir.Machine(id), machine.RecordFile))
		if err != nil {
			continue // its record is damaged, which is told elsewhere
		}
		limits := limitsOf(bounds, record.Type)
		limits.CPUs = 0 // it has processors
		err = cgroups.Limit(cgroupName(dir, id), limits)
		if !errors.Is(err, fs.ErrNotExist) { // it has ended meanwhile
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
