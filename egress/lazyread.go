// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"
)

// longAgo is a deadline that is over.
var longAgo = time.Unix(1, 0)

// chunk is how much is read at once: the largest datagram.
const chunk = 64 << 10

// buffers are what is read into, all of one size.
type buffers struct{ pool sync.Pool }

func newBuffers(size int) *buffers {
	return &buffers{sync.Pool{New: func() any { b := make([]byte, size); return &b }}}
}

func (b *buffers) get() *[]byte {
	one, _ := b.pool.Get().(*[]byte)
	return one
}

func (b *buffers) put(one *[]byte) { b.pool.Put(one) }

// chunks are for datagrams, and for connections that move much; fewChunks for those of a machine that has many.
var chunks, fewChunks = newBuffers(chunk), newBuffers(chunk / 8)

// lazyRead reads what comes to a socket and hands it on, until reading or use fails. A buffer is taken only when there
// is something to read: most of thousands of connections are idle. The end of a stream is io.EOF.
func lazyRead(socket syscall.Conn, stream bool, from *buffers, use func([]byte) error) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	for {
		var buffer *[]byte
		var n int
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			buffer = from.get()
			for {
				n, failed = unix.Read(int(fd), *buffer)
				if !errors.Is(failed, unix.EINTR) {
					break
				}
			}
			if errors.Is(failed, unix.EAGAIN) {
				from.put(buffer)
				buffer = nil
				return false
			}
			return true
		})
		if err == nil {
			err = failed
		}
		if err == nil && n == 0 && stream {
			err = io.EOF
		}
		if err == nil {
			err = use((*buffer)[:n])
		}
		if buffer != nil {
			from.put(buffer)
		}
		if err != nil {
			return err
		}
	}
}

// endpointOf is the end of a connection or flow in the network stack.
type endpointOf struct {
	tcpip.Endpoint
	queue *waiter.Queue
}

// lazyReadInside is lazyRead for what comes from a machine, until the context ends, too.
func lazyReadInside(ctx context.Context, inside endpointOf, from *buffers, use func([]byte) error) error {
	entry, readable := waiter.NewChannelEntry(waiter.ReadableEvents | waiter.EventRdHUp | waiter.EventHUp | waiter.EventErr)
	inside.queue.EventRegister(&entry)
	defer inside.queue.EventUnregister(&entry)
	for {
		buffer := from.get()
		writer := tcpip.SliceWriter(*buffer)
		result, failed := inside.Read(&writer, tcpip.ReadOptions{})
		var err error
		if failed == nil {
			err = use((*buffer)[:result.Count])
		}
		from.put(buffer)
		if err != nil {
			return err
		}
		switch failed.(type) {
		case nil:
			continue
		case *tcpip.ErrWouldBlock:
		case *tcpip.ErrClosedForReceive:
			return io.EOF
		default:
			return errors.New(failed.String())
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-readable:
		}
	}
}
