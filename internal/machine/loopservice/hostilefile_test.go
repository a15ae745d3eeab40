// SPDX-License-Identifier: Apache-2.0

// These tests mount file systems, so they need root.
package loopservice

import (
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/losetup"
	"muster.dev/muster/internal/platform/host/hosttest"
)

// A file that a machine passes must not get among those by which the service hears of its connections: a program of the
// machine's would then be asked whether the file is ready (FUSE), and the whole service would wait for the answer.
func TestPassedFileIsNotPolled(t *testing.T) {
	fuse := hosttest.MountFuse(t)
	m := start(t)
	fd, err := unix.Open(filepath.Join(fuse.Dir, hosttest.FuseFile), unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for request, why := range map[string]string{
		`{"op":"attach"}`: "FUSE",
		`{"op":"mount","fileSystem":{"type":"ext4"}}`: "FUSE",
		`{"op":"list"}`: "1 open files",
	} {
		if answer, err := exchange(t, m.socket(one), request, fd); err != nil || !strings.Contains(answer, why) {
			t.Errorf("%s: answers %q, %v; want %q", request, answer, err, why)
		}
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(fuse.End(), hosttest.FusePoll) {
		t.Error("the program of the file system was asked whether the file is ready")
	}
}

// exchange passes a descriptor with a request, and returns the answer.
func exchange(t *testing.T, socket, request string, fd int) (string, error) {
	t.Helper()
	if _, err := losetup.Ask(t.Context(), socket, losetup.Request{Op: losetup.List}, nil); err != nil { // it listens
		return "", err
	}
	connection, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	if _, _, err := connection.WriteMsgUnix([]byte(request+"\n"), unix.UnixRights(fd), nil); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(connection)
	return string(answer), err
}
