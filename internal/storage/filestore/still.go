// SPDX-License-Identifier: Apache-2.0

package filestore

import (
	"errors"
	"slices"
	"strings"
	"sync"
)

// ErrBeingCopied says that nothing may begin to write at a place.
var ErrBeingCopied = errors.New("it is being copied, and can be written once that is done")

// stills are the places that nobody may begin to write, and those that somebody is beginning to write.
type stills struct {
	mutex    sync.Mutex
	held     map[Place]int             // how often
	starting map[Place][]chan struct{} // each is closed when it has begun
}

// Write lets somebody begin to write at a place: what does it runs unless that place, or what is above or below it, is
// being kept still. All that share the store keep to it. It holds up only those who want to keep such a place still.
func (s *Store) Write(at Place, begin func() error) error {
	begun := make(chan struct{})
	if err := s.stills.start(at, begun); err != nil {
		return err
	}
	defer s.stills.started(at, begun)
	return begin()
}

func (s *stills) start(at Place, begun chan struct{}) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for held := range s.held {
		if held.overlaps(at) {
			return ErrBeingCopied
		}
	}
	if s.starting == nil {
		s.starting = map[Place][]chan struct{}{}
	}
	s.starting[at] = append(s.starting[at], begun)
	return nil
}

func (s *stills) started(at Place, begun chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	close(begun)
	s.starting[at] = slices.DeleteFunc(s.starting[at], func(one chan struct{}) bool { return one == begun })
	if len(s.starting[at]) == 0 {
		delete(s.starting, at)
	}
}

// Still runs something during which nobody begins to write at a place. The first function reports an error if somebody
// can already. It waits for those who are beginning to.
func (s *Store) Still(at Place, written, run func() error) error {
	waits := s.stills.hold(at)
	defer s.stills.release(at)
	for _, begun := range waits {
		<-begun
	}
	if err := written(); err != nil {
		return err
	}
	return run()
}

// hold keeps a place still from now on, and returns what is to be waited for.
func (s *stills) hold(at Place) (waits []chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.held == nil {
		s.held = map[Place]int{}
	}
	s.held[at]++
	for place, all := range s.starting {
		if place.overlaps(at) {
			waits = append(waits, all...)
		}
	}
	return waits
}

func (s *stills) release(at Place) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.held[at]--; s.held[at] == 0 {
		delete(s.held, at)
	}
}

// overlaps reports whether one of two places is the other one or in it.
func (p Place) overlaps(other Place) bool {
	if p.FileSystemID != other.FileSystemID || p.Snapshot != other.Snapshot {
		return false
	}
	one, two := strings.TrimSuffix(p.Path, "/")+"/", strings.TrimSuffix(other.Path, "/")+"/"
	return strings.HasPrefix(one, two) || strings.HasPrefix(two, one)
}
