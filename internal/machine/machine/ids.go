// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"slices"

	"muster.dev/muster/internal/platform/userns"
)

// idsOfMachine is how many ids a machine has: as many as a system has that is alone on its host (16 bits).
const idsOfMachine = 1 << 16

// GiveIDs gives an instance that does not run ids of its own, and returns its record. An instance that has ids keeps
// them.
func (s *Store) GiveIDs(id string) (Record, error) {
	w, err := s.lock()
	if err != nil {
		return Record{}, err
	}
	defer w.release()
	record, err := s.read(id)
	if err != nil || record.IDs.Own() {
		return record, err
	}
	if record.IDs, err = s.chooseIDs(); err != nil {
		return Record{}, err
	}
	return record, s.write(record)
}

// chooseIDs finds ids of the host that no instance has.
func (s *Store) chooseIDs() (userns.IDs, error) {
	if s.config.IDs == nil {
		return userns.IDs{}, errors.New("choosing the machine's ids: no ids of this host are reserved for machines")
	}
	all, err := s.config.IDs()
	if err != nil {
		return userns.IDs{}, fmt.Errorf("choosing the machine's ids: %w", err)
	}
	records, err := s.list()
	if err != nil {
		return userns.IDs{}, fmt.Errorf("choosing the machine's ids: those in use are not all known: %w", err)
	}
	for first := all.First; first-all.First+idsOfMachine <= all.Count; first += idsOfMachine {
		if !slices.ContainsFunc(records, func(r Record) bool { return r.IDs.First == first }) {
			return userns.IDs{First: first, Count: idsOfMachine}, nil
		}
	}
	return userns.IDs{}, fmt.Errorf("choosing the machine's ids: all %d that are reserved from %d on are in use, %d for each machine: delete machines that are not needed", all.Count, all.First, idsOfMachine)
}
