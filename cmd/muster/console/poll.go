// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// WaitInterval is how often a waiting command looks.
const WaitInterval = 300 * time.Millisecond

// Poll calls done until it says so, its error is not a plane's silence, or the time is up. An API server that restarts meanwhile does not
// end the waiting.
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

const ErrTimeUp = timeUp("gave up")

// timeUp is a kind of error that there is one of.
type timeUp string

func (e timeUp) Error() string { return string(e) }

// fatalError ends polling.
type fatalError struct{ error }

// Fatal makes an error end polling.
func Fatal(err error) error { return fatalError{err} }
