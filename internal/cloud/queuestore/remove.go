// SPDX-License-Identifier: Apache-2.0

package queuestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Purge removes all messages of a queue.
func (s *Store) Purge(id string) error {
	q, err := s.open(id)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.messages {
		if err := q.remove(m); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a queue that is deleted, with its messages.
func (s *Store) Remove(id string) error {
	q, err := s.open(id)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.gone {
		close(q.changed)
	}
	q.total.Add(-int64(q.cost()))
	q.gone, q.messages, q.bytes = true, map[string]*Message{}, 0
	if err := os.RemoveAll(q.dir); err != nil {
		return fmt.Errorf("removing a queue: %w", err)
	}
	return nil
}

// Sweep removes the folders of queues that are not there any more: a crash may have come before Remove. It asks which there
// are after it has looked at the folders: a queue that is made meanwhile keeps its messages.
func (s *Store) Sweep(there func() (map[string]bool, error)) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("listing queues: %w", err)
	}
	known, err := there()
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if !known[entry.Name()] {
			errs = append(errs, s.Remove(entry.Name()))
		}
	}
	return errors.Join(errs...)
}
