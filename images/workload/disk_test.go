// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{path}, "8192 \n"},
		{[]string{"-write", "hello", path}, "8192 hello\n"},
		{[]string{path}, "8192 hello\n"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), append([]string{"disk"}, test.args...), &out); err != nil || out.String() != test.want {
			t.Errorf("%v: %q, %v", test.args, out.String(), err)
		}
	}
	if err := run(t.Context(), []string{"disk"}, &bytes.Buffer{}); !errors.Is(err, errUsage) {
		t.Errorf("without a file: %v", err)
	}
	if err := run(t.Context(), []string{"disk", path + "x"}, &bytes.Buffer{}); err == nil {
		t.Error("a file that is not there")
	}
}

func TestFsync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"fsync", "-n", "3", path}, &out); err != nil {
		t.Fatal(err)
	}
	var median, p99 int
	if n, err := fmt.Sscanln(out.String(), &median, &p99); n != 2 || err != nil || median > p99 {
		t.Errorf("%q, %v", out.String(), err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 3*firstBytes {
		t.Errorf("%v, %v", info, err)
	}
	if err := run(t.Context(), []string{"fsync", "-n", "0", path}, &out); !errors.Is(err, errUsage) {
		t.Errorf("no times: %v", err)
	}
}
