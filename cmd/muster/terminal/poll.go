// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// WaitInterval is the time between two looks of a command that waits.
const WaitInterval = 300 * time.Millisecond

// ErrTimeUp is in the error of Poll when the time is up.
const ErrTimeUp = timeUp("gave up")

// timeUp makes a constant error.
type timeUp string

func (e timeUp) Error() string { return string(e) }

// Poll calls done at each interval until it returns true or an error made by Fatal, or the timeout is over. Other
// errors are retried, so that an API server that restarts does not end the wait; the last one is in the error at the
// timeout.
func Poll(ctx context.Context, timeout, interval time.Duration, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, ErrTimeUp)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		ok, err := done(ctx)
		var fatal fatalError
		if ok || errors.As(err, &fatal) {
			return err
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, ErrTimeUp) {
				return errors.New("interrupted")
			}
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("%w after %s: %w", ErrTimeUp, timeout, err)
			}
			return fmt.Errorf("%w after %s", ErrTimeUp, timeout)
		case <-ticker.C:
		}
	}
}

// fatalError ends polling.
type fatalError struct{ error }

// Fatal wraps an error so that it ends Poll.
func Fatal(err error) error { return fatalError{err} }
