// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"os"
	"sync"
	"time"

	"muster.dev/muster/internal/plane/issuer"
)

// Source reads the file of a ring again whenever it was replaced, so that all who ask know of a change at once. It is
// safe for use by many at once.
type Source struct {
	path string

	mu   sync.Mutex
	seen os.FileInfo
	ring Ring
}

// NewSource reads nothing yet.
func NewSource(path string) *Source { return &Source{path: path} }

// Ring is what the file says now. A file that cannot be read is an error, whatever was read of it before.
func (s *Source) Ring() (Ring, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.path)
	if err == nil && s.seen != nil && os.SameFile(info, s.seen) && info.ModTime().Equal(s.seen.ModTime()) && info.Size() == s.seen.Size() {
		return s.ring, nil
	}
	s.seen = nil
	ring, err := Read(s.path)
	if err != nil {
		return Ring{}, err
	}
	s.seen, s.ring = info, ring
	return ring, nil
}

// Documents are what an issuer with the keys of a ring publishes at a moment.
func Documents(i issuer.Issuer, r Ring, now time.Time) (issuer.Documents, error) {
	var public [][]byte
	for _, k := range r.Published(now) {
		raw, err := PublicPEM(k)
		if err != nil {
			return issuer.Documents{}, err
		}
		public = append(public, raw)
	}
	return issuer.Render(i, public...)
}
