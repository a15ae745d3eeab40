// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Every process may be made to end sooner, and later by those that have the right alone.
func TestOOMScore(t *testing.T) {
	child := exec.CommandContext(t.Context(), "cat")
	held, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = held.Close()
		_ = child.Wait()
	})
	score := func() string {
		t.Helper()
		return strings.TrimSpace(get(t, filepath.Join("/proc", strconv.Itoa(child.Process.Pid), "oom_score_adj")))
	}
	if err := OOMScore(child.Process.Pid, 700); err != nil || score() != "700" {
		t.Errorf("sooner: %s, %v", score(), err)
	}
	may, err := Capable(unix.CAP_SYS_RESOURCE)
	if err != nil {
		t.Fatal(err)
	}
	if err := OOMScore(child.Process.Pid, -998); (err == nil) != may || err == nil && score() != "-998" || err != nil && !errors.Is(err, fs.ErrPermission) {
		t.Errorf("later, capable %v: %s, %v", may, score(), err)
	}
}
