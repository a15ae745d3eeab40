// SPDX-License-Identifier: Apache-2.0

package userns_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/userns"
)

// This host can do it in a directory of its own, and not in a file system that knows no other ids.
func TestCheck(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes namespaces: run it as root")
	}
	if err := userns.Check(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := userns.Check(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a directory that is not there can be shown")
	}
	if err := userns.Check("/proc"); err == nil || !strings.Contains(err.Error(), "/proc cannot be shown by other ids") {
		t.Errorf("/proc: %v", err)
	}
}

// Where there are no namespaces left, the limit and the command are named.
func TestCheckWithoutNamespaces(t *testing.T) {
	const asked = "CHECK_WITHOUT_NAMESPACES"
	if os.Getenv(asked) != "" {
		t.Errorf("got %v", userns.Check(t.TempDir()))
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	program := filepath.Join(place, "self")
	if out, err := exec.Command("cp", self, program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	bind := func() error { return unix.Mount(place, "/mnt", "", unix.MS_BIND, "") }
	out := run(t, ids(t), bind, "mount -t tmpfs none /tmp && echo 0 >/proc/sys/user/max_user_namespaces && "+asked+"=1 exec /mnt/self -test.run '^TestCheckWithoutNamespaces$'")
	if !strings.Contains(out, "this host allows 0 user namespaces to each user, and all of root's are in use: sysctl -w user.max_user_namespaces=65536") {
		t.Errorf("it printed:\n%s", out)
	}
}
