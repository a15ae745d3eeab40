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

// join passes bytes between two connections until both directions have ended or the context does, and closes them. Most
// connections of a plane are idle most of the time: such a connection has no buffer and, unlike with splice(2), no pipes.
//
// The end of a direction is passed on as an end, a reset as a reset: an answer that was cut short must not look whole.
// ended is called if b ends its direction before a does.
func join(ctx context.Context, a, b *net.TCPConn, ended func()) {
	defer context.AfterFunc(ctx, func() { resetBoth(a, b) })()
	var directions sync.WaitGroup
	var over atomic.Bool
	directions.Go(func() {
		pass(a, b)
		if !over.Load() {
			ended()
		}
	})
	pass(b, a)
	over.Store(true)
	directions.Wait()
	_ = a.Close()
	_ = b.Close()
}

func resetBoth(a, b net.Conn) {
	reset(a)
	reset(b)
}

// pass passes one direction on, and its end as such.
func pass(to, from *net.TCPConn) {
	if err := pump(to, from); err != nil || to.CloseWrite() != nil {
		resetBoth(to, from) // broken: the other direction ends too
	}
}

func pump(to, from *net.TCPConn) error {
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
			_, err = to.Write(buffer[:n])
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
