// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// longestLife of a connection: with the next one, client certificates and authorities that were replaced are used.
	longestLife = time.Minute
	// dialWithin is how long it may take to connect, and sendBuffer is as much as a request has, so that it is sent at
	// once.
	dialWithin = 30 * time.Second
	sendBuffer = 8 << 10
	// longestAnswer is more than an object may have in etcd.
	longestAnswer = 4 << 20
)

// direct speaks HTTP/1.1 with one server. The calling goroutine writes to the connection and reads from it itself: the
// two goroutines that net/http has for each connection, and their being woken for each request, are a good part of what
// a request costs. It is for short requests and answers.
type direct struct {
	config *rest.Config

	mu   sync.Mutex
	idle []*link

	// Memory that requests need only while they are sent, and answers while they are read: most of the time both are
	// waited for.
	writers, buffers sync.Pool
}

// link is one connection, which one request uses at a time.
type link struct {
	net.Conn
	in   *bufio.Reader
	born time.Time
}

// body of an answer lies in memory that is used again when it is closed.
type body struct {
	bytes.Reader
	memory *bytes.Buffer
	spare  *sync.Pool
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.Reset(nil)
	if b.memory != nil {
		b.spare.Put(b.memory)
		b.memory = nil
	}
	return nil
}

// RoundTrip implements http.RoundTripper. The body of the answer has been read, so that its length is known.
func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	c, err := d.take(r)
	if err != nil {
		return nil, err
	}
	undisturbed := context.AfterFunc(r.Context(), func() { _ = c.Close() })
	answer, err := d.ask(c, r)
	if !undisturbed() {
		return nil, context.Cause(r.Context())
	}
	if err != nil || answer.Close || c.in.Buffered() > 0 { // unrequested bytes must not pass for the next answer
		_ = c.Close()
	} else {
		d.give(c)
	}
	return answer, err
}

func (d *direct) ask(c *link, r *http.Request) (*http.Response, error) {
	if err := d.send(c, r); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(c.in, r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode < http.StatusOK { // another would follow
		return nil, fmt.Errorf("the answer %s is not a final answer", answer.Status)
	}
	memory, ok := d.buffers.Get().(*bytes.Buffer)
	if !ok {
		memory = &bytes.Buffer{}
	}
	memory.Reset()
	if answer.ContentLength > 0 {
		memory.Grow(int(min(answer.ContentLength, longestAnswer)) + bytes.MinRead)
	}
	switch n, err := memory.ReadFrom(io.LimitReader(answer.Body, longestAnswer+1)); {
	case err != nil:
		return nil, err
	case n > longestAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", longestAnswer)
	}
	read := &body{memory: memory, spare: &d.buffers}
	read.Reset(memory.Bytes())
	answer.Body, answer.ContentLength = read, int64(memory.Len())
	return answer, nil
}

func (d *direct) send(c *link, r *http.Request) error {
	out, ok := d.writers.Get().(*bufio.Writer)
	if !ok {
		out = bufio.NewWriterSize(c, sendBuffer)
	}
	defer d.writers.Put(out)
	defer out.Reset(nil)
	out.Reset(c)
	if err := r.Write(out); err != nil {
		return err
	}
	return out.Flush()
}

// take returns the connection that was used last, or a new one.
func (d *direct) take(r *http.Request) (*link, error) {
	d.mu.Lock()
	if last := len(d.idle) - 1; last >= 0 {
		c := d.idle[last]
		d.idle = d.idle[:last]
		d.mu.Unlock()
		return c, nil
	}
	d.mu.Unlock()
	return d.dial(r.Context(), r.URL.Host, r.URL.Port())
}

func (d *direct) dial(ctx context.Context, address, port string) (*link, error) {
	config, err := rest.TLSConfigFor(d.config) // reads the files
	if err != nil {
		return nil, err
	}
	if port == "" {
		address = net.JoinHostPort(address, "https")
	}
	if config == nil { // the machine's own authorities
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.DynamicRecordSizingDisabled = true // a request is one record and one system call, not three
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &link{Conn: conn, in: bufio.NewReader(conn), born: time.Now()}
	time.AfterFunc(longestLife, func() { d.drop(c) })
	return c, nil
}

func (d *direct) give(c *link) {
	if time.Since(c.born) >= longestLife {
		_ = c.Close()
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = append(d.idle, c)
}

// drop closes a connection that nobody uses now; give closes the others.
func (d *direct) drop(c *link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := slices.Index(d.idle, c); at >= 0 {
		d.idle = slices.Delete(d.idle, at, at+1)
		_ = c.Close()
	}
}
