// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"
)

// helloPatience is how long a client may take to say whom it wants, once it is connected.
const helloPatience = 10 * time.Second

// peekServerName reads the name of the server that a client asks for by TLS (RFC 6066, section 3), and returns it with
// all that was read, which its server has to be sent. A client that names none, or speaks something else, has no name.
// Nothing is answered.
func peekServerName(ctx context.Context, client net.Conn) (name string, read []byte, err error) {
	if err := client.SetReadDeadline(time.Now().Add(helloPatience)); err != nil {
		return "", nil, err
	}
	heard := &hearing{Conn: client}
	err = tls.Server(heard, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name = hello.ServerName
			return nil, errHeard
		},
	}).HandshakeContext(ctx)
	if heard.read.Len() == 0 {
		return "", nil, err
	}
	return name, heard.read.Bytes(), client.SetReadDeadline(time.Time{})
}

var errHeard = errors.New("the name was heard")

// hearing is a connection whose client is listened to and not answered.
type hearing struct {
	net.Conn
	read bytes.Buffer
}

// maxHello bounds what is read for a name; a client's first message has less.
const maxHello = 64 << 10

// Read reads from the client.
func (h *hearing) Read(part []byte) (int, error) {
	if h.read.Len() >= maxHello {
		return 0, io.ErrShortBuffer
	}
	n, err := h.Conn.Read(part)
	h.read.Write(part[:n])
	return n, err
}

// Write answers nothing.
func (h *hearing) Write(part []byte) (int, error) { return len(part), nil }

// Close leaves the connection to its server.
func (h *hearing) Close() error { return nil }

// SetDeadline leaves the deadlines as they are.
func (h *hearing) SetDeadline(time.Time) error { return nil }

// SetWriteDeadline leaves the deadlines as they are.
func (h *hearing) SetWriteDeadline(time.Time) error { return nil }
