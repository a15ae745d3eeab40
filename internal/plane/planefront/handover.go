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
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/handover"
	"muster.dev/muster/internal/platform/socketdir"
)

// A front that is replaced gives its listener away, over a unix socket:
//
//	next                        the front that serves
//	connects
//	                            given, with the descriptor of the listener; later, if next was started before it
//	accepts
//	                            closes its sockets; says gone
//	accepts connections
//
// No connection is refused meanwhile: connections wait in one queue of the kernel's. A next front that ends before it
// accepts leaves the serving front as it was. Of several next fronts the first one that accepts gets the listener, and
// the others ask that one: the youngest has it in the end, which is the front that the supervisor watches.
const (
	given   = "listener\n"
	later   = "later\n"
	accepts = "accepts\n"
	gone    = "gone\n"
	// answerWithin is how long a front may take to answer another one. A serving front that takes longer hangs, and new
	// connections with it.
	answerWithin = 10 * time.Second
)

var (
	// errLost is of a serving front that ended, or gave the listener to another front.
	errLost = errors.New("the front that serves has not given its listener away")
	// errLater is of a serving front that was started later.
	errLater = errors.New("the front that serves was started later than this one")
)

// next is the path of the socket at which the next front takes the listener over.
func (f *Front) next() string { return filepath.Join(socketdir.Dir(f.config.Socket), "next") }

// listen takes the listener of the front that serves now over, or makes one if there is no front. When it returns, this
// front alone has it.
func (f *Front) listen(ctx context.Context) (net.Listener, error) {
	for began := time.Now(); ; {
		listener, err := f.takeOver(ctx)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) { // there is no front
			listener, err = f.bind(ctx)
		}
		switch {
		case err == nil:
			return listener, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, errLost) && !errors.Is(err, unix.EADDRINUSE) || time.Since(began) > busyFor:
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(busyEvery):
		}
	}
}

// bind makes a listener.
func (f *Front) bind(ctx context.Context) (net.Listener, error) {
	listener, err := (&net.ListenConfig{KeepAlive: -1}).Listen(ctx, "tcp", f.config.Listen.String())
	if err != nil {
		return nil, fmt.Errorf("listening at the published address: %w", err)
	}
	return listener, nil
}

// takeOver takes the listener of the front that serves now over.
func (f *Front) takeOver(ctx context.Context) (net.Listener, error) {
	connection, err := new(net.Dialer).DialContext(ctx, "unix", f.next())
	if err != nil {
		return nil, fmt.Errorf("asking the front that serves now: %w", err)
	}
	defer func() { _ = connection.Close() }()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	old := connection.(*net.UnixConn) //nolint:forcetypeassert // of a unix socket
	if err := old.SetDeadline(time.Now().Add(f.answerWithin)); err != nil {
		return nil, err
	}
	listener, err := receive(old)
	if err == nil && listener.Addr().String() != f.config.Listen.String() { // the plane has another address now
		_ = listener.Close()
		listener, err = f.bind(ctx)
	}
	if err == nil {
		if err = replace(old, time.Now().Add(f.answerWithin)); err == nil {
			return listener, nil
		}
		_ = listener.Close()
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errors.Join(errLost, f.end(ctx, old))
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return nil, fmt.Errorf("%w: %w", errLost, err)
	}
	return nil, fmt.Errorf("taking the listener of the front that serves now over: %w", err)
}

// receive is the first message to the next front.
func receive(old *net.UnixConn) (net.Listener, error) {
	text, file, err := handover.Receive(old)
	if err != nil {
		return nil, err
	}
	if text != given || file == nil {
		_ = file.Close() // which a nil one takes, too
		if text == later {
			return nil, errLater
		}
		return nil, fmt.Errorf("the answer is %.20q", text)
	}
	defer func() { _ = file.Close() }() // FileListener has one of its own
	return net.FileListener(file)
}

// replace is the rest of a handover at the next front.
func replace(old *net.UnixConn, deadline time.Time) error {
	if err := old.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := io.WriteString(old, accepts); err != nil {
		return err
	}
	answer := make([]byte, len(gone))
	if _, err := io.ReadFull(old, answer); err != nil {
		return err
	}
	if string(answer) != gone {
		return fmt.Errorf("it says %.20q", answer)
	}
	return nil
}

// giveAway gives the listener to the next front, and returns when that one accepts connections or the context ends.
// release closes this front's other sockets.
func (f *Front) giveAway(ctx context.Context, listener net.Listener, release func()) error {
	socket, err := socketdir.ListenPrivate(ctx, f.next())
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }()
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })()
	var nexts sync.WaitGroup
	defer nexts.Wait()
	var taken atomic.Bool
	for {
		connection, err := socket.Accept()
		if err != nil {
			if ctx.Err() != nil || taken.Load() {
				return nil
			}
			return err
		}
		next := connection.(*net.UnixConn) //nolint:forcetypeassert // of a unix socket
		nexts.Go(func() {
			defer func() { _ = next.Close() }()
			unheard := context.AfterFunc(ctx, func() { _ = next.Close() })
			err := f.give(next, listener)
			if !unheard() {
				return // this front has ended, or another next one was faster
			}
			if err != nil {
				f.noNext.Do(func() { f.config.Log.Warn("the next front has not taken over", "error", err) })
				return
			}
			if taken.Swap(true) {
				return
			}
			release()
			_ = socket.Close()
			_, _ = io.WriteString(next, gone)
		})
	}
}

// give sends the listener and waits until the next front accepts it.
func (f *Front) give(next *net.UnixConn, listener net.Listener) error {
	if err := next.SetDeadline(time.Now().Add(f.answerWithin)); err != nil {
		return err
	}
	pid, err := handover.Peer(next)
	if err != nil {
		return err
	}
	if handover.Older(pid) {
		_, err := io.WriteString(next, later)
		return errors.Join(fmt.Errorf("process %d was started before this one", pid), err)
	}
	if err := handover.Send(next, given, listener.(syscall.Conn)); err != nil { //nolint:forcetypeassert // a TCP listener
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
