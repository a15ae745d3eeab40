// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"muster.dev/muster/internal/certificates/policy"
)

// static is a list of machines that an operator writes. It keeps the last version that could be read. It is the common
// part of StaticFile and StaticConfigMap.
type static struct {
	table
	what     string // that holds the list, for people
	onChange func(Change)
	logger   *slog.Logger
	health   *health // of the way to it

	mu       sync.Mutex
	machines *roll             // of the last version that could be read; nil if none could
	last     [sha256.Size]byte // digest of what was read last, also in vain
	problem  string            // with the newest version
}

func (s *static) prepare(name, what string, now func() time.Time, staleAfter time.Duration, onChange func(Change), logger *slog.Logger) {
	s.what, s.onChange, s.logger = what, onChange, logger.With("source", name)
	s.health = &health{now: now, staleAfter: staleAfter, logger: s.logger, recovered: func() { onChange(Change{All: true}) }}
	s.table = table{name: name, lookup: s.find, current: s.current}
}

func (s *static) find(index, key string) ([]policy.Machine, error) {
	s.mu.Lock()
	now := s.machines
	s.mu.Unlock()
	if now == nil {
		return nil, fmt.Errorf("%s has not been read yet", s.what)
	}
	return now.find(index, key)
}

// Name of the source.
func (s *static) Name() string { return s.name }

// HasSynced reports whether a version of the list has been read.
func (s *static) HasSynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machines != nil
}

// Status reports a newest version that cannot be read, and of a list that is gone.
func (s *static) Status() SourceStatus {
	status := SourceStatus{Name: s.name, Synced: s.HasSynced()}
	status.Age, status.Problem = s.health.status()
	if status.Problem == "" {
		s.mu.Lock()
		status.Problem = s.problem
		s.mu.Unlock()
	}
	return status
}

func (s *static) current() (at time.Time, why string) {
	at, _ = s.health.since()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch _, gone := s.health.status(); {
	case s.machines == nil && s.problem != "":
		return at, s.problem
	case s.machines == nil && gone != "":
		return at, gone
	case s.machines == nil:
		return at, fmt.Sprintf("%s has not been read yet", s.what)
	}
	if _, old := s.health.old(); old != "" {
		return at, s.what + ": " + old
	}
	return at, "" // it is what the operator last said that made sense, however long ago that was
}

// update takes over a version if it is new, and tells what is different.
func (s *static) update(data []byte) {
	s.mu.Lock()
	before, seen := s.machines, s.last == sha256.Sum256(data)
	s.mu.Unlock()
	if seen {
		return
	}
	after, err := s.load(data)
	switch {
	case err != nil:
		s.logger.Error("list of machines not taken over, the last good one goes on", "list", s.what, "error", err)
		return
	case before == nil:
		s.onChange(Change{All: true})
	default:
		s.tell(before.machines, after)
	}
	s.logger.Info("list of machines taken over", "list", s.what, "machines", len(after))
}

// load takes over a version, whole or not at all.
func (s *static) load(data []byte) ([]policy.Machine, error) {
	found, err := ReadList(data)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = sha256.Sum256(data)
	if err != nil {
		s.problem = fmt.Sprintf("%s cannot be read: %v", s.what, err)
		return nil, fmt.Errorf("%s cannot be read: %w", s.what, err)
	}
	s.machines, s.problem = newRoll(found), ""
	return found, nil
}

// tell tells what is different.
func (s *static) tell(before, after []policy.Machine) {
	old := make(map[string]policy.Machine, len(before))
	for _, m := range before {
		old[m.ID] = m
	}
	var changed []policy.Machine
	for _, m := range after {
		if was, ok := old[m.ID]; !ok || !reflect.DeepEqual(was, m) {
			changed = append(changed, was, m)
		}
		delete(old, m.ID)
	}
	for _, m := range old {
		changed = append(changed, m)
	}
	if len(changed) > 0 {
		s.onChange(ChangeOf(changed...))
	}
}
