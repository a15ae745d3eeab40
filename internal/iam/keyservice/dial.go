// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// dial connects to the service, which then proves by its certificate that it is.
func (c ClientConfig) dial(ctx context.Context) (net.Conn, error) {
	if c.Address != "" {
		return new(net.Dialer).DialContext(ctx, "tcp", c.Address)
	}
	return dialSocket(ctx, c.Socket)
}

// dialSocket connects to the socket and checks its listener: root, or the user of this process. Anybody else who got
// hold of the path is sent nothing.
func dialSocket(ctx context.Context, socket string) (net.Conn, error) {
	connection, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	peer, err := peerOf(connection)
	if err == nil && !trustedPeer(peer.Uid, os.Geteuid()) {
		err = fmt.Errorf("user %d listens on %s; only root or user %d may", peer.Uid, socket, os.Geteuid())
	}
	if err != nil {
		_ = connection.Close() // nothing was said
		return nil, err
	}
	return connection, nil
}

func trustedPeer(uid uint32, own int) bool { return uid == 0 || int64(uid) == int64(own) }

// peerOf asks the kernel for the process at the other end (SO_PEERCRED, unix(7)).
func peerOf(connection net.Conn) (*unix.Ucred, error) {
	with, ok := connection.(syscall.Conn)
	if !ok {
		return nil, errors.New("the connection is not a socket")
	}
	raw, err := with.SyscallConn()
	if err != nil {
		return nil, err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, fmt.Errorf("reading the peer credentials of the socket: %w", failed)
	}
	return peer, nil
}
