// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReadPIN(t *testing.T) {
	for _, tc := range []struct {
		name, content string
		mode          os.FileMode
		pin, want     string
	}{
		{"plain", "MusterPIN", 0o600, "MusterPIN", ""},
		{"with the end of the line", "MusterPIN\r\n", 0o400, "MusterPIN", ""},
		{"with blanks, which are its own", " 12 34 \n", 0o600, " 12 34 ", ""},
		{"empty", "", 0o600, "", "on one line"},
		{"an empty line", "\n", 0o600, "", "on one line"},
		{"two lines", "MusterPIN\n5678\n", 0o600, "", "on one line"},
		{"a zero", "MusterPIN\x0034", 0o600, "", "on one line"},
		{"too long", strings.Repeat("1", maxPIN+1), 0o600, "", "on one line"},
		{"for the group", "MusterPIN", 0o640, "", "its mode is 0640"},
		{"for others", "MusterPIN", 0o604, "", "its mode is 0604"},
		{"to be run by others", "MusterPIN", 0o601, "", "its mode is 0601"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "pin")
			if err := os.WriteFile(name, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(name, tc.mode); err != nil {
				t.Fatal(err)
			}
			pin, err := readPIN(name)
			switch {
			case tc.want == "" && (err != nil || pin != tc.pin):
				t.Errorf("got %q, %v", pin, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || pin != ""):
				t.Errorf("got %q, %v; want %q", pin, err, tc.want)
			case err != nil && strings.Contains(err.Error(), "MusterPIN"):
				t.Errorf("the error shows the PIN: %v", err)
			}
		})
	}
	if _, err := readPIN(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}

// file is what stat says about one.
type file struct {
	mode     os.FileMode
	uid, gid int
}

func (f file) Name() string       { return "pin" }
func (f file) Size() int64        { return 4 }
func (f file) Mode() os.FileMode  { return f.mode }
func (f file) ModTime() time.Time { return time.Time{} }
func (f file) IsDir() bool        { return false }
func (f file) Sys() any           { return &syscall.Stat_t{Uid: uint32(f.uid), Gid: uint32(f.gid)} }

func TestWhoMayOwnThePIN(t *testing.T) {
	const me, group = 1000, 2000
	for _, tc := range []struct {
		name string
		file file
		as   account
		good bool
	}{
		{"my own", file{0o600, me, group}, account{me, []int{group}}, true},
		{"root's", file{0o400, 0, 0}, account{0, []int{0}}, true},
		{"somebody's, and root reads everything", file{0o600, me, group}, account{0, []int{0}}, false},
		{"root's for a pod's group", file{0o440, 0, group}, account{me, []int{100, group}}, true},
		{"root's for a group that is not mine", file{0o440, 0, group}, account{me, []int{100}}, false},
		{"root's for a group, and I am root", file{0o440, 0, 0}, account{0, []int{0}}, false},
		{"root's for a group to write", file{0o660, 0, group}, account{me, []int{group}}, false},
		{"root's for all", file{0o444, 0, group}, account{me, []int{group}}, false},
		{"my own for a group", file{0o640, me, group}, account{me, []int{group}}, false},
		{"a device", file{0o600 | os.ModeDevice, me, group}, account{me, []int{group}}, false},
	} {
		if err := secret(tc.file, tc.as); (err == nil) != tc.good {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestParse(t *testing.T) {
	good := []string{"--module", "/m", "--token", "t", "--key-label", "k", "--pin-file", "/p"}
	if _, err := parse(good); err != nil {
		t.Fatal(err)
	}
	for name, more := range map[string][]string{
		"no module":         {"--module", ""},
		"relative module":   {"--module", "m.so"},
		"no token":          {"--token", ""},
		"no key":            {"--key-label", ""},
		"no PIN":            {"--pin-file", ""},
		"ID in plain text":  {"--key-id", "xyz"},
		"no sessions":       {"--sessions", "0"},
		"too many sessions": {"--sessions", "1025"},
		"an argument":       {"1234"},
		"the PIN":           {"--pin", "1234"},
	} {
		if _, err := parse(append(append([]string{}, good...), more...)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
