// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"strconv"
	"sync"
)

// Memory is a Store that forgets everything with the process. Fail makes it fail on demand.
type Memory struct {
	mu       sync.Mutex
	state    *State
	entities map[string]held
	writes   int
	signals  signals

	// Fail is asked before every write, with the number of writes before it. Its error is the outcome.
	Fail func(writes int, e Entity) error
}

// NewMemory makes an empty store.
func NewMemory() *Memory { return &Memory{state: newState(nil), entities: map[string]held{}} }

// State is what is known now.
func (m *Memory) State() (*State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state, nil
}

// Changed tells of changes.
func (m *Memory) Changed() (<-chan struct{}, func()) { return m.signals.subscribe() }

// Create keeps a new entity.
func (m *Memory) Create(_ context.Context, e Entity) error {
	return m.write(e, func() error {
		if _, ok := m.entities[id(e)]; ok || m.state.taken(name(e)) {
			return ErrExists
		}
		m.entities[id(e)] = held{e, strconv.Itoa(m.writes)}
		return nil
	})
}

// Update replaces an entity.
func (m *Memory) Update(_ context.Context, from *State, e Entity) error {
	return m.write(e, func() error {
		if m.stale(from, e) {
			return ErrConflict
		}
		if other, ok := m.state.names[name(e)]; ok && other != id(e) {
			return ErrExists
		}
		m.entities[id(e)] = held{e, strconv.Itoa(m.writes)}
		return nil
	})
}

// Delete removes an entity.
func (m *Memory) Delete(_ context.Context, from *State, e Entity) error {
	return m.write(e, func() error {
		if _, ok := m.entities[id(e)]; !ok {
			return nil
		}
		if m.stale(from, e) {
			return ErrConflict
		}
		delete(m.entities, id(e))
		return nil
	})
}

func (m *Memory) stale(from *State, e Entity) bool {
	current, ok := m.entities[id(e)]
	return !ok || current.revision != from.revisions[id(e)]
}

func (m *Memory) write(e Entity, change func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Fail != nil {
		if err := m.Fail(m.writes, e); err != nil {
			return err
		}
	}
	m.writes++
	if err := change(); err != nil {
		return err
	}
	all := make([]held, 0, len(m.entities))
	for _, h := range m.entities {
		all = append(all, h)
	}
	m.state = newState(all)
	m.signals.tell()
	return nil
}

// signals tells many that something changed. One value waits for a busy listener, however much changed.
type signals struct {
	mu       sync.Mutex
	channels map[chan struct{}]bool
}

func (s *signals) subscribe() (<-chan struct{}, func()) {
	channel := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channels == nil {
		s.channels = map[chan struct{}]bool{}
	}
	s.channels[channel] = true
	return channel, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.channels, channel)
	}
}

func (s *signals) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel := range s.channels {
		select {
		case channel <- struct{}{}:
		default:
		}
	}
}
