// SPDX-License-Identifier: Apache-2.0

package hostjoin

import "sync"

// soon begins something that will be needed later, and returns what waits for it. A caller that gives it up ends it by
// its context, and waits for the group.
func soon[T any](group *sync.WaitGroup, f func() (T, error)) func() (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	group.Go(func() {
		value, err := f()
		results <- result{value, err}
	})
	return func() (T, error) {
		r := <-results
		return r.value, r.err
	}
}

// await waits for what was begun, which is when somebody else is waited for: until then there was something else to do.
func await[T any](h *Host, begun func() (T, error)) (value T, err error) {
	err = h.wait(func() (err error) {
		value, err = begun()
		return err
	})
	return value, err
}
