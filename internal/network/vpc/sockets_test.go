// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// names are those of the sockets that would be handed over.
func (s *sockets) names() []string {
	open, _ := s.offer()
	return slices.Collect(maps.Keys(open))
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
	if names := s.names(); len(names) != 1 {
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
	if names := s.names(); len(names) != 0 {
		t.Errorf("still listed: %v", names)
	}
	again, err := s.private(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

// A socket that is opened or closed while the others are handed over is not lost: they are handed over anew.
func TestSocketsThatChangeMeanwhile(t *testing.T) {
	s, dir := newSockets(nil, nil), t.TempDir()
	_, commit := s.offer()
	opened, err := s.private(t.Context(), filepath.Join(dir, "a.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := commit(); err == nil {
		t.Error("a socket that was opened meanwhile is left out")
	}
	_, commit = s.offer()
	_ = opened.Close()
	if opened, err = s.private(t.Context(), filepath.Join(dir, "a.sock")); err != nil {
		t.Fatal(err)
	}
	if err := commit(); err == nil {
		t.Error("a socket that was closed meanwhile is the next relay's")
	}
	if _, commit = s.offer(); commit() != nil {
		t.Error("nothing changed")
	}
	if _, err := s.private(t.Context(), filepath.Join(dir, "b.sock")); !errors.Is(err, errHandedOver) {
		t.Errorf("a socket is opened after the handover: %v", err)
	}
	_ = opened.Close()
	if _, err := os.Lstat(filepath.Join(dir, "a.sock")); err != nil {
		t.Errorf("the next relay's socket is gone: %v", err)
	}
}
