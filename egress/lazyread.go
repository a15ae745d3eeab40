// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// longAgo is a deadline that is over.
var longAgo = time.Unix(1, 0)

// chunk is how much is read at once: the largest datagram.
const chunk = 64 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// lazyRead reads what comes to a socket and hands it on, until reading or use fails. A buffer is taken only when there is something to read:
// most of thousands of connections are idle. The end of a stream is io.EOF.
func lazyRead(socket syscall.Conn, stream bool, use func([]byte) error) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	for {
		var buffer *[chunk]byte
		var n int
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			buffer, _ = chunks.Get().(*[chunk]byte)
			for {
				n, failed = unix.Read(int(fd), buffer[:])
				if !errors.Is(failed, unix.EINTR) {
					break
				}
			}
			if errors.Is(failed, unix.EAGAIN) {
				chunks.Put(buffer)
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
			err = use(buffer[:n])
		}
		if buffer != nil {
			chunks.Put(buffer)
		}
		if err != nil {
			return err
		}
	}
}
