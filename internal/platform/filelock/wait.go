// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// waitInterval is how often a lock that another process has is tried.
const waitInterval = 20 * time.Millisecond

// Wait takes a lock as Take does, when whatever process has it has released it, or until the context ends.
func Wait(ctx context.Context, dir, name string) (release func(), err error) {
	for {
		release, err := Take(dir, name)
		if !errors.Is(err, ErrTaken) {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for a lock: %w: %w", err, context.Cause(ctx))
		case <-time.After(waitInterval):
		}
	}
}
