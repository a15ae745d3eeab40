// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"muster.dev/muster/internal/network/loadbalancer"
)

// namespace is the network namespace of a VPC.
type namespace = *os.File

// maxConnections of a balancer are TCP connections and flows of UDP together. Each takes two file descriptors, and
// pipes while it is busy.
const maxConnections = 8192

// front is one balancer.
type front struct {
	server   *Server
	ctx      context.Context //nolint:containedctx // it ends when the balancer is removed, before the server does
	cancel   context.CancelFunc
	slots    chan struct{}
	clients  clients // who has them
	settings atomic.Pointer[loadbalancer.Spec]
	owner    owner
	running  sync.WaitGroup

	// The server's mutex guards the fields below.
	balancer loadbalancer.Balancer
	ports    map[portKey]*port
}

// owner is whose a balancer is. It never changes.
type owner struct{ cluster, namespace, service string }

type portKey struct {
	protocol loadbalancer.Protocol
	number   uint16
}

func newFront(ctx context.Context, s *Server, b loadbalancer.Balancer) *front {
	ctx, cancel := context.WithCancel(ctx)
	return &front{
		server: s, ctx: ctx, cancel: cancel, slots: make(chan struct{}, maxConnections), owner: owner{b.Cluster, b.Namespace, b.Service},
		balancer: b, ports: map[portKey]*port{},
	}
}

// update has the balancer be as it is wanted. Connections go on, but those of ports that it does not have any more.
func (f *front) update(wanted loadbalancer.Balancer, place namespace) error {
	moved := f.balancer.HostAddress.IsValid() && wanted.HostAddress != f.balancer.HostAddress
	if wanted.Address != f.balancer.Address || moved { // which the service never does
		f.closePorts(func(portKey) bool { return true })
	}
	f.balancer = wanted
	f.settings.Store(&wanted.Spec)
	listed := map[portKey]loadbalancer.Listener{}
	for _, l := range wanted.Listeners {
		listed[portKey{l.Protocol, l.Port}] = l
	}
	f.closePorts(func(key portKey) bool { _, ok := listed[key]; return !ok })
	var errs []error
	for key, l := range listed {
		p := f.ports[key]
		if p == nil {
			p = newPort(f, key)
			f.ports[key] = p
		}
		p.update(l)
		errs = append(errs, p.open(place))
	}
	return errors.Join(errs...)
}

// take takes a place for a client, unless all are taken, or the client has as many as are left: so one more gets some,
// whatever the others take.
func (f *front) take(client netip.Addr) bool {
	if !f.clients.add(client, cap(f.slots)-len(f.slots)) {
		return false
	}
	select {
	case f.slots <- struct{}{}:
		return true
	default:
		f.clients.remove(client)
		return false
	}
}

// give gives a place back.
func (f *front) give(client netip.Addr) {
	<-f.slots
	f.clients.remove(client)
}

// clients counts what each address has.
type clients struct {
	mutex sync.Mutex
	has   map[netip.Addr]int
}

// add counts one more, unless that would be more than a bound.
func (c *clients) add(client netip.Addr, bound int) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.has[client] >= bound {
		return false
	}
	if c.has == nil {
		c.has = map[netip.Addr]int{}
	}
	c.has[client]++
	return true
}

func (c *clients) remove(client netip.Addr) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.has[client]--; c.has[client] <= 0 {
		delete(c.has, client)
	}
}

func (f *front) closePorts(match func(portKey) bool) {
	for key, p := range f.ports {
		if match(key) {
			p.close()
			delete(f.ports, key)
		}
	}
}

// close ends all connections and waits for them.
func (f *front) close() {
	f.cancel()
	f.closePorts(func(portKey) bool { return true })
	f.running.Wait()
}

// port is one port of a balancer: the places where it listens, and its targets.
type port struct {
	front   *front
	key     portKey
	ctx     context.Context //nolint:containedctx // as a front's
	cancel  context.CancelFunc
	targets *targets
	check   atomic.Pointer[loadbalancer.Check]
	address netip.Addr // of the balancer in the VPC: where connections to targets come from

	places map[place]*listening // guarded by the server's mutex
}

// place is where a port listens.
type place string

const (
	inVPC  place = "vpc"
	onHost place = "host"
)

// listening is one place: its socket, or why there is none.
type listening struct {
	socket interface{ Close() error }
	flows  *flows // of UDP
	ended  chan struct{}
	err    error
}

func newPort(f *front, key portKey) *port {
	ctx, cancel := context.WithCancel(f.ctx)
	p := &port{
		front: f, key: key, ctx: ctx, cancel: cancel, targets: newTargets(time.Now), address: f.balancer.Address, places: map[place]*listening{},
	}
	p.check.Store(&loadbalancer.Check{})
	f.running.Go(func() { p.keepChecking(ctx) })
	return p
}

// update takes targets and settings over.
func (p *port) update(l loadbalancer.Listener) {
	p.targets.set(l.Targets, time.Duration(p.front.settings.Load().AffinitySeconds)*time.Second)
	p.check.Store(&l.Check)
	for _, at := range p.places {
		if at.flows != nil {
			at.flows.drop(func(target netip.AddrPort) bool { return !p.targets.has(target) })
		}
	}
}

// open listens where it does not yet, and no more on the host if the balancer is internal by now.
func (p *port) open(namespace namespace) error {
	if p.front.balancer.Internal {
		p.shut(onHost)
	}
	errs := []error{p.listen(inVPC, p.front.balancer.Address, namespace)}
	if !p.front.balancer.Internal {
		errs = append(errs, p.listen(onHost, p.front.balancer.HostAddress, nil))
	}
	return errors.Join(errs...)
}

// listen opens one place unless it is open.
func (p *port) listen(at place, address netip.Addr, namespace namespace) error {
	if l := p.places[at]; l != nil && l.err == nil {
		select {
		case <-l.ended: // by a failure of its socket
		default:
			return nil
		}
	}
	l := &listening{ended: make(chan struct{})}
	p.places[at] = l
	where := netip.AddrPortFrom(address, p.key.number)
	if p.key.protocol == loadbalancer.UDP {
		p.listenUDP(l, where, namespace)
	} else {
		p.listenTCP(l, where, namespace)
	}
	return l.err
}

// shut closes one place.
func (p *port) shut(at place) {
	l := p.places[at]
	if l == nil {
		return
	}
	if l.err == nil {
		_ = l.socket.Close()
		<-l.ended
	}
	delete(p.places, at)
}

func (p *port) close() {
	p.cancel()
	for at := range p.places {
		p.shut(at)
	}
}
