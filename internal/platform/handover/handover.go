// SPDX-License-Identifier: Apache-2.0

// Package handover has a process that is replaced give the sockets that it listens on to the next process of its kind, so
// that no client finds one closed:
//
//	next                        the process that serves
//	connects
//	                            one message for each socket: its name, with the descriptor; then all, unless both know
//	                            that there is only one. Later instead, if next was started before it
//	accepts
//	                            closes its sockets; says gone
//	serves
//
// Meanwhile connections wait in queues of the kernel's. A next process that ends before it accepts, or says anything else,
// leaves the serving one as it was. Of several next processes the first one that accepts gets the sockets, and the others
// ask that one: the youngest has them in the end, which is the one that a supervisor watches. A serving process that does
// not answer hangs, and is ended. Both trust each other: whoever may connect to the unix socket is of the same user.
package handover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"muster.dev/muster/internal/platform/process"
)

const (
	all     = "all\n"
	later   = "later\n"
	accepts = "accepts\n"
	gone    = "gone\n"

	// Patience is how long a process may take to answer the other one by default.
	Patience = 10 * time.Second
	// acceptAgain is the pause after a connection that could not be accepted, as without a file descriptor.
	acceptAgain = 100 * time.Millisecond
	// seldom is how often the log may say what next processes can have a serving one say again and again.
	seldom = time.Minute
)

var (
	// ErrNobody is of a socket at which no process serves.
	ErrNobody = errors.New("no process serves that could hand over")
	// ErrLost is of a serving process that ended, or gave its sockets to another one. It is to be asked again.
	ErrLost = errors.New("the process that serves has not given its sockets away")
	// ErrLater is of a serving process that was started later.
	ErrLater = errors.New("the process that serves was started later than this one")
)

// Config is how a process takes over and hands over.
type Config struct {
	// Path of the unix socket at which the next process asks.
	Path string
	// Only is the name of the only socket that such processes have, which is given without saying that it was all; empty if
	// they have any number.
	Only string
	// Patience is how long the other process may take to answer.
	Patience time.Duration
	// Grace is how long a process that is ended may take for it before it is killed; 0 kills it at once.
	Grace time.Duration
	Log   *slog.Logger
}

// Take takes over what the serving process listens on. Suit is given the sockets by their names, and owns the files; if it
// returns an error, or anything else fails, the serving process stays as it was.
func (c Config) Take(ctx context.Context, suit func(sockets map[string]*os.File) error) error {
	connection, err := new(net.Dialer).DialContext(ctx, "unix", c.Path)
	switch {
	case IsNobody(err):
		return ErrNobody
	case err != nil:
		return fmt.Errorf("asking the process that serves now: %w", err)
	}
	defer func() { _ = connection.Close() }()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	old := connection.(*net.UnixConn) //nolint:forcetypeassert // of a unix socket
	sockets, err := c.receiveAll(old)
	if err == nil {
		err = suit(sockets)
	}
	if err == nil {
		err = c.accept(old)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.Join(ErrLost, c.End(ctx, old))
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return fmt.Errorf("taking over from the process that serves now: %w", err)
}

// IsNobody reports whether a connection to a unix socket failed as nobody listens there.
func IsNobody(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED)
}

// receiveAll is the first half of a handover at the next process.
func (c Config) receiveAll(old *net.UnixConn) (map[string]*os.File, error) {
	if err := old.SetDeadline(time.Now().Add(c.Patience)); err != nil {
		return nil, err
	}
	sockets := map[string]*os.File{}
	for {
		text, file, err := receive(old)
		name := strings.TrimSuffix(text, "\n")
		switch {
		case err != nil:
		case file != nil && sockets[name] == nil:
			sockets[name] = file
			if name == c.Only {
				return sockets, nil
			}
			continue
		case file == nil && text == all:
			return sockets, nil
		case text == later:
			err = ErrLater
		default:
			err = fmt.Errorf("it says %.20q", text)
		}
		Close(sockets)
		_ = file.Close() // which a nil one takes, too
		return nil, err
	}
}

// Close closes files that nobody wants.
func Close(files map[string]*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}

// accept is the second half.
func (c Config) accept(old *net.UnixConn) error {
	if err := old.SetDeadline(time.Now().Add(c.Patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(old, accepts); err != nil {
		return err
	}
	return hear(old, gone)
}

// hear waits for a text.
func hear(from *net.UnixConn, text string) error {
	heard, file, err := receive(from)
	_ = file.Close()
	if err == nil && heard != text {
		err = fmt.Errorf("it says %.20q", heard)
	}
	return err
}

// End ends the process at the other end of a connection, which it listens for, if it was started before this one. The
// process gets SIGTERM, and SIGKILL after the grace.
func (c Config) End(ctx context.Context, old *net.UnixConn) error {
	pid, err := peer(old)
	if err != nil {
		return err
	}
	if pid == 0 || pid == os.Getpid() || !older(pid) {
		return fmt.Errorf("another process serves, and process %d is not to be ended", pid)
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
	c.Log.Warn("the process before does not hand over, and is ended", "process_id", pid, "no_answer_for", c.Patience)
	ctx, cancel := context.WithTimeout(ctx, c.Grace+c.Patience)
	defer cancel()
	if err := held.Stop(ctx, c.Grace); err != nil {
		return fmt.Errorf("ending the process before: %w", err)
	}
	return nil
}

// Sockets returns what a process listens on, by names, and what makes it the next one's for good: it fails if something
// else is listened on by then.
type Sockets func() (open map[string]syscall.Conn, commit func() error)

// Offer gives sockets to the first next process that accepts them. Release closes what they have in common before that one
// serves. Offer returns then, or when the context ends; it closes the door, which listens at the path.
func (c Config) Offer(ctx context.Context, door net.Listener, sockets Sockets, release func()) error {
	defer func() { _ = door.Close() }()
	defer context.AfterFunc(ctx, func() { _ = door.Close() })()
	offering, taken := context.WithCancel(ctx) // ends with the next process that has accepted
	o := &offer{Config: c, door: door, sockets: sockets, release: release, offering: offering, taken: taken}
	o.said.Interval = seldom
	defer o.nexts.Wait()
	defer taken()
	for {
		connection, err := door.Accept()
		switch {
		case err == nil:
			o.nexts.Go(func() { o.hand(connection.(*net.UnixConn)) }) //nolint:forcetypeassert // of a unix socket
		case ctx.Err() != nil, offering.Err() != nil: // a context has ended before those that are made of it
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("waiting for the next process: %w", err)
		default:
			o.say(err)
			select {
			case <-offering.Done():
			case <-time.After(acceptAgain):
			}
		}
	}
}

// offer is one of a serving process.
type offer struct {
	Config
	door     net.Listener
	sockets  Sockets
	release  func()
	offering context.Context
	taken    func()
	nexts    sync.WaitGroup
	accepted atomic.Bool
	said     rate.Sometimes
}

func (o *offer) say(err error) {
	if o.offering.Err() == nil {
		o.said.Do(func() { o.Log.Warn("the next process has not taken over", "error", err) })
	}
}

// hand hands the sockets over to a next process, if that accepts them and no other one was faster.
func (o *offer) hand(next *net.UnixConn) {
	defer func() { _ = next.Close() }()
	waits := context.AfterFunc(o.offering, func() { _ = next.Close() })
	commit, err := o.give(next)
	if !waits() { // this process has ended, or another next one was faster
		return
	}
	if err == nil && o.accepted.Swap(true) {
		return
	}
	if err == nil {
		if err = commit(); err != nil {
			o.accepted.Store(false)
		}
	}
	if err != nil {
		o.say(err)
		return
	}
	o.taken()
	o.release()
	_ = o.door.Close()
	if err := next.SetDeadline(time.Now().Add(o.Patience)); err == nil {
		_, _ = io.WriteString(next, gone)
	}
}

// give sends the sockets and waits until the next process accepts them.
func (o *offer) give(next *net.UnixConn) (commit func() error, err error) {
	if err := next.SetDeadline(time.Now().Add(o.Patience)); err != nil {
		return nil, err
	}
	pid, err := peer(next)
	if err != nil {
		return nil, err
	}
	if older(pid) {
		_, err := io.WriteString(next, later)
		return nil, errors.Join(fmt.Errorf("process %d was started before this one", pid), err)
	}
	open, commit := o.sockets()
	for name, socket := range open {
		if err := send(next, name+"\n", socket); err != nil {
			return nil, fmt.Errorf("giving %s away: %w", name, err)
		}
	}
	if o.Only == "" {
		if _, err := io.WriteString(next, all); err != nil {
			return nil, err
		}
	}
	if err := hear(next, accepts); err != nil {
		return nil, fmt.Errorf("it does not say that it accepts: %w", err)
	}
	return commit, nil
}
