// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"strings"
	"time"
)

// usualStart is how long a process may take to start before its summary says what it is waited for.
const usualStart = 15 * time.Second

// Summary says in a line what keeps processes from being Ready, or "". Processes that start for the first time are only
// counted and named, since nobody can speed them up. For other processes it says why they are not Ready.
func Summary(statuses []Status, now time.Time) string {
	var starting, others []string
	for _, s := range statuses {
		switch {
		case s.State == Ready:
		case s.State == Unready:
			others = append(others, s.Name+" does not answer: "+s.Message)
		case s.State == Backoff:
			others = append(others, s.Name+" was started again "+times(s.Restarts)+": "+s.Message)
		case s.Restarts > 0:
			others = append(others, s.Name+" was started again "+times(s.Restarts))
		default:
			starting = append(starting, s.Name)
			if s.State == Starting && s.Message != "" && now.Sub(s.Since) > usualStart {
				others = append(others, s.Name+" takes long: "+s.Message)
			}
		}
	}
	switch len(starting) {
	case 0:
		return strings.Join(others, "; ")
	case 1:
		return strings.Join(append([]string{"starting " + starting[0]}, others...), "; ")
	}
	named := fmt.Sprintf("starting %d components", len(starting))
	if len(others) == 0 {
		return named + ": " + strings.Join(starting, ", ")
	}
	return strings.Join(append([]string{named}, others...), "; ")
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
