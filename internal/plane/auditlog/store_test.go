// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Whatever the API server puts where the log of security is to be, nothing else of the host is written to.
func TestOpenOwn(t *testing.T) {
	for name, put := range map[string]func(path, other string) error{
		"nothing":        func(string, string) error { return nil },
		"a link":         func(path, other string) error { return os.Symlink(other, path) },
		"another's name": func(path, other string) error { return os.Link(other, path) },
		"a pipe":         func(path, _ string) error { return syscall.Mkfifo(path, 0o666) },
		"a directory":    func(path, _ string) error { return os.MkdirAll(filepath.Join(path, "in"), 0o700) },
		"another's file": func(path, _ string) error {
			if err := os.WriteFile(path, nil, 0o600); err != nil || os.Geteuid() != 0 {
				return err
			}
			return os.Chown(path, 1234, 1234)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, other := filepath.Join(dir, "security.log"), filepath.Join(dir, "other")
			if err := os.WriteFile(other, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := put(path, other); err != nil {
				t.Fatal(err)
			}
			file, err := openOwn(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			if _, err := file.WriteString("line\n"); err != nil {
				t.Fatal(err)
			}
			if raw, err := os.ReadFile(other); err != nil || string(raw) != "precious" {
				t.Errorf("the other file has %q, %v", raw, err)
			}
			if raw, err := os.ReadFile(path); err != nil || string(raw) != "line\n" {
				t.Errorf("the log has %q, %v", raw, err)
			}
		})
	}
}
