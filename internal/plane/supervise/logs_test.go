// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRotateLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := RotateLog(path, 1); err != nil {
		t.Errorf("no log yet: %v", err)
	}
	writer, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) // as a component holds it, all the time
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Close() })
	write := func(text string) {
		t.Helper()
		if _, err := writer.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when, want, wantOld string) {
		t.Helper()
		raw, _ := os.ReadFile(path)
		old, _ := os.ReadFile(path + ".1")
		if string(raw) != want || string(old) != wantOld {
			t.Errorf("%s: log %q and older part %q; want %q and %q", when, raw, old, want, wantOld)
		}
	}
	rotate := func() {
		t.Helper()
		if err := RotateLog(path, 10); err != nil {
			t.Error(err)
		}
	}
	write("123456789")
	rotate()
	check("below the limit", "123456789", "")
	write("0")
	rotate()
	check("at the limit", "", "1234567890")
	write("after")
	check("written after it", "after", "1234567890") // at the beginning, without a hole before it
	write(strings.Repeat("x", 10))
	rotate()
	check("again", "", "after"+strings.Repeat("x", 10))
	info, err := os.Stat(path + ".1")
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the older part has mode %v, %v", info.Mode(), err)
	}
}

// A log that cannot be copied is cut all the same: a full disk must not stay full.
func TestRotateLogWithoutRoom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("1234567890"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := RotateLog(path, 10); err == nil {
		t.Error("no error")
	}
	if raw, err := os.ReadFile(path); err != nil || len(raw) != 0 {
		t.Errorf("log is %q, %v", raw, err)
	}
	if _, err := os.Lstat(path + ".1"); err == nil {
		t.Error("half an older part stays")
	}
}
