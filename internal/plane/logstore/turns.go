// SPDX-License-Identifier: Apache-2.0

package logstore

import (
	"context"
	"sync"
)

// turns lets one session write at a time.
type turns struct {
	once sync.Once
	free chan struct{}
}

func (t *turns) begin(ctx context.Context) error {
	t.once.Do(func() { t.free = make(chan struct{}, 1) })
	select {
	case t.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end is for the one whose turn it is.
func (t *turns) end() { <-t.free }
