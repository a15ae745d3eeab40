// SPDX-License-Identifier: Apache-2.0

package filesystems

import (
	"context"
	"sync"
	"time"
)

const (
	// sizeAge is how long the size of a file system that was counted is told. EFS counts about every hour.
	sizeAge = 10 * time.Minute
	// sizePatience bounds one count.
	sizePatience = time.Second
	// maxSizes bounds what is kept: all is forgotten when there are more.
	maxSizes = 1000
)

// sizes are the sizes of file systems that were counted. Only one file system is counted at a time, so frequent
// requests cost the disk no more.
type sizes struct {
	mu    sync.Mutex
	known map[string]counted
}

type counted struct {
	at    time.Time
	size  int64
	known bool
}

// of is the size of a file system, counted now or a while ago; without a moment if it could not be counted.
func (s *sizes) of(ctx context.Context, now time.Time, id string, count func(context.Context, string) (int64, error)) size {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.known[id]
	if !ok || now.Sub(last.at) > sizeAge {
		ctx, cancel := context.WithTimeout(ctx, sizePatience)
		defer cancel()
		bytes, err := count(ctx, id)
		if len(s.known) >= maxSizes || s.known == nil {
			s.known = map[string]counted{}
		}
		last = counted{at: now, size: bytes, known: err == nil}
		s.known[id] = last
	}
	if !last.known {
		return size{}
	}
	return size{Value: last.size, Timestamp: &last.at}
}
