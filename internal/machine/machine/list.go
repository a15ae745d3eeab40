// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// List reads the records of a provider, sorted by id. If records are damaged, whosever they are, it returns the others
// and an error that is [ErrDamaged].
func (s *Store) List(provider string) ([]Record, error) {
	records, err := s.list()
	return slices.DeleteFunc(records, func(r Record) bool { return r.Provider != provider }), err
}

// list reads the records of every provider. If some are damaged, it returns the others and an error that is
// [ErrDamaged].
func (s *Store) list() ([]Record, error) {
	ids, err := s.IDs()
	if err != nil {
		return nil, err
	}
	var records []Record
	var damaged error
	for _, id := range ids {
		record, err := s.read(id)
		switch {
		case errors.Is(err, ErrNotFound): // made and not yet recorded, or being removed
		case errors.Is(err, ErrDamaged):
			damaged = cmp.Or(damaged, err)
		case err != nil:
			return nil, err
		default:
			records = append(records, record)
		}
	}
	return records, damaged
}

// IDs lists the ids of all instances, sorted, also of those whose record is damaged or not written yet.
func (s *Store) IDs() ([]string, error) {
	entries, err := os.ReadDir(s.config.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading directory of machine records: %w", err)
	}
	var ids []string
	for _, entry := range entries {
		if entry.IsDir() && ValidateID(entry.Name()) == nil {
			ids = append(ids, entry.Name())
		}
	}
	return ids, nil
}
