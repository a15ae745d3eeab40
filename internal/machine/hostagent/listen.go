// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"muster.dev/muster/internal/platform/splice"
)

// A listener over the wire is a connection that stays, by which the server says the name of each connection that a
// machine has made, a line each. The client asks for the connection by its name, which nobody else knows. The socket is
// gone when the first connection ends.

// maxWaiting is how many connections of a listener wait for the client to take them; others wait on the machine.
const maxWaiting = 16

// waiting are connections of machines that the client has not taken yet, by their names.
type waiting struct {
	mutex sync.Mutex
	all   map[string]taken
}

// taken is a connection, and a function that is called once it waits no more.
type taken struct {
	connection net.Conn
	done       func()
}

func (w *waiting) put(one taken) (name string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.all == nil {
		w.all = map[string]taken{}
	}
	name = rand.Text()
	w.all[name] = one
	return name
}

func (w *waiting) take(name string) (net.Conn, bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	one, ok := w.all[name]
	if !ok {
		return nil, false
	}
	delete(w.all, name)
	one.done()
	return one.connection, true
}

// listen answers for a socket until the client is gone, the server ends or the socket fails.
func (w *waiting) listen(rw http.ResponseWriter, r *http.Request, host Host) {
	ask, ok := read[Listen](rw, r)
	if !ok {
		return
	}
	listener, err := host.Listen(r.Context(), ask)
	if err != nil {
		write(rw, http.StatusConflict, faultOf(err))
		return
	}
	defer func() { _ = listener.Close() }()
	client, ok := takeOver(rw)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(ctx, func() { _, _ = client.Close(), listener.Close() })()
	go func() {
		_, _ = io.Copy(io.Discard, client) // the client says nothing: it ends
		cancel()
	}()
	room := make(chan struct{}, maxWaiting)
	var names []string
	defer func() {
		for _, name := range names {
			if left, ok := w.take(name); ok {
				_ = left.Close()
			}
		}
	}()
	for {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		name := w.put(taken{connection, func() { <-room }})
		names = append(w.left(names), name)
		if _, err := fmt.Fprintln(client, name); err != nil {
			return
		}
	}
}

// left are the names of connections that still wait.
func (w *waiting) left(names []string) []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var left []string
	for _, name := range names {
		if _, ok := w.all[name]; ok {
			left = append(left, name)
		}
	}
	return left
}

// accept answers with a connection that a machine has made.
func (w *waiting) accept(rw http.ResponseWriter, r *http.Request) {
	ask, ok := read[accept](rw, r)
	if !ok {
		return
	}
	inside, ok := w.take(ask.Name)
	if !ok {
		http.Error(rw, "no connection of that name waits", http.StatusNotFound)
		return
	}
	outside, ok := takeOver(rw)
	if !ok {
		_ = inside.Close()
		return
	}
	splice.Join(r.Context(), outside, inside)
}

// accept asks for a connection by its name.
type accept struct {
	Name string `json:"name"`
}

func (a accept) validate() error { return nil }

// takeOver makes the connection of a request one of bytes as they come.
func takeOver(w http.ResponseWriter) (net.Conn, bool) {
	connection, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "the connection cannot become another", http.StatusInternalServerError)
		return nil, false
	}
	_, err = connection.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + upgrade + "\r\n\r\n"))
	if err != nil || connection.SetDeadline(time.Time{}) != nil || buffered.Reader.Buffered() > 0 { // a client that did not wait for the answer
		_ = connection.Close()
		return nil, false
	}
	return connection, true
}

// Listen implements [Answerer].
func (c *Client) Listen(ctx context.Context, request Listen) (net.Listener, error) {
	names, err := c.stream(ctx, listening, request)
	if err != nil {
		return nil, err
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &remoteListener{client: c, names: names, lines: bufio.NewReaderSize(names, maxName), socket: request.Socket, ctx: own, cancel: cancel}, nil
}

// maxName bounds the name of a connection, in bytes.
const maxName = 64

// remoteListener is a socket on a machine of another host. Accept is called by one caller at a time.
type remoteListener struct {
	client *Client
	names  io.ReadWriteCloser
	lines  *bufio.Reader
	socket string
	ctx    context.Context //nolint:containedctx // an Accept of net.Listener has none, and ends with Close
	cancel context.CancelFunc
}

// Accept implements [net.Listener].
func (l *remoteListener) Accept() (net.Conn, error) {
	for {
		line, err := l.lines.ReadSlice('\n')
		if err != nil {
			return nil, fmt.Errorf("listening at %s of another host: %w", l.socket, net.ErrClosed)
		}
		stream, err := l.client.stream(l.ctx, accepting, accept{Name: string(line[:len(line)-1])})
		if l.ctx.Err() != nil {
			return nil, fmt.Errorf("listening at %s of another host: %w", l.socket, net.ErrClosed)
		}
		if err == nil {
			return connection(stream), nil
		}
		// The machine's connection is lost, and the next is not.
	}
}

// Close implements [net.Listener].
func (l *remoteListener) Close() error {
	l.cancel()
	return l.names.Close()
}

// Addr implements [net.Listener].
func (l *remoteListener) Addr() net.Addr { return &net.UnixAddr{Name: l.socket, Net: "unix"} }
