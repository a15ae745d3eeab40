// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/handover"
	"muster.dev/muster/internal/platform/process"
	"muster.dev/muster/internal/platform/socketdir"
)

// A relay that is replaced gives its sockets away, over a unix socket:
//
//	next                        the relay that serves
//	connects
//	                            one message for each socket: its name, with the descriptor; then all. Later instead, if
//	                            next was started before it
//	accepts
//	                            closes its sockets, releases the lock; says gone
//	takes the lock, accepts connections
//
// No connection is refused meanwhile: connections wait in queues of the kernel's. A next relay that ends before it
// accepts leaves the serving one as it was. A relay of a release that handed nothing over is ended instead.
const (
	all     = "all\n"
	later   = "later\n"
	accepts = "accepts\n"
	gone    = "gone\n"
	// answerWithin is how long a relay may take to answer another one. A serving relay that takes longer hangs.
	answerWithin = 10 * time.Second
	// busyFor is how long another relay may have the lock and be neither asked nor ended, as one that begins or ends;
	// busyEvery is the pause between two looks.
	busyFor   = 20 * time.Second
	busyEvery = 20 * time.Millisecond
	// askAgain is the pause of a relay that could not accept the next one's connection, as without a file descriptor.
	askAgain = 100 * time.Millisecond
	// leaveAfter is how long a relay that was replaced keeps connections.
	leaveAfter = 24 * time.Hour
)

var (
	// errLost is of a serving relay that ended, or gave its sockets to another one.
	errLost = errors.New("the relay that serves has not given its sockets away")
	// errLater is of a serving relay that was started later.
	errLater = errors.New("the relay that serves was started later than this one")
)

// next is the path of the socket at which the next relay takes over.
func (r *Relay) next() string { return filepath.Join(socketdir.Dir(r.config.Socket), "next") }

// obtain takes the lock of the network, and over what the relay that serves now listens on, if there is one.
func (r *Relay) obtain(ctx context.Context) (release func(), inherited map[string]*os.File, err error) {
	if err := socketdir.MakeDir(r.config.Socket); err != nil {
		return nil, nil, err
	}
	for began := time.Now(); ; {
		inherited, err := r.takeOver(ctx)
		nobody := isNobody(err)
		if err == nil || nobody {
			if release, err = filelock.Take(r.config.Network.dir, lockName); err == nil {
				return release, inherited, nil
			}
			closeFiles(inherited)
		}
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case errors.Is(err, filelock.ErrTaken):
			if ended := r.endFormer(ctx); ended != nil {
				return nil, nil, ended
			}
			err = fmt.Errorf("another relay of this VPC is running: %w", err)
		case !errors.Is(err, errLost):
			return nil, nil, err
		}
		if time.Since(began) > busyFor {
			return nil, nil, err
		}
		pause(ctx, busyEvery)
	}
}

// isNobody reports whether nobody listens at a socket.
func isNobody(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED)
}

// takeOver takes over what the relay that serves now listens on.
func (r *Relay) takeOver(ctx context.Context) (map[string]*os.File, error) {
	old, err := r.ask(ctx, r.next())
	if err != nil {
		return nil, err
	}
	defer func() { _ = old.Close() }()
	defer context.AfterFunc(ctx, func() { _ = old.Close() })()
	sockets, err := receive(old)
	if err == nil {
		if err = replace(old); err == nil {
			return sockets, nil
		}
		closeFiles(sockets)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errors.Join(errLost, r.end(ctx, old))
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return nil, fmt.Errorf("%w: %w", errLost, err)
	}
	return nil, fmt.Errorf("taking over from the relay that serves now: %w", err)
}

// ask connects to a socket of the relay that serves now.
func (r *Relay) ask(ctx context.Context, socket string) (*net.UnixConn, error) {
	connection, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("asking the relay that serves now: %w", err)
	}
	return connection.(*net.UnixConn), connection.SetDeadline(time.Now().Add(r.answerWithin)) //nolint:forcetypeassert // of a unix socket
}

// receive is the first half of a handover at the next relay.
func receive(old *net.UnixConn) (map[string]*os.File, error) {
	sockets := map[string]*os.File{}
	for {
		text, file, err := handover.Receive(old)
		switch {
		case err != nil:
		case file != nil:
			sockets[strings.TrimSuffix(text, "\n")] = file
			continue
		case text == all:
			return sockets, nil
		case text == later:
			err = errLater
		default:
			err = fmt.Errorf("it says %.20q", text)
		}
		closeFiles(sockets)
		return nil, err
	}
}

// replace is the rest.
func replace(old *net.UnixConn) error {
	if _, err := io.WriteString(old, accepts); err != nil {
		return err
	}
	answer, _, err := handover.Receive(old)
	if err == nil && answer != gone {
		err = fmt.Errorf("it says %.20q", answer)
	}
	return err
}

// endFormer ends a relay that has the lock and serves, but gives nothing away: one of an earlier release.
func (r *Relay) endFormer(ctx context.Context) error {
	former, err := r.ask(ctx, r.config.Socket)
	if err != nil {
		return nil // it does not serve yet, or not any more
	}
	defer func() { _ = former.Close() }()
	// A relay that gives its sockets away is asked there before it serves, and until it does not.
	if next, err := r.ask(ctx, r.next()); !isNobody(err) {
		if err == nil {
			_ = next.Close()
		}
		return nil
	}
	return r.end(ctx, former)
}

// end ends the relay at the other end of a connection. Its connections break.
func (r *Relay) end(ctx context.Context, old *net.UnixConn) error {
	pid, err := handover.Peer(old)
	if err != nil {
		return err
	}
	if pid == 0 || pid == os.Getpid() || !handover.Older(pid) {
		return fmt.Errorf("another relay of this VPC is running, and process %d is not to be ended", pid)
	}
	held, err := process.Hold(pid)
	if err != nil {
		return nil // it has ended
	}
	defer held.Close()
	// It had the number while its socket was open.
	if err := old.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return err
	}
	if _, err := old.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	r.config.Log.Warn("the relay before hands nothing over and is ended", "process_id", pid)
	ctx, cancel := context.WithTimeout(ctx, 2*r.answerWithin)
	defer cancel()
	if err := held.Stop(ctx, r.answerWithin); err != nil {
		return fmt.Errorf("ending the relay before: %w", err)
	}
	return nil
}

// giveAway gives the sockets to the next relay and calls release, which closes everything else that the next one needs.
// It returns without an error when the context ends, too.
func (r *Relay) giveAway(ctx context.Context, door net.Listener, sockets *sockets, release func()) error {
	defer func() { _ = door.Close() }()
	defer context.AfterFunc(ctx, func() { _ = door.Close() })()
	for {
		connection, err := door.Accept()
		if err != nil {
			switch {
			case ctx.Err() != nil:
				return nil
			case errors.Is(err, net.ErrClosed):
				return fmt.Errorf("waiting for the next relay: %w", err)
			}
			r.config.Log.Warn("cannot ask the next relay in", "error", err) // it asks again
			pause(ctx, askAgain)
			continue
		}
		next := connection.(*net.UnixConn) //nolint:forcetypeassert // of a unix socket
		if err := r.give(ctx, next, sockets); err != nil {
			_ = next.Close()
			if ctx.Err() == nil {
				r.config.Log.Warn("the next relay has not taken over", "error", err)
			}
			continue
		}
		release()
		_, _ = io.WriteString(next, gone)
		return next.Close()
	}
}

// give sends the sockets and waits until the next relay accepts them.
func (r *Relay) give(ctx context.Context, next *net.UnixConn, sockets *sockets) error {
	defer context.AfterFunc(ctx, func() { _ = next.Close() })()
	if err := next.SetDeadline(time.Now().Add(r.answerWithin)); err != nil {
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
	return sockets.give(func(open map[string]syscall.Conn) error {
		for name, socket := range open {
			if err := handover.Send(next, name+"\n", socket); err != nil {
				return fmt.Errorf("giving %s away: %w", name, err)
			}
		}
		if _, err := io.WriteString(next, all); err != nil {
			return err
		}
		answer, _, err := handover.Receive(next)
		if err == nil && answer != accepts {
			err = fmt.Errorf("it says %.20q", answer)
		}
		if err != nil {
			return fmt.Errorf("it does not say that it accepts: %w", err)
		}
		return nil
	})
}
