// SPDX-License-Identifier: Apache-2.0

package privatedns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/netutil"

	"muster.dev/muster/internal/machine/machine"
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
	// With an error that is machine.ErrDamaged it lists those that are not damaged.
	Machines func() ([]machine.Record, error)
	// Services are the names of AWS's services, which are at the address ServicesAt.
	Services   []string
	ServicesAt netip.Addr
	// Domain is that of machines' names: a name in it is a machine's or nobody's.
	Domain string
	// Outside are the name servers to ask for names that are neither machines' nor services', as "192.0.2.1:53"; none
	// where there is no way out. It is called as often as Machines. If nil there is none.
	Outside func() ([]string, error)
	// Balancers lists the names of load balancers and where they are; nil for none. It is called as Machines is.
	Balancers func() (map[string]netip.Addr, error)
	Log       *slog.Logger
	Now       func() time.Time // the clock if nil
}

// Server answers queries.
type Server struct {
	config  Config
	domain  string // with the final dot
	outside outside

	mutex sync.Mutex
	zone  *zone // nil until the records could be read
	// servers are those outside.
	servers []string
	read    time.Time
	said    string // the last error logged
	toldOff string // the last error of those outside that was logged
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
	if config.Outside == nil {
		config.Outside = func() ([]string, error) { return nil, nil }
	}
	return &Server{config: config, domain: strings.ToLower(dns.Fqdn(config.Domain))}, nil
}

// lastAnswers is how long what was asked before the context ended may take.
const lastAnswers = 2 * time.Second

// Serve answers on both sockets until the context ends, and then what was asked before, for a moment. It closes them.
// MachineOf is the machine that an address belongs to, its own or a pod's.
func (s *Server) Serve(ctx context.Context, packets net.PacketConn, listener net.Listener, machineOf func(netip.Addr) netip.Addr) error {
	servers := []*dns.Server{
		{PacketConn: packets, UDPSize: udpSize},
		{Listener: netutil.LimitListener(listener, maxConnections), ReadTimeout: tcpPatience, WriteTimeout: tcpPatience, IdleTimeout: func() time.Duration { return tcpPatience }},
	}
	answering, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastAnswers, cut) })()
	failed := make(chan error, len(servers))
	for _, server := range servers {
		server.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) { s.answer(answering, w, query, machineOf) })
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
	// Packets that were not read are for whoever has their socket next. A stream may have a query that is just coming, which
	// Shutdown would drop.
	_ = listener.Close()
	_ = servers[0].Shutdown() // which fails only for one that has not begun
	if told {
		left -= heard(failed, left, lastAnswers)
	}
	_ = servers[1].Shutdown()
	_, _ = packets.Close(), listener.Close() // and then it never will
	for range left {
		err = errors.Join(err, <-failed)
	}
	if told {
		return nil
	}
	return fmt.Errorf("serving names of machines: %w", err)
}

// heard waits until servers have ended, for a time at most, and returns how many have.
func heard(ended <-chan error, servers int, most time.Duration) int {
	late := time.After(most)
	for n := range servers {
		select {
		case <-ended: //nolint:errcheck // they were told to end
		case <-late:
			return n
		}
	}
	return servers
}

// answer answers one query. It has one question by now, and responses and updates are refused
// ([dns.DefaultMsgAcceptFunc]).
func (s *Server) answer(ctx context.Context, w dns.ResponseWriter, query *dns.Msg, machineOf func(netip.Addr) netip.Addr) {
	reply, isOutside := s.reply(ctx, query, func() netip.Addr { return machineOf(clientOf(w.RemoteAddr())) })
	if isOutside {
		fit(reply, query, w.RemoteAddr())
	}
	_ = w.WriteMsg(reply) // a client that did not wait asks again
}

// reply makes the reply to a query, and reports whether somebody outside knows it. Machine is called if somebody
// outside is asked.
func (s *Server) reply(ctx context.Context, query *dns.Msg, machine func() netip.Addr) (reply *dns.Msg, isOutside bool) {
	known, servers := s.known()
	if known == nil {
		return new(dns.Msg).SetRcode(query, dns.RcodeServerFailure), false
	}
	reply = known.answer(query)
	if len(servers) == 0 || !isUnknown(known, query, reply) || s.isInside(query.Question[0].Name) {
		return reply, false
	}
	return s.askOutside(ctx, query, servers, machine())
}

// isUnknown reports whether a reply to a good question says that there is nothing of that name here.
func isUnknown(known *zone, query, reply *dns.Msg) bool {
	return reply.Rcode == dns.RcodeNameError || reply.Rcode == dns.RcodeSuccess && len(known.records[strings.ToLower(query.Question[0].Name)]) == 0
}

// askOutside has the host's name servers answer, and reports whether one did.
func (s *Server) askOutside(ctx context.Context, query *dns.Msg, servers []string, machine netip.Addr) (*dns.Msg, bool) {
	answer, err := s.outside.ask(ctx, servers, machine, query)
	if err != nil {
		s.tellOff(err)
		return passOn(query, &dns.Msg{MsgHdr: dns.MsgHdr{Rcode: dns.RcodeServerFailure}}), false
	}
	return passOn(query, answer), true
}

// tellOff logs what keeps names outside from being known, when it changes.
func (s *Server) tellOff(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err.Error() != s.toldOff {
		s.config.Log.Warn("no answer about a name outside", "error", err)
	}
	s.toldOff = err.Error()
}

// known is the zone as of a second ago at most, and the servers to ask outside. While the records cannot be read it is
// as it was.
func (s *Server) known() (*zone, []string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := s.config.Now()
	if age := now.Sub(s.read); !s.read.IsZero() && age >= 0 && age < readAgain {
		return s.zone, s.servers
	}
	s.read = now
	s.servers = s.readOutside()
	said := ""
	if err := s.readZone(); err != nil {
		if said = err.Error(); said != s.said {
			s.config.Log.Error("names of machines may be out of date", "error", err)
		}
	}
	s.said = said
	return s.zone, s.servers
}

// readZone reads the zone. A machine whose record is damaged is not in it, and is the error. The mutex is held.
func (s *Server) readZone() error {
	machines, damaged := s.config.Machines()
	if damaged != nil && !errors.Is(damaged, machine.ErrDamaged) {
		return damaged
	}
	var balancers map[string]netip.Addr
	if s.config.Balancers != nil {
		var err error
		if balancers, err = s.config.Balancers(); err != nil {
			return err
		}
	}
	s.zone = newZone(machines, s.config.Services, s.config.ServicesAt, balancers)
	return damaged
}

// readOutside finds the servers to ask outside; none if they cannot be found. The mutex is held.
func (s *Server) readOutside() []string {
	servers, err := s.config.Outside()
	if err == nil {
		return servers
	}
	if err.Error() != s.toldOff {
		s.config.Log.Warn("names outside are not known", "error", err)
	}
	s.toldOff = err.Error()
	return nil
}
