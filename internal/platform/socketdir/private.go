// SPDX-License-Identifier: Apache-2.0

package socketdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ListenPrivate makes a unix socket that its owner alone can use, in place of a socket that a killed process left;
// another file at the path is an error. The socket is private from its first moment on, whatever the umask: the kernel
// gives its file the mode that the socket has when it is bound. The directory of the socket must be private, and no
// view shows it.
func ListenPrivate(ctx context.Context, path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	private := net.ListenConfig{Control: func(_, _ string, socket syscall.RawConn) error {
		var err error
		return errors.Join(socket.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }), err)
	}}
	listener, err := private.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening on a socket: %w", err)
	}
	return listener, nil
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	if err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return fmt.Errorf("listening on %s: there is a file that is not a socket", path)
		}
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a stale socket: %w", err)
	}
	return nil
}
