// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/socketdir"
)

// A front that is replaced gives its listener away, over a unix socket: the next front connects, the old one sends the
// listener's file descriptor, the next one says that it accepts, and the old one closes the connection when its sockets
// are gone. From the second message on both accept, and no connection is refused meanwhile: connections wait in one queue
// of the kernel's. A next front that dies before the third message leaves the old one as it was.
const (
	given   = "listener\n"
	accepts = "accepts\n"
	// handoverTimeout is how long the next front may take from the first message to the third.
	handoverTimeout = 10 * time.Second
)

// handover is the path of the socket at which the next front takes the listener over.
func (f *Front) handover() string { return filepath.Join(socketdir.Dir(f.config.Socket), "next") }

// listen takes the listener of the front that serves now over, or makes one if there is no front. before is the
// connection to that front; nil if there is none.
func (f *Front) listen(ctx context.Context) (listener net.Listener, before net.Conn, err error) {
	before, err = new(net.Dialer).DialContext(ctx, "unix", f.handover())
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) {
		listener, err = f.bind(ctx)
		return listener, nil, err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("asking the front that serves now: %w", err)
	}
	listener, err = receive(before)
	if err == nil && listener.Addr().String() != f.config.Listen.String() {
		_ = listener.Close()
		err = fmt.Errorf("it listens at %s, and %s is wanted", listener.Addr(), f.config.Listen)
	}
	if err != nil {
		_ = before.Close()
		return nil, nil, fmt.Errorf("taking the listener of the front that serves now over: %w", err)
	}
	return listener, before, nil
}

// bind makes a listener, once nobody else has the address.
func (f *Front) bind(ctx context.Context) (net.Listener, error) {
	for began := time.Now(); ; {
		listener, err := (&net.ListenConfig{KeepAlive: -1}).Listen(ctx, "tcp", f.config.Listen.String())
		if err == nil {
			return listener, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) || time.Since(began) > busyFor {
			return nil, fmt.Errorf("listening at the published address: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(busyEvery):
		}
	}
}

// replace is the third message. It returns when the front before has closed its sockets, which are this one's then.
func (f *Front) replace(before net.Conn) {
	defer func() { _ = before.Close() }()
	_, err := io.WriteString(before, accepts)
	if err == nil {
		_, err = io.Copy(io.Discard, before)
	}
	if err != nil {
		f.config.Log.Warn("the front before has not said that it is replaced", "error", err)
	}
}

// receive is the second message.
func receive(old net.Conn) (net.Listener, error) {
	if err := old.SetDeadline(time.Now().Add(handoverTimeout)); err != nil {
		return nil, err
	}
	text, rights := make([]byte, len(given)), make([]byte, unix.CmsgSpace(4))
	n, m, flags, _, err := old.(*net.UnixConn).ReadMsgUnix(text, rights)
	if err != nil {
		return nil, err
	}
	var fds []int
	if messages, err := unix.ParseSocketControlMessage(rights[:m]); err == nil && len(messages) == 1 {
		fds, _ = unix.ParseUnixRights(&messages[0])
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	if string(text[:n]) != given || len(fds) != 1 || flags&unix.MSG_CTRUNC != 0 {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return nil, fmt.Errorf("the answer is %.20q with %d descriptors", text[:n], len(fds))
	}
	file := os.NewFile(uintptr(fds[0]), "listener")
	defer func() { _ = file.Close() }() // FileListener has one of its own
	return net.FileListener(file)
}

// giveAway waits for the next front, and returns nil when that one accepts connections or the context ends. release
// closes this front's other socket.
func (f *Front) giveAway(ctx context.Context, listener net.Listener, release func()) error {
	for {
		socket, err := socketdir.ListenPrivate(ctx, f.handover())
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
		next, err := socket.Accept()
		stop()
		_ = socket.Close() // one front at a time takes over
		if ctx.Err() != nil {
			if err == nil {
				_ = next.Close()
			}
			return nil
		}
		if err == nil {
			if err = give(next, listener); err == nil {
				release()
			}
			_ = next.Close()
		}
		if err == nil {
			return nil
		}
		f.config.Log.Warn("the next front has not taken over", "error", err)
	}
}

// give sends the second message and waits for the third.
func give(next net.Conn, listener net.Listener) error {
	if err := next.SetDeadline(time.Now().Add(handoverTimeout)); err != nil {
		return err
	}
	raw, err := listener.(syscall.Conn).SyscallConn() //nolint:forcetypeassert // a TCP listener
	if err != nil {
		return err
	}
	var sent error
	err = raw.Control(func(fd uintptr) {
		_, _, sent = next.(*net.UnixConn).WriteMsgUnix([]byte(given), unix.UnixRights(int(fd)), nil)
	})
	if err := errors.Join(err, sent); err != nil {
		return err
	}
	answer := make([]byte, len(accepts))
	if _, err := io.ReadFull(next, answer); err != nil {
		return fmt.Errorf("it does not say that it accepts: %w", err)
	}
	if string(answer) != accepts {
		return fmt.Errorf("it says %q", answer)
	}
	return nil
}
