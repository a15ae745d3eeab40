// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultTimerSlack is the kernel's own (init_task.c), which threads have unless they inherit another one.
const DefaultTimerSlack = 50 * time.Microsecond

// TimerSlack says how much later than it asked for the calling thread may be woken from a sleep, so that the kernel wakes
// a processor once for several sleeps (PR_SET_TIMERSLACK(2const)). Threads and processes that the thread starts later
// inherit it.
func TimerSlack(slack time.Duration) error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack.Nanoseconds()), 0, 0, 0); err != nil { //nolint:gosec // G115: a slack is not negative
		return fmt.Errorf("letting sleeps of this thread end %s late: %w", slack, err)
	}
	return nil
}
