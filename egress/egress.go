// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"muster.dev/muster/internal/network/egresspolicy"
)

// allLimits are those of each kind of flow.
type allLimits struct{ halfOpen, connections, datagrams, echoes limits }

// defaultLimits: a node of a hundred pods has a few hundred connections.
func defaultLimits() allLimits {
	return allLimits{
		halfOpen:    limits{machine: 256, total: 4096},
		connections: limits{machine: 4096, total: 16384},
		datagrams:   limits{machine: 1024, total: 8192},
		echoes:      limits{machine: 64, total: 512},
	}
}

// within makes limits fit a number of open files.
func (l allLimits) within(files uint64) allLimits {
	const others = 128
	total := uint64(l.halfOpen.total + l.connections.total + l.datagrams.total + l.echoes.total) //nolint:gosec // G115: small numbers
	if files >= total+others {
		return l
	}
	for _, one := range []*limits{&l.halfOpen, &l.connections, &l.datagrams, &l.echoes} {
		one.total = max(1, int(uint64(one.total)*max(files, others)/(total+others))) //nolint:gosec // G115: see above
		one.machine = min(one.machine, one.total)
	}
	return l
}

// config is what the way out is made of.
type config struct {
	link *tunLink
	gate *gate
	// machine is the machine that a packet with a source comes from.
	machine func(source netip.Addr) netip.Addr
	limits  allLimits
	log     *slog.Logger
	metrics prometheus.Registerer
}

// egress carries what machines send out of their VPC.
type egress struct {
	config
	ctx context.Context //nolint:containedctx // the stack calls back without one

	halfOpen, connections, datagrams, echoes *flows

	counted *counters
	talk    *rate.Limiter
	noPing  sync.Once
	running sync.WaitGroup
}

// run serves until the context ends, or the link fails.
func run(ctx context.Context, c config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e := &egress{
		config: c, ctx: ctx, talk: rate.NewLimiter(1, 20),
		halfOpen: newFlows(c.limits.halfOpen), connections: newFlows(c.limits.connections),
		datagrams: newFlows(c.limits.datagrams), echoes: newFlows(c.limits.echoes),
	}
	e.counted = newCounters(c.metrics, e)
	if c.gate.look(); c.gate.now.Load() == nil {
		return errors.New("what may leave the VPC cannot be read: " + c.gate.said)
	}
	c.link.echo = (&pings{egress: e, series: map[pingKey]*ping{}}).echo
	s, err := newStack(c.link)
	if err != nil {
		return err
	}
	s.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(s, 0, c.limits.halfOpen.total+1, e.connect).HandlePacket)
	s.SetTransportProtocolHandler(udp.ProtocolNumber, udp.NewForwarder(s, e.datagram).HandlePacket)
	var followed sync.WaitGroup
	followed.Go(func() { c.gate.follow(ctx, e.recheck) })
	err = c.link.run(ctx)
	cancel()
	followed.Wait()
	endStack(s)
	e.running.Wait()
	return err
}

// endStack ends everything in the stack.
func endStack(s *stack.Stack) {
	s.RemoveNIC(nic)
	s.Close()
}

// recheck ends what is not allowed any more.
func (e *egress) recheck() {
	e.log.Info("what may leave the VPC has changed")
	for _, all := range []*flows{e.halfOpen, e.connections, e.datagrams, e.echoes} {
		all.endIf(func(destination netip.Addr) bool { return e.gate.refuse(destination) != "" })
	}
}

// refused counts a refusal, and says it now and then.
func (e *egress) refused(between ends, why egresspolicy.Refusal) {
	e.counted.refused.WithLabelValues(string(why)).Inc()
	if e.talk.Allow() {
		e.log.Info("refused", "from", between.source.String(), "to", between.destination.String(), "reason", string(why))
	}
}

// over counts and logs a refusal because a machine has reached its limit of connections or flows.
func (e *egress) over(between ends, machine netip.Addr, protocol string) {
	e.counted.refused.WithLabelValues("limit-" + protocol).Inc()
	if e.talk.Allow() {
		e.log.Warn("too many connections or flows of one machine", "machine", machine.String(), "to", between.destination.String(), "protocol", protocol)
	}
}
