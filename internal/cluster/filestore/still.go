// SPDX-License-Identifier: Apache-2.0

package filestore

import (
	"errors"
	"strings"
	"sync"
)

// ErrBeingCopied says that nothing may begin to write at a place.
var ErrBeingCopied = errors.New("it is being copied, and can be written once that is done")

// stills are the places that nobody may begin to write.
type stills struct {
	mutex sync.RWMutex
	held  map[Place]int // how often
}

// Write lets somebody begin to write at a place: what does it runs unless that place, or what is above or below it, is being kept still. All that share
// the store keep to it.
func (s *Store) Write(at Place, begin func() error) error {
	s.stills.mutex.RLock()
	defer s.stills.mutex.RUnlock()
	for held := range s.stills.held {
		if held.overlaps(at) {
			return ErrBeingCopied
		}
	}
	return begin()
}

// Still runs something during which nobody begins to write at a place. The first function reports an error if somebody can already.
func (s *Store) Still(at Place, written, run func() error) error {
	if err := s.hold(at, written); err != nil {
		return err
	}
	defer func() {
		s.stills.mutex.Lock()
		defer s.stills.mutex.Unlock()
		if s.stills.held[at]--; s.stills.held[at] == 0 {
			delete(s.stills.held, at)
		}
	}()
	return run()
}

func (s *Store) hold(at Place, written func() error) error {
	s.stills.mutex.Lock()
	defer s.stills.mutex.Unlock()
	if err := written(); err != nil {
		return err
	}
	if s.stills.held == nil {
		s.stills.held = map[Place]int{}
	}
	s.stills.held[at]++
	return nil
}

// overlaps reports whether one of two places is the other one or in it.
func (p Place) overlaps(other Place) bool {
	if p.FileSystemID != other.FileSystemID || p.Snapshot != other.Snapshot {
		return false
	}
	one, two := strings.TrimSuffix(p.Path, "/")+"/", strings.TrimSuffix(other.Path, "/")+"/"
	return strings.HasPrefix(one, two) || strings.HasPrefix(two, one)
}
