// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/process"
	"muster.dev/muster/internal/platform/statedir"
)

// processPrefix begins the mark of a machine's first process.
const processPrefix = "machine/"

// ProcessName is what the first process of a machine is called among those of its state directory.
func ProcessName(id string) string { return processPrefix + id }

// running has hold of the first process of each machine that was seen to run. All processes of the host are read only
// when one of the machines asked about is not among them: the service asks every moment, and nearly always nothing has
// changed.
type running struct {
	dir statedir.Dir

	mu   sync.Mutex
	held map[string]*process.Handle // by machine
}

// of returns the first processes of those machines that run.
func (r *running) of(ids ...string) (map[string]int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := true
	for _, id := range ids {
		h, ok := r.held[id]
		all = all && ok && !h.Ended()
	}
	if !all {
		if err := r.look(); err != nil {
			return nil, err
		}
	}
	pids := map[string]int{}
	for _, id := range ids {
		if h, ok := r.held[id]; ok {
			pids[id] = h.PID
		}
	}
	return pids, nil
}

// look takes hold of process 1 of each machine that runs, and releases processes that have ended.
func (r *running) look() error {
	maps.DeleteFunc(r.held, func(_ string, h *process.Handle) bool {
		ended := h.Ended()
		if ended {
			h.Close()
		}
		return ended
	})
	found, err := Running(r.dir)
	if err != nil {
		return err
	}
	for id, pid := range found {
		if _, ok := r.held[id]; ok {
			continue
		}
		h, err := process.Hold(pid)
		if err != nil {
			continue // it has ended meanwhile
		}
		if first, ok := host.InitAt(pid); !ok || !isMachine(r.dir, first) { // the number is another's by now
			h.Close()
			continue
		}
		if r.held == nil {
			r.held = map[string]*process.Handle{}
		}
		r.held[id] = h
	}
	return nil
}

// Running finds the first process of every machine of a state directory that runs, by the machine's id.
func Running(dir statedir.Dir) (map[string]int, error) {
	inits, err := host.Inits(func(first host.Init) bool { return isMachine(dir, first) })
	if err != nil {
		return nil, fmt.Errorf("finding machines: %w", err)
	}
	found := make(map[string]int, len(inits))
	for _, first := range inits {
		found[machineOf(first)] = first.PID
	}
	return found, nil
}

// isMachine reports whether a process is the first one of a machine. Root on a machine may write what it likes into the
// environment, and so may other users of the host: it is the machine that has the process's user. That of a machine
// whose record is damaged is any that machines can have.
func isMachine(dir statedir.Dir, first host.Init) bool {
	if first.Environment[supervise.EnvState] != string(dir) || !strings.HasPrefix(first.Environment[supervise.EnvProcess], processPrefix) {
		return false
	}
	id := machineOf(first)
	if machine.ValidateID(id) != nil {
		return false
	}
	record, err := machine.ReadRecord(filepath.Join(dir.Machine(id), machine.RecordFile))
	if err != nil {
		return first.UID == os.Geteuid() || isReserved(dir, first.UID)
	}
	return first.UID == os.Geteuid() && !record.IDs.Own() || record.IDs.Own() && first.UID == record.IDs.Host(0)
}

func machineOf(first host.Init) string {
	return strings.TrimPrefix(first.Environment[supervise.EnvProcess], processPrefix)
}
