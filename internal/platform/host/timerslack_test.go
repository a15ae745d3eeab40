// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A program has the slack of the thread that starts it, which may be the kernel's own again.
func TestTimerSlack(t *testing.T) {
	for _, slack := range []time.Duration{700 * time.Microsecond, DefaultTimerSlack} {
		started := make(chan *exec.Cmd, 1)
		go OnThread(func() {
			defer close(started)
			if err := TimerSlack(700 * time.Microsecond); err != nil {
				t.Error(err)
				return
			}
			if err := TimerSlack(slack); err != nil {
				t.Error(err)
				return
			}
			child := exec.CommandContext(t.Context(), "cat")
			if _, err := child.StdinPipe(); err != nil {
				t.Error(err)
				return
			}
			if err := child.Start(); err != nil {
				t.Error(err)
				return
			}
			started <- child
		})
		child, ok := <-started
		if !ok {
			return
		}
		t.Cleanup(func() {
			_ = child.Process.Kill()
			_ = child.Wait()
		})
		has := strings.TrimSpace(get(t, filepath.Join("/proc", strconv.Itoa(child.Process.Pid), "timerslack_ns")))
		if want := strconv.FormatInt(slack.Nanoseconds(), 10); has != want {
			t.Errorf("a program that was started with %s has %s ns", slack, has)
		}
	}
}
