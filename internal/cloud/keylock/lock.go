// SPDX-License-Identifier: Apache-2.0

// Package keylock has one change at a time of what a key names, in one process. Changes of other keys do not wait.
package keylock

import "sync"

// Locks are the locks that are held or waited for. The zero Locks has none.
type Locks struct {
	mu  sync.Mutex
	all map[string]*lock
}

type lock struct {
	sync.Mutex
	users int
}

// Hold waits until nobody else changes what the key names, and returns what ends the hold.
func (l *Locks) Hold(key string) (release func()) {
	l.mu.Lock()
	if l.all == nil {
		l.all = map[string]*lock{}
	}
	one, ok := l.all[key]
	if !ok {
		one = &lock{}
		l.all[key] = one
	}
	one.users++
	l.mu.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.all, key)
		}
	}
}
