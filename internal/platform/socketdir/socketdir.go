// SPDX-License-Identifier: Apache-2.0

// Package socketdir makes unix sockets that processes with a view of their own (package seclude) are shown. A socket is
// another file each time that its process starts, and only in a directory does a view show what comes later. So the
// path of a socket is a link to one in a directory of its own, and whoever is shown the directory may connect. The
// directory stays when the socket goes. The directory above it must be closed to other users.
package socketdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// name of a socket in its directory.
const name = "s"

// Dir is the directory of the socket at a path.
func Dir(path string) string { return strings.TrimSuffix(path, filepath.Ext(path)) }

// Link is where the link at a path leads.
func Link(path string) string { return filepath.Join(filepath.Base(Dir(path)), name) }

// Make makes the directory of a socket, and the link, in place of a socket that an earlier version made there. An
// existing directory and link stay as they are.
func Make(path string) error {
	if err := MakeDir(path); err != nil {
		return err
	}
	if target, err := os.Readlink(path); err == nil && target == Link(path) {
		return nil
	}
	made := Dir(path) + ".new"
	if err := os.Remove(made); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the rest of a link to a socket: %w", err)
	}
	if err := os.Symlink(Link(path), made); err != nil {
		return fmt.Errorf("making a link to a socket: %w", err)
	}
	if err := os.Rename(made, path); err != nil {
		return fmt.Errorf("making a link to a socket: %w", err)
	}
	return nil
}

// MakeDir makes the directory of a socket alone.
func MakeDir(path string) error {
	if err := os.Mkdir(Dir(path), 0o711); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // G301: who sees it may connect
		return fmt.Errorf("making the directory of a socket: %w", err)
	}
	if err := os.Chmod(Dir(path), 0o711); err != nil && !errors.Is(err, fs.ErrPermission) { //nolint:gosec // G302: as above, whatever the umask
		return fmt.Errorf("opening the directory of a socket: %w", err)
	}
	return nil
}

// Listen listens at a path, in place of a process that was killed. The link goes with the listener.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := Make(path); err != nil {
		return nil, err
	}
	at := filepath.Join(Dir(path), name)
	inner, err := ListenPrivate(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(at, 0o666); err != nil { //nolint:gosec // G302: who sees it may connect
		return nil, errors.Join(fmt.Errorf("opening a socket: %w", err), inner.Close())
	}
	return Adopt(path, inner.(*net.UnixListener)), nil //nolint:forcetypeassert // of a unix socket
}

// Adopt is what [Listen] returned for a path to another process, which handed the listener over.
func Adopt(path string, inner *net.UnixListener) net.Listener {
	inner.SetUnlinkOnClose(true)
	return &listener{UnixListener: inner, path: path}
}

type listener struct {
	*net.UnixListener
	path  string
	stays bool
}

// SetUnlinkOnClose says whether the socket and the link to it go with the listener, as they do by default.
func (l *listener) SetUnlinkOnClose(unlink bool) {
	l.UnixListener.SetUnlinkOnClose(unlink)
	l.stays = !unlink
}

// Close removes the socket and the link to it.
func (l *listener) Close() error {
	err := l.UnixListener.Close()
	if !l.stays {
		_ = os.Remove(l.path) // in a view it stays
	}
	return err
}

// Remove removes a socket whose processes have ended, and its directory.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(Dir(path))
}
