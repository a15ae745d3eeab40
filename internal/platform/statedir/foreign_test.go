// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckDirectory(t *testing.T) {
	dir, made := Dir(t.TempDir()), Dir(t.TempDir())
	for _, own := range []Dir{dir, made} {
		if err := errors.Join(os.Mkdir(own.Run(), 0o700), os.Mkdir(own.PKI(), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"machines", "pki", "run", "lost+found"} {
		write(filepath.Join(string(dir), name, "x"))
	}
	write(filepath.Join(string(dir), ".new-ports.json-123")) // after a crash in the middle of a write
	for _, known := range []Dir{dir, made, dir + "/missing"} {
		if err := CheckDirectory(known); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"thesis.tex", "photos", "a", "zzz"} {
		write(filepath.Join(string(dir), name))
	}
	err := CheckDirectory(dir)
	for _, want := range []string{"(a, photos, thesis.tex)", "--state-dir"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
	if err := CheckDirectory(Dir(filepath.Join(string(dir), "a"))); err == nil {
		t.Error("a file is no directory")
	}
}
