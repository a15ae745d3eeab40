// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"
	"time"
)

// A service of a few machines is asked ten times a second; that of thousands spends a sixth of a processor on answers at most,
// and what is shown is two seconds old at most.
func TestPollPause(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0:                      100 * time.Millisecond,
		20 * time.Millisecond:  100 * time.Millisecond,
		150 * time.Millisecond: 750 * time.Millisecond,
		time.Minute:            2 * time.Second,
	} {
		if is := pollPause(took); is != want {
			t.Errorf("after an answer of %v the pause is %v, want %v", took, is, want)
		}
	}
}
