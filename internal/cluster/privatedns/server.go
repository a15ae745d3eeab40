// SPDX-License-Identifier: Apache-2.0

package privatedns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/netutil"

	"muster.dev/muster/internal/cluster/machine"
)

const (
	udpSize = 1232 // what passes everywhere without fragments (DNS Flag Day 2020)
	// maxConnections bounds those over TCP, which nobody needs: every answer fits into a packet.
	maxConnections = 64
	tcpPatience    = 2 * time.Second
	// readAgain is the least time from one look at the records to the next.
	readAgain = time.Second
)

// Config is what a server works with.
type Config struct {
	// Machines lists the records of the VPC's machines. It is called once a second at most, and only if somebody asks.
	Machines func() ([]machine.Record, error)
	// Services are the names of AWS's services, which are at the address ServicesAt.
	Services   []string
	ServicesAt netip.Addr
	Log        *slog.Logger
	Now        func() time.Time // the clock if nil
}

// Server answers queries.
type Server struct {
	config Config

	mutex sync.Mutex
	zone  *zone // nil until the records could be read
	read  time.Time
	said  string // the last error logged
}

// NewServer checks the configuration.
func NewServer(config Config) (*Server, error) {
	if config.Machines == nil || config.Log == nil {
		return nil, errors.New("the VPC's name server needs a list of machines and a log")
	}
	if len(config.Services) > 0 && !config.ServicesAt.Is4() {
		return nil, errors.New("the VPC's name server needs the IPv4 address of the services that it is to name")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Server{config: config}, nil
}

// Serve answers on both sockets until the context ends, and closes them.
func (s *Server) Serve(ctx context.Context, packets net.PacketConn, listener net.Listener) error {
	servers := []*dns.Server{
		{PacketConn: packets, UDPSize: udpSize},
		{Listener: netutil.LimitListener(listener, maxConnections), ReadTimeout: tcpPatience, WriteTimeout: tcpPatience, IdleTimeout: func() time.Duration { return tcpPatience }},
	}
	failed := make(chan error, len(servers))
	for _, server := range servers {
		server.Handler = s
		server.MsgInvalidFunc = func([]byte, error) {} // what machines send is nobody's news
		go func() { failed <- server.ActivateAndServe() }()
	}
	var err error
	left, told := len(servers), false
	select {
	case <-ctx.Done():
		told = true
	case err = <-failed:
		left--
	}
	for _, server := range servers {
		_ = server.Shutdown() // which fails only for one that has not begun
	}
	_, _ = packets.Close(), listener.Close() // and then it never will
	for range left {
		err = errors.Join(err, <-failed)
	}
	if told {
		return nil
	}
	return fmt.Errorf("serving names of machines: %w", err)
}

// ServeDNS implements [dns.Handler]. Queries have one question by now, and responses and updates are refused ([dns.DefaultMsgAcceptFunc]).
func (s *Server) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	reply := new(dns.Msg).SetRcode(query, dns.RcodeServerFailure)
	if known := s.known(); known != nil {
		reply = known.answer(query)
	}
	_ = w.WriteMsg(reply) // a client that did not wait asks again
}

// known is the zone as of a second ago at most. While the records cannot be read it is as it was.
func (s *Server) known() *zone {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := s.config.Now()
	if age := now.Sub(s.read); !s.read.IsZero() && age >= 0 && age < readAgain {
		return s.zone
	}
	s.read = now
	machines, err := s.config.Machines()
	if err != nil {
		if err.Error() != s.said {
			s.config.Log.Error("names of machines may be out of date", "error", err)
		}
		s.said = err.Error()
		return s.zone
	}
	s.said, s.zone = "", newZone(machines, s.config.Services, s.config.ServicesAt)
	return s.zone
}
