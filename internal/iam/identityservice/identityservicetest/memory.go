// SPDX-License-Identifier: Apache-2.0

package identityservicetest

import (
	"context"
	"strconv"
	"sync"

	"muster.dev/muster/internal/iam/identityservice"
)

// Memory is an identityservice.Store that forgets everything with the process. Fail makes it fail on demand.
type Memory struct {
	mu       sync.Mutex
	state    *identityservice.State
	entities map[string]identityservice.Held
	writes   int
	signals  identityservice.Signals

	// Fail is asked before every write, with the number of writes before it. Its error is the outcome.
	Fail func(writes int, e identityservice.Entity) error
}

// NewMemory makes an empty store.
func NewMemory() *Memory {
	return &Memory{state: identityservice.NewState(nil), entities: map[string]identityservice.Held{}}
}

// State is what is known now.
func (m *Memory) State() (*identityservice.State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state, nil
}

// Changed tells of changes.
func (m *Memory) Changed() (<-chan struct{}, func()) { return m.signals.Subscribe() }

// Create keeps a new entity.
func (m *Memory) Create(_ context.Context, e identityservice.Entity) error {
	return m.write(e, func() error {
		_, named := m.state.Namesake(e)
		if _, ok := m.entities[identityservice.ID(e)]; ok || named {
			return identityservice.ErrExists
		}
		m.entities[identityservice.ID(e)] = identityservice.Held{Entity: e, Revision: strconv.Itoa(m.writes)}
		return nil
	})
}

// Update replaces an entity.
func (m *Memory) Update(_ context.Context, from *identityservice.State, e identityservice.Entity) error {
	return m.write(e, func() error {
		if _, ok := m.entities[identityservice.ID(e)]; !ok {
			return identityservice.ErrDeleted
		}
		if m.stale(from, e) {
			return identityservice.ErrConflict
		}
		if other, ok := m.state.Namesake(e); ok && other != identityservice.ID(e) {
			return identityservice.ErrExists
		}
		m.entities[identityservice.ID(e)] = identityservice.Held{Entity: e, Revision: strconv.Itoa(m.writes)}
		return nil
	})
}

// Delete removes an entity.
func (m *Memory) Delete(_ context.Context, from *identityservice.State, e identityservice.Entity) error {
	return m.write(e, func() error {
		if _, ok := m.entities[identityservice.ID(e)]; !ok {
			return nil
		}
		if m.stale(from, e) {
			return identityservice.ErrConflict
		}
		delete(m.entities, identityservice.ID(e))
		return nil
	})
}

func (m *Memory) stale(from *identityservice.State, e identityservice.Entity) bool {
	current, ok := m.entities[identityservice.ID(e)]
	return !ok || current.Revision != from.Revision(e)
}

func (m *Memory) write(e identityservice.Entity, change func() error) error {
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
	all := make([]identityservice.Held, 0, len(m.entities))
	for _, h := range m.entities {
		all = append(all, h)
	}
	m.state = identityservice.NewState(all)
	m.signals.Tell()
	return nil
}
