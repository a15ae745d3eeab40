// SPDX-License-Identifier: Apache-2.0

// Package lru has a bounded map with least-recently-used eviction: when it is full, the entry that was unused for the
// longest time makes room. A flood of keys can push out other entries, but never use more memory.
package lru

// Map is the map. It is not safe for use by many at once.
type Map[K comparable, V any] struct {
	index map[K]int32
	nodes []node[K, V] // 0 is the ring's head: next is the newest, before the oldest
	free  int32        // first of the unused nodes, linked by next; 0 if none
	most  int
}

type node[K comparable, V any] struct {
	key          K
	value        V
	before, next int32
}

// New makes a map of so many entries at most, at least one.
func New[K comparable, V any](most int) *Map[K, V] {
	return &Map[K, V]{index: map[K]int32{}, nodes: make([]node[K, V], 1), most: max(1, most)}
}

// Len is the number of entries.
func (m *Map[K, V]) Len() int { return len(m.index) }

// Get finds an entry, and makes it the newest.
func (m *Map[K, V]) Get(key K) (V, bool) {
	at, ok := m.index[key]
	if !ok {
		var none V
		return none, false
	}
	m.unlink(at)
	m.link(at)
	return m.nodes[at].value, true
}

// Put adds or replaces an entry, and makes it the newest.
func (m *Map[K, V]) Put(key K, value V) {
	at, ok := m.index[key]
	switch {
	case ok:
		m.unlink(at)
	case m.free != 0:
		at = m.free
		m.free = m.nodes[at].next
	case len(m.index) < m.most:
		at = int32(len(m.nodes)) //nolint:gosec // G115: bounded by most
		m.nodes = append(m.nodes, node[K, V]{})
	default:
		at = m.nodes[0].before
		m.unlink(at)
		delete(m.index, m.nodes[at].key)
	}
	m.nodes[at].key, m.nodes[at].value = key, value
	m.index[key] = at
	m.link(at)
}

// Delete removes an entry if there is one.
func (m *Map[K, V]) Delete(key K) {
	at, ok := m.index[key]
	if !ok {
		return
	}
	m.unlink(at)
	delete(m.index, key)
	m.nodes[at] = node[K, V]{next: m.free}
	m.free = at
}

// DeleteFunc removes the entries that match.
func (m *Map[K, V]) DeleteFunc(match func(K, V) bool) {
	for key, at := range m.index {
		if match(key, m.nodes[at].value) {
			m.Delete(key)
		}
	}
}

// Clear removes all entries, and gives their memory back.
func (m *Map[K, V]) Clear() { *m = *New[K, V](m.most) }

func (m *Map[K, V]) link(at int32) {
	first := m.nodes[0].next
	m.nodes[at].before, m.nodes[at].next = 0, first
	m.nodes[first].before = at
	m.nodes[0].next = at
}

func (m *Map[K, V]) unlink(at int32) {
	before, next := m.nodes[at].before, m.nodes[at].next
	m.nodes[before].next, m.nodes[next].before = next, before
}
