// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"

	"muster.dev/muster/internal/platform/proxyheader"
)

const (
	// maxRelayed are the connections of all machines, maxPerClient those of one address.
	maxRelayed, maxPerClient = 4096, 64
	// fraction of what is left that one address may have: of N that take all they get, each has
	// maxRelayed/(N+fraction), and one more gets as much.
	fraction = 8
)

// client is an address in a VPC. Two VPCs may have the same addresses.
type client struct {
	vpc     string
	address netip.Addr
}

// shared accepts the connections that relays pass on, and closes those of a VPC or of an address that has its share: as
// much as is left for the VPC, and an eighth of it for the address. So neither keeps others out, however many there
// are.
type shared struct {
	net.Listener
	log *slog.Logger

	mutex   sync.Mutex
	taken   int
	vpcs    map[string]int
	clients map[client]int
}

func newShared(relayed net.Listener, log *slog.Logger) *shared {
	return &shared{Listener: relayed, log: log, vpcs: map[string]int{}, clients: map[client]int{}}
}

// Accept returns the next connection that has a place.
func (s *shared) Accept() (net.Conn, error) {
	for {
		connection, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		relayed, ok := connection.(*proxyheader.Conn)
		if !ok {
			_ = connection.Close() // whose it is nobody says
			continue
		}
		whose := client{relayed.Header.VPC, relayed.Header.Source.Addr()}
		if s.take(whose) {
			return &placed{Conn: relayed, give: sync.OnceFunc(func() { s.give(whose) })}, nil
		}
		s.log.Warn("too many connections to the image registry", "vpc", whose.vpc, "source", whose.address.String())
		_ = connection.Close()
	}
}

func (s *shared) take(whose client) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	left := maxRelayed - s.taken
	if left <= s.vpcs[whose.vpc] || s.clients[whose] >= min(maxPerClient, max(1, left/fraction)) {
		return false
	}
	s.taken++
	s.vpcs[whose.vpc]++
	s.clients[whose]++
	return true
}

func (s *shared) give(whose client) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.taken--
	if s.vpcs[whose.vpc]--; s.vpcs[whose.vpc] == 0 {
		delete(s.vpcs, whose.vpc)
	}
	if s.clients[whose]--; s.clients[whose] == 0 {
		delete(s.clients, whose)
	}
}

// placed is a connection that has a place until it is closed.
type placed struct {
	*proxyheader.Conn
	give func()
}

// Close closes it, and gives its place back.
func (p *placed) Close() error {
	defer p.give()
	return p.Conn.Close()
}
