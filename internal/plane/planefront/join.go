// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// chunk is how many bytes are passed on at once.
const chunk = 64 << 10

// chunks are the buffers of connections that have something to pass on now.
var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// maxSaid is how much of what a client says is kept until the server answers: a ClientHello takes 2 KiB at most.
const maxSaid = 16 << 10

// pair is a client's connection and that to a server.
//
// A kernel accepts connections for a process that is just being killed, and resets them when the process has gone. The client's
// words are therefore kept until the server answers: a server that goes without a word is replaced, and the next server is
// told the same. With TLS these bytes are a ClientHello, which has no effect at a server, however many get it.
type pair struct {
	client *net.TCPConn
	server atomic.Pointer[net.TCPConn]
	other  func() *net.TCPConn // connects to another server; nil if there is none

	answered atomic.Bool
	mu       sync.Mutex // guards what follows, and writes to the server until it has answered
	said     []byte
	final    bool // no other server takes this one's place: there is none, or the client has said too much, or has ended
}

// join passes bytes between a client and a server until both directions have ended or the context does, and closes them.
// Most connections of a plane are idle most of the time: such a connection has no buffer and, unlike with splice(2), no
// pipes.
//
// The end of a direction is passed on as an end, a reset as a reset: an answer that was cut short must not look whole.
// ended is called if the server ends its direction before the client does; other is asked for a server in place of one
// that went without a word.
func join(ctx context.Context, client, server *net.TCPConn, other func() *net.TCPConn, ended func()) {
	p := &pair{client: client, other: other}
	p.server.Store(server)
	defer context.AfterFunc(ctx, p.reset)()
	var directions sync.WaitGroup
	var over atomic.Bool
	directions.Go(func() {
		p.toClient(ctx)
		if !over.Load() {
			ended()
		}
	})
	p.toServer()
	over.Store(true)
	directions.Wait()
	_ = client.Close()
	_ = p.server.Load().Close()
}

func (p *pair) reset() {
	reset(p.client)
	reset(p.server.Load())
}

// toServer passes on what the client says, and its end as such.
func (p *pair) toServer() {
	err := pump(p.client, p.say)
	if !p.answered.Load() {
		p.mu.Lock()
		p.final = true
		p.mu.Unlock()
	}
	if err != nil || p.server.Load().CloseWrite() != nil {
		p.reset() // broken: the other direction ends too
	}
}

func (p *pair) say(b []byte) error {
	if p.answered.Load() {
		p.said = nil
		_, err := p.server.Load().Write(b)
		return err
	}
	p.mu.Lock()
	p.final = p.final || len(p.said)+len(b) > maxSaid
	if p.final {
		p.said = nil
		p.mu.Unlock() // the server may take its time
		_, err := p.server.Load().Write(b)
		return err
	}
	p.said = append(p.said, b...)
	_, err := p.server.Load().Write(b)
	p.mu.Unlock()
	if p.answered.Load() {
		return err
	}
	return nil // the other direction learns it too, and tells another server
}

// toClient passes on what the server says, and its end as such.
func (p *pair) toClient(ctx context.Context) {
	hear := func(b []byte) error {
		p.answered.Store(true)
		_, err := p.client.Write(b)
		return err
	}
	err := pump(p.server.Load(), hear)
	for !p.answered.Load() && ctx.Err() == nil && p.replaced(ctx) {
		err = pump(p.server.Load(), hear)
	}
	if err != nil || ctx.Err() != nil || p.client.CloseWrite() != nil {
		p.reset() // broken: the other direction ends too
	}
}

// replaced tells another server what a server was told that went without a word.
func (p *pair) replaced(ctx context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var next *net.TCPConn
	if !p.final {
		next = p.other()
	}
	if next == nil {
		p.final = true
		return false
	}
	reset(p.server.Swap(next))
	if ctx.Err() != nil { // the other one may have been reset
		return false
	}
	if len(p.said) > 0 { // a write of nothing would take the error of a reset from the read that follows
		_, _ = next.Write(p.said) // a failure is one of the next read, too
	}
	return true
}

// pump passes on what is read, to the end; the end is no error.
func pump(from *net.TCPConn, write func([]byte) error) error {
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	for {
		var buffer *[chunk]byte
		var n int
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			buffer = chunks.Get().(*[chunk]byte) //nolint:forcetypeassert // the pool has no others
			for {
				n, failed = unix.Read(int(fd), buffer[:])
				if !errors.Is(failed, unix.EINTR) {
					break
				}
			}
			if errors.Is(failed, unix.EAGAIN) {
				chunks.Put(buffer)
				buffer = nil
				return false // until there is something
			}
			return true
		})
		if err == nil {
			err = failed
		}
		if err == nil && n == 0 {
			err = io.EOF
		}
		if err == nil {
			err = write(buffer[:n])
		}
		if buffer != nil {
			chunks.Put(buffer)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
