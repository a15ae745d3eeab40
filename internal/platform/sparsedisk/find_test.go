// SPDX-License-Identifier: Apache-2.0

package sparsedisk

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/loopdevice"
)

func TestFind(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	if path, err := find(mkfs); err != nil || !strings.HasSuffix(path, "sbin/"+mkfs) {
		t.Errorf("%q, %v", path, err)
	}
	if _, err := find("mkfs.none"); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "install e2fsprogs") {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{nil: false, loopdevice.ErrUnsupported: true, unix.ENODEV: true, unix.EPERM: true, fs.ErrPermission: true, unix.EIO: false, unix.ENOSPC: false} {
		if got := errors.Is(unsupported(err), ErrUnsupported); got != want {
			t.Errorf("%v says that the host cannot: %v", err, got)
		}
	}
}
