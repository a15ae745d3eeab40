// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/internal/platform/proxyheader"
)

func clientOf(vpc string, n int) client {
	return client{vpc, netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})}
}

// However many addresses and VPCs take all that they get, one more gets its share.
func TestShares(t *testing.T) {
	s := newShared(nil, slog.New(slog.DiscardHandler))
	alone := clientOf("vpc-a", 0)
	for range maxPerClient {
		if !s.take(alone) {
			t.Fatal("a machine alone does not get its share")
		}
	}
	if s.take(alone) {
		t.Error("a machine has more than its share")
	}
	fill := func(vpc string, clients int) {
		for range maxPerClient {
			for n := range clients {
				s.take(clientOf(vpc, n))
			}
		}
	}
	fill("vpc-a", 30)
	before := s.taken
	if !s.take(clientOf("vpc-a", 1000)) {
		t.Errorf("with %d connections of 30 machines another one gets none", before)
	}
	fill("vpc-a", 3000)
	if s.taken > maxRelayed/2 {
		t.Errorf("one VPC has %d", s.taken)
	}
	fill("vpc-b", 3000)
	if s.taken > maxRelayed*3/4 || !s.take(clientOf("vpc-c", 1)) {
		t.Errorf("two VPCs have %d, and a third one gets none", s.taken)
	}
	for whose, n := range s.clients {
		for range n {
			s.give(whose)
		}
	}
	if s.taken != 0 || len(s.vpcs) != 0 || len(s.clients) != 0 {
		t.Errorf("%d are left, of %d VPCs and %d addresses", s.taken, len(s.vpcs), len(s.clients))
	}
}

// A connection above the share is closed. A connection that ends gives its place back, once.
func TestSharedListener(t *testing.T) {
	inner, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s := newShared(proxyheader.NewListener(inner, log), log)
	t.Cleanup(func() { _ = s.Close() })
	whose := clientOf("vpc-0123456789abcdef0", 1)
	dial := func() net.Conn {
		t.Helper()
		c, err := new(net.Dialer).DialContext(t.Context(), "unix", inner.Addr().String())
		if err == nil {
			err = proxyheader.Write(c, proxyheader.Header{Source: netip.AddrPortFrom(whose.address, 1), Destination: netip.MustParseAddrPort("10.0.0.3:443"), VPC: whose.vpc})
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	accepted := make([]net.Conn, 0, maxPerClient)
	for range maxPerClient {
		dial()
		c, err := s.Accept()
		if err != nil {
			t.Fatal(err)
		}
		accepted = append(accepted, c)
	}
	over := dial()
	next := make(chan net.Conn, 1)
	go func() {
		c, _ := s.Accept()
		next <- c
	}()
	if err := over.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := over.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection above the share is not closed: %v", err)
	}
	_, _ = accepted[0].Close(), accepted[0].Close()
	dial()
	if c := <-next; c == nil {
		t.Error("a place that was given back is not taken")
	}
	if got := s.clients[whose]; got != maxPerClient {
		t.Errorf("%d places are taken", got)
	}
}
