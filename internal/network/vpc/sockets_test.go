// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// names are those of the sockets that would be handed over.
func (s *sockets) names(t *testing.T) (names []string) {
	t.Helper()
	stay := errors.New("they stay")
	if err := s.give(func(open map[string]syscall.Conn) error {
		for name := range open {
			names = append(names, name)
		}
		return stay
	}); !errors.Is(err, stay) {
		t.Fatal(err)
	}
	return names
}

// A listener that is closed twice takes nothing from the one that has its name by then: that is handed over, and its socket
// and the link to it stay.
func TestListenerClosedTwice(t *testing.T) {
	s, path := newSockets(nil, nil), filepath.Join(t.TempDir(), "egress.sock")
	first, err := s.shown(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link stays: %v", err)
	}
	second, err := s.shown(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	if err := first.Close(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if names := s.names(t); len(names) != 1 {
		t.Errorf("handed over: %v", names)
	}
	connection, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = connection.Close()
}

// A part of a door that ends, as for lack of memory, leaves no socket behind at which the next one could not listen.
func TestPartOfADoorThatEnds(t *testing.T) {
	s := newSockets(nil, nil)
	socket := filepath.Join(t.TempDir(), "webhooks.sock")
	d := &door{Endpoint: Endpoint{WebhookSocket: socket}, relay: &Relay{config: RelayConfig{Log: slog.New(slog.DiscardHandler)}}, sockets: s, ended: make(chan struct{})}
	listener, err := s.private(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	d.begin(t.Context(), []part{{listener, func(context.Context, net.Listener) error { return unix.ENOBUFS }}})
	<-d.ended
	d.close()
	if names := s.names(t); len(names) != 0 {
		t.Errorf("still listed: %v", names)
	}
	again, err := s.private(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

// once is a listener that fails once, and is silent then until it is closed.
type once struct {
	net.Listener
	failure error
	asked   chan struct{}
	closed  chan struct{}
}

func (o *once) Accept() (net.Conn, error) {
	if err := o.failure; err != nil {
		o.failure = nil
		return nil, err
	}
	close(o.asked)
	<-o.closed
	return nil, net.ErrClosed
}

func (o *once) Close() error {
	select {
	case <-o.closed:
	default:
		close(o.closed)
	}
	return nil
}

// A relay that has no file descriptor for the next one serves on, and gives its sockets away later.
func TestNextRelayThatFindsNoDescriptor(t *testing.T) {
	r := &Relay{config: RelayConfig{Log: slog.New(slog.DiscardHandler)}, answerWithin: answerWithin}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	door := &once{failure: unix.EMFILE, asked: make(chan struct{}), closed: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- r.giveAway(ctx, door, newSockets(nil, nil), func() {}) }()
	select {
	case err := <-ended:
		t.Fatalf("it ends, and cuts every connection: %v", err)
	case <-door.asked:
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
