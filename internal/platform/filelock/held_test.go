// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestHold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := Hold(path, "the first")
	if err != nil {
		t.Fatal(err)
	}
	if got := Holder(filepath.Dir(path), filepath.Base(path)); got != "the first" {
		t.Errorf("the holder is %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v; want mode 0600", path, info, err)
	}
	if _, err = Hold(path, ""); !errors.Is(err, ErrTaken) {
		t.Errorf("locked twice: %v", err)
	}
	release()
	if release, err = Hold(path, ""); err != nil {
		t.Fatalf("released, and yet: %v", err)
	}
	release()
	if _, err := Hold(filepath.Join(path, "below"), ""); err == nil || errors.Is(err, ErrTaken) {
		t.Errorf("a file that cannot be: %v", err)
	}
}

func TestAHeldLockEndsWithItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Dir, cmd.Env = filepath.Dir(path), append(os.Environ(), envHold+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	if _, err := Hold(path, ""); !errors.Is(err, ErrTaken) {
		t.Fatalf("while it lives: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	release, err := Hold(path, "")
	if err != nil {
		t.Fatalf("after it was killed: %v", err)
	}
	release()
}
