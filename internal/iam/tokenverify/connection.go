// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// connection is one to STS. It is used by one question at a time.
type connection struct {
	net      net.Conn // with TLS, if there is any
	socket   syscall.RawConn
	answer   budget
	reader   *bufio.Reader
	request  []byte
	reusable bool // the last answer ended where it should
	used     bool // it was idle
	since    time.Time
}

func newConnection(raw, secured net.Conn) (*connection, error) {
	tcp, ok := raw.(syscall.Conn)
	if !ok {
		return nil, errors.New("the connection is not a socket")
	}
	socket, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &connection{net: secured, socket: socket, answer: budget{net: secured}, reader: bufio.NewReader(nil)}, nil
}

// maxBytes of an answer, with its header and the overhead of chunks.
const maxBytes = maxHeader + 2*maxAnswer

// ask sends a question and reads the answer.
func (c *connection) ask(ctx context.Context, host, query, header string) (response, error) {
	c.reusable = false
	deadline, _ := ctx.Deadline() // without a deadline the connection has none either
	if err := c.net.SetDeadline(deadline); err != nil {
		return response{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.net.SetDeadline(longAgo()) }) // of a closed connection it does not matter
	r, clean, err := c.exchange(host, query, header)
	switch stopped := stop(); {
	case err != nil && ctx.Err() != nil:
		return response{}, ctx.Err()
	case err == nil && stopped:
		c.reusable = clean && c.silent()
	}
	return r, err
}

// longAgo is a deadline that has passed.
func longAgo() time.Time { return time.Unix(1, 0) }

// exchange also reports whether the connection can be used again.
func (c *connection) exchange(host, query, header string) (r response, clean bool, err error) {
	c.request = append(c.request[:0], "GET /?"...)
	c.request = append(c.request, query...)
	c.request = append(c.request, " HTTP/1.1\r\nHost: "...)
	c.request = append(c.request, host...)
	c.request = append(c.request, header...)
	c.answer.left, c.answer.read, c.answer.err = maxBytes, 0, nil
	c.reader.Reset(&c.answer)
	_, err = c.net.Write(c.request)
	clear(c.request) // its holder can be the caller
	if err != nil {
		return response{}, false, err
	}
	answer, err := http.ReadResponse(c.reader, nil) //nolint:bodyclose // it is read to its end, or the connection is closed
	if err != nil {
		return response{}, false, c.wrong(err)
	}
	if r, err = readBody(answer); err != nil {
		return r, false, c.wrong(err)
	}
	return r, !answer.Close && answer.ProtoAtLeast(1, 1) && answer.StatusCode >= 200, nil
}

// wrong tells what went wrong. An answer that is not HTTP is not repeated.
func (c *connection) wrong(err error) error {
	switch {
	case c.answer.err != nil:
		return fmt.Errorf("reading the header of the answer: %w", c.answer.err)
	case errors.Is(err, errNotSTS):
		return err
	}
	return fmt.Errorf("%w: it is not HTTP", errNotSTS)
}

// answered tells that some of an answer came.
func (c *connection) answered() bool { return c.answer.read > 0 }

// silent tells that nothing came behind the answer, which would be taken for the next one. The reader and TLS may hold
// what has left the socket.
func (c *connection) silent() bool {
	if c.net.SetReadDeadline(longAgo()) != nil {
		return false
	}
	_, err := c.reader.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// quiet tells that the other end has neither hung up since, nor said anything.
func (c *connection) quiet() bool {
	quiet := false
	err := c.socket.Control(func(fd uintptr) {
		ready := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP}} //nolint:gosec // G115: a descriptor
		n, err := unix.Poll(ready[:], 0)
		quiet = n == 0 && err == nil
	})
	return err == nil && quiet
}

// budget reads so many bytes at most, and knows how reading ended.
type budget struct {
	net  net.Conn
	left int
	read int
	err  error
}

// Read reads.
func (b *budget) Read(p []byte) (n int, err error) {
	if b.left <= 0 {
		b.err = fmt.Errorf("%w: it has more than %d bytes", errNotSTS, maxBytes)
		return 0, b.err
	}
	n, err = b.net.Read(p[:min(len(p), b.left)])
	b.left -= n
	b.read += n
	if err != nil {
		b.err = err
	}
	return n, err
}
