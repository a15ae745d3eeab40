// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"muster.dev/muster/internal/machine/machine"
)

// dirSettles is when a directory's time of change is old enough to tell a later change from the last one: the clock of
// file systems has coarse ticks.
const dirSettles = time.Second

// records lists the simulated machines, with the records of those that do not run yet. There is no news if the
// directory has not changed since it was read: thousands of machines are not looked at one by one all the time.
func (s *Simulator) records(running map[string]context.CancelFunc) (found map[string]*machine.Record, news bool, err error) {
	now := time.Now()
	dir, err := os.Stat(s.config.State.Machines())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("looking at the directory of machines: %w", err)
	}
	if s.settled.Equal(dir.ModTime()) {
		return nil, false, nil
	}
	entries, err := os.ReadDir(s.config.State.Machines())
	if err != nil {
		return nil, false, fmt.Errorf("reading the directory of machines: %w", err)
	}
	found, complete := map[string]*machine.Record{}, true
	for _, entry := range entries {
		id := entry.Name()
		if machine.ValidateID(id) != nil {
			continue
		}
		// The user data is written last, so a machine that has it is complete; one that is being removed loses it
		// before its record.
		if _, err := os.Lstat(filepath.Join(s.config.State.Machine(id), machine.UserDataFile)); err != nil {
			complete = false
			continue
		}
		if isStopped(s.config.State.Machine(id)) {
			continue
		}
		if _, ok := running[id]; ok {
			if boot := bootOf(s.config.State.Machine(id)); boot == s.boots[id] {
				found[id] = nil
			} else { // it was stopped since the last look, and ends before it begins again
				complete = false
			}
			continue
		}
		record, err := machine.ReadRecord(filepath.Join(s.config.State.Machine(id), machine.RecordFile))
		if err != nil { // it is being removed
			complete = false
			continue
		}
		warm := record.Lifecycle != "" // it is no node while it waits in the pool
		if record.Provider == providerName && record.Cluster == s.config.Cluster && !warm {
			found[id] = &record
		}
	}
	if complete && now.Sub(dir.ModTime()) > dirSettles {
		s.settled = dir.ModTime()
	}
	return found, true, nil
}
