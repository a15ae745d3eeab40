// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// A component is spared when memory runs out, whether it is started or taken over; where this process may not spare it,
// it runs nevertheless.
func TestSpared(t *testing.T) {
	t.Parallel()
	may, err := host.Capable(unix.CAP_SYS_RESOURCE)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	score := func(pid any) string {
		t.Helper()
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%v/oom_score_adj", pid))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(raw))
	}
	check := func(when string, pid int, unspared string) {
		t.Helper()
		if want := map[bool]string{true: "-998", false: unspared}[may]; score(pid) != want {
			t.Errorf("%s: the score is %s, want %s", when, score(pid), want)
		}
	}
	spec := w.server("a", "")
	s, stop := w.run(quick(), spec)
	w.ready(s, "a")
	pid := status(s, "a").PID
	check("started", pid, score("self"))
	if err := host.OOMScore(pid, 500); err != nil {
		t.Fatal(err)
	}
	stop()
	s, _ = w.run(quick(), spec)
	w.ready(s, "a")
	if again := status(s, "a").PID; again != pid {
		t.Fatalf("process %d was taken over as %d", pid, again)
	}
	check("taken over", pid, "500")
}
