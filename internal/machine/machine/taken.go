// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lookAgain is how long a writer may go by the records that it has in memory before it looks at all of them: at one that
// cannot be read, above all.
const lookAgain = time.Second

// writing is the lock of the records while it is held. Its file counts how often records were made or removed.
type writing struct{ file *os.File }

func (w writing) release() { _ = w.file.Close() }

// lock keeps other writers out until it is released, or this process ends.
func (s *Store) lock() (writing, error) {
	if err := os.MkdirAll(s.config.Dir, 0o700); err != nil {
		return writing{}, fmt.Errorf("making directory of machines: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(s.config.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return writing{}, fmt.Errorf("opening the lock of machine records: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return writing{}, errors.Join(fmt.Errorf("locking machine records: %w", err), file.Close())
	}
	return writing{file}, nil
}

// number is the count.
func (w writing) number() (uint64, error) {
	var raw [8]byte
	if _, err := w.file.ReadAt(raw[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("reading how often machine records changed: %w", err)
	}
	return binary.LittleEndian.Uint64(raw[:]), nil
}

// taken are the records of all instances as they were when this process held the lock last. An instance keeps its
// addresses for as long as it has a record, so a launch looks at no other record unless somebody else has made or removed
// one: a writer has counted, or the directory has changed.
type taken struct {
	mutex   sync.Mutex // writers wait for each other anyway
	known   bool
	records []Record
	number  uint64
	dir     fileState
	looked  time.Time
}

// agrees reports whether nobody else has made or removed a record. The mutex is held.
func (t *taken) agrees(number uint64, dir fileState) bool {
	return t.known && t.number == number && t.dir == dir
}

// all lists the records of every provider for a writer. Fields other than addresses may be old.
func (s *Store) all(w writing) ([]Record, error) {
	number, err := w.number()
	if err != nil {
		return nil, err
	}
	dir, err := lookAt(s.config.Dir)
	if err != nil {
		return nil, fmt.Errorf("looking at the directory of machine records: %w", err)
	}
	t := &s.taken
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.agrees(number, dir) && time.Since(t.looked) < lookAgain {
		return t.records, nil
	}
	t.known = false
	ids, err := s.IDs()
	if err != nil {
		return nil, err
	}
	records, err := s.list()
	if err == nil && len(records) == len(ids) { // a machine that is being made may be recorded without a change of the directory
		t.known, t.records, t.number, t.dir, t.looked = true, records, number, dir, time.Now()
	}
	return records, err
}

// count is called before a record is made or removed: a process that is killed in between has changed less than it
// counted.
func (s *Store) count(w writing) error {
	number, err := w.number()
	if err != nil {
		return err
	}
	dir, unseen := lookAt(s.config.Dir)
	s.taken.mutex.Lock()
	defer s.taken.mutex.Unlock()
	s.taken.known = unseen == nil && s.taken.agrees(number, dir)
	if _, err := w.file.WriteAt(binary.LittleEndian.AppendUint64(nil, number+1), 0); err != nil {
		return fmt.Errorf("counting a change of machine records: %w", err)
	}
	return nil
}

// made notes a record that was made, after it was counted.
func (s *Store) made(w writing, record Record) {
	s.changed(w, func(all []Record) []Record { return append(all, record) })
}

// removed notes that a record was removed, after that was counted.
func (s *Store) removed(w writing, id string) {
	s.changed(w, func(all []Record) []Record {
		return slices.DeleteFunc(slices.Clone(all), func(r Record) bool { return r.ID == id })
	})
}

func (s *Store) changed(w writing, change func([]Record) []Record) {
	number, err := w.number()
	dir, unseen := lookAt(s.config.Dir)
	t := &s.taken
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.known = t.known && err == nil && unseen == nil; t.known {
		t.records, t.number, t.dir = change(t.records), number, dir
	}
}
