// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/handover"
	"muster.dev/muster/internal/platform/socketdir"
)

// published is the name of the one socket that a front hands over. Fronts of releases before say no more than that.
const published = "listener"

// next is the path of the socket at which the next front takes the listener over.
func (f *Front) next() string { return filepath.Join(socketdir.Dir(f.config.Socket), "next") }

// handover is how the listener goes from front to front. A front that does not answer hangs, and is killed: clients make new
// connections, which it would not accept.
func (f *Front) handover() handover.Config {
	return handover.Config{Path: f.next(), Only: published, Patience: f.answerWithin, Log: f.config.Log}
}

// listen takes the listener of the front that serves now over, or makes one if there is no front. When it returns, this
// front alone has it.
func (f *Front) listen(ctx context.Context) (net.Listener, error) {
	for began := time.Now(); ; {
		listener, err := f.takeOver(ctx)
		if errors.Is(err, handover.ErrNobody) {
			listener, err = f.bind(ctx)
		}
		switch {
		case err == nil:
			return listener, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, handover.ErrLost) && !errors.Is(err, unix.EADDRINUSE) || time.Since(began) > busyFor:
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
	var listener net.Listener
	err := f.handover().Take(ctx, func(sockets map[string]*os.File) (err error) {
		defer handover.Close(sockets) // FileListener has one of its own
		listener, err = net.FileListener(sockets[published])
		if err == nil && listener.Addr().String() != f.config.Listen.String() { // the plane has another address now
			_ = listener.Close()
			listener, err = f.bind(ctx)
		}
		return err
	})
	if err != nil && listener != nil {
		_ = listener.Close()
	}
	return listener, err
}

// giveAway gives the listener to the next front, and returns when that one accepts connections or the context ends.
// release closes this front's other sockets.
func (f *Front) giveAway(ctx context.Context, listener net.Listener, release func()) error {
	door, err := socketdir.ListenPrivate(ctx, f.next())
	if err != nil {
		return err
	}
	return f.handover().Offer(ctx, door, func() (map[string]syscall.Conn, func() error) {
		return map[string]syscall.Conn{published: listener.(syscall.Conn)}, func() error { return nil } //nolint:forcetypeassert // a TCP listener
	}, release)
}
