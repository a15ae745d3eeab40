// SPDX-License-Identifier: Apache-2.0

package identityservice

import "sync"

// Signals tells many that something changed. One value waits for a busy listener, however much changed.
type Signals struct {
	mu       sync.Mutex
	channels map[chan struct{}]bool
}

// Subscribe returns a channel on which a value comes after each Tell; stop takes it back.
func (s *Signals) Subscribe() (changed <-chan struct{}, stop func()) {
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

// Tell tells all that subscribed.
func (s *Signals) Tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel := range s.channels {
		select {
		case channel <- struct{}{}:
		default:
		}
	}
}
