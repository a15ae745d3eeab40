// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// All threads of a component may be woken late: each inherits that from the one that started it.
func TestTimerSlack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.run(quick(), w.server("a", ""))
	w.ready(s, "a")
	pid := status(s, "a").PID
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%s/timerslack_ns", thread.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if slack := strings.TrimSpace(string(raw)); slack != fmt.Sprint(timerSlack.Nanoseconds()) {
			t.Errorf("thread %s of %d: a slack of %s ns, want %s", thread.Name(), len(threads), slack, timerSlack)
		}
	}
}
