// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// question is a request as it goes over an HTTP/2 connection, its stream's number left out: nothing is put together
// while it is measured.
type question []byte

// newQuestion makes one. Headers come after those that each request has.
func newQuestion(method, authority, path, body string, headers ...hpack.HeaderField) (question, error) {
	var block, frames bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encoder.SetMaxDynamicTableSize(0) // so that it means the same on each connection
	for _, h := range append([]hpack.HeaderField{
		{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: authority}, {Name: ":path", Value: path},
	}, headers...) {
		if err := encoder.WriteField(h); err != nil {
			return nil, err
		}
	}
	framer := http2.NewFramer(&frames, nil)
	framer.AllowIllegalWrites = true // stream 0
	if err := framer.WriteHeaders(http2.HeadersFrameParam{BlockFragment: block.Bytes(), EndHeaders: true, EndStream: body == ""}); err != nil {
		return nil, err
	}
	if body != "" {
		if err := framer.WriteData(0, true, []byte(body)); err != nil {
			return nil, err
		}
	}
	return frames.Bytes(), nil
}

// frameHeader is how long a frame's header is, and streamAt where in it the stream is (RFC 9113, 4.1).
const frameHeader, streamAt = 9, 5

// stream puts a stream's number in, and tells how much of the server's window it takes.
func (q question) stream(id uint32) (data int64) {
	for rest := q; len(rest) >= frameHeader; {
		length := int(rest[0])<<16 | int(rest[1])<<8 | int(rest[2])
		if http2.FrameType(rest[3]) == http2.FrameData {
			data += int64(length)
		}
		binary.BigEndian.PutUint32(rest[streamAt:], id)
		rest = rest[frameHeader+length:]
	}
	return data
}

// streams are as many requests as are open at once on a connection: API servers take 100
// (--http2-max-streams-per-connection).
const streams = 100

// wire is one HTTP/2 connection. Whoever asks does not wait for the answer, and one goroutine reads all answers: a
// request costs the load two system calls and no garbage.
type wire struct {
	conn   *tls.Conn
	answer func(n int, status string, body []byte) // called for each, n as it was asked with; status "" if there is none
	slots  chan struct{}

	mu     sync.Mutex
	framer *http2.Framer // for writing
	next   uint32
	asked  map[uint32]int
	window int64
	ended  bool
	done   chan struct{}
}

// dialWire connects, and answers from then on.
func dialWire(ctx context.Context, address string, config *tls.Config, answer func(int, string, []byte)) (*wire, error) {
	dialer := tls.Dialer{Config: config}
	c, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	conn, ok := c.(*tls.Conn)
	if !ok || conn.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
		return nil, errors.Join(fmt.Errorf("%s does not speak HTTP/2", address), c.Close())
	}
	w := &wire{
		conn: conn, answer: answer, slots: make(chan struct{}, streams), framer: http2.NewFramer(conn, nil), next: 1, asked: map[uint32]int{}, window: 65535, done: make(chan struct{}),
	}
	_, err = conn.Write([]byte(http2.ClientPreface))
	if err := errors.Join(err, w.framer.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0}), w.framer.WriteWindowUpdate(0, 1<<30)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go w.read()
	return w, nil
}

// ask sends a request, and notes when. It waits while as many are open as may be.
func (w *wire) ask(ctx context.Context, n int, q question, sent *time.Time) error {
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.done:
	}
	*sent = time.Now()
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		w.answer(n, "", nil)
		return nil
	}
	defer w.mu.Unlock()
	if w.window -= q.stream(w.next); w.window < 0 {
		return errors.New("the server does not take more, which its window should be too large for")
	}
	w.asked[w.next] = n
	w.next += 2
	_, _ = w.conn.Write(q) // if it fails, reading does
	return nil
}

// read reads answers until the connection ends, which it does when the server wants it to.
func (w *wire) read() {
	framer := http2.NewFramer(nil, w.conn)
	framer.SetReuseFrames()
	framer.ReadMetaHeaders = hpack.NewDecoder(0, nil)
	statuses, bodies := map[uint32]string{}, map[uint32][]byte{}
	var err error
	for err == nil && !w.left() {
		var frame http2.Frame
		if frame, err = framer.ReadFrame(); err != nil {
			break
		}
		id, ended := frame.Header().StreamID, false
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			if statuses[id] == "" { // and not a trailer
				statuses[id] = f.PseudoValue("status")
			}
			ended = f.StreamEnded()
		case *http2.DataFrame:
			bodies[id] = append(bodies[id], f.Data()...)
			ended = f.StreamEnded()
		case *http2.RSTStreamFrame:
			statuses[id], ended = "", true
		case *http2.GoAwayFrame:
			w.leave() // requests that were accepted are answered still, and requests on their way never
		default:
			err = w.control(frame)
		}
		if ended {
			status, body := statuses[id], bodies[id]
			delete(statuses, id)
			delete(bodies, id)
			w.finish(id, status, body)
		}
	}
	w.leave()
	w.mu.Lock()
	open := w.asked
	w.asked = map[uint32]int{}
	w.mu.Unlock()
	_ = w.conn.Close() // there is nobody to tell
	for _, n := range open {
		w.answer(n, "", nil)
	}
}

// leave has nobody ask any more.
func (w *wire) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended = true
		close(w.done)
	}
}

// left reports whether nobody asks, and nothing is open.
func (w *wire) left() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended && len(w.asked) == 0
}

// control answers what is about the connection.
func (w *wire) control(frame http2.Frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return w.framer.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return w.framer.WritePing(true, f.Data)
		}
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			w.window += int64(f.Increment)
		}
	}
	return nil
}

func (w *wire) finish(id uint32, status string, body []byte) {
	w.mu.Lock()
	n, ok := w.asked[id]
	delete(w.asked, id)
	w.mu.Unlock()
	if ok {
		w.answer(n, status, body)
		<-w.slots
	}
}

func (w *wire) close() {
	_ = w.conn.Close() // whatever was asked was answered
	<-w.done
}
