// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/proxyheader"
	"muster.dev/muster/internal/platform/splice"
)

// endpoint is a place in the VPC at which machines reach something on the host.
type endpoint struct {
	what     string // for the log
	listener net.Listener
	// dial connects to what is behind it, for a machine's connection.
	dial func(ctx context.Context, machine net.Conn) (net.Conn, error)
	// slots bounds its connections: each takes file descriptors and two goroutines.
	slots chan struct{}
	// shares bounds those of one machine, pods included, and of one pod where they say so, so that none can take them
	// all.
	shares *shares
}

// serveEndpoint relays connections of machines until the context ends, or the last connection after the listener was
// handed over.
func (r *Relay) serveEndpoint(ctx context.Context, e endpoint, owners *owners) error {
	defer context.AfterFunc(ctx, func() { _ = e.listener.Close() })()
	var connections sync.WaitGroup
	defer connections.Wait()
	for {
		select {
		case e.slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		connection, err := e.listener.Accept()
		if err != nil {
			<-e.slots
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			if !errors.Is(err, unix.EMFILE) && !errors.Is(err, unix.ENFILE) && !errors.Is(err, unix.ECONNABORTED) {
				return fmt.Errorf("accepting connections in the VPC: %w", err)
			}
			r.config.Log.Warn("cannot accept a connection", "error", err)
			pause(ctx, 100*time.Millisecond)
			continue
		}
		peer := peerOf(connection)
		machine := owners.of(peer)
		if !e.shares.take(machine, peer) {
			<-e.slots
			_ = connection.Close()
			r.config.Log.Warn("too many connections", "to", e.what, "machine", machine.String(), "from", peer.String())
			continue
		}
		connections.Go(func() {
			defer func() { <-e.slots }()
			defer e.shares.give(machine, peer)
			server, err := e.dial(ctx, connection)
			if err != nil {
				_ = connection.Close()
				r.config.Log.Warn("no answer to a machine's connection", "asked", e.what, "machine", connection.RemoteAddr().String(), "error", err)
				return
			}
			splice.Join(ctx, connection, server)
		})
	}
}

// dialIdentity connects to STS and IAM, or to what else the client asks for by its name, and names the machine that the
// connection is for.
func (r *Relay) dialIdentity(ctx context.Context, machine net.Conn) (net.Conn, error) {
	source, err := netip.ParseAddrPort(machine.RemoteAddr().String())
	if err != nil {
		return nil, err
	}
	socket, heard := r.config.IdentitySocket, []byte(nil)
	if r.config.RegistrySocket != "" || r.config.IssuerSocket != "" {
		name, read, err := peekServerName(ctx, machine)
		if err != nil {
			return nil, fmt.Errorf("reading whom the client asks for: %w", err)
		}
		heard = read
		switch {
		case r.config.RegistrySocket != "" && strings.EqualFold(name, r.config.RegistryName):
			socket = r.config.RegistrySocket
		case r.config.IssuerSocket != "" && strings.EqualFold(name, r.config.IssuerName):
			socket = r.config.IssuerSocket
		}
	}
	service, err := dialPatiently(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	header := proxyheader.Header{Source: source, Destination: netip.AddrPortFrom(Services(r.config.Network.cidr), endpointPort), VPC: r.config.Network.id}
	err = proxyheader.Write(service, header)
	if err == nil {
		_, err = service.Write(heard)
	}
	if err != nil {
		_ = service.Close()
		return nil, err
	}
	return service, nil
}

// dialPatiently tries again while nobody listens.
func dialPatiently(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dialer := net.Dialer{KeepAliveConfig: splice.KeepAlive()}
	for {
		connection, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			return connection, nil
		}
		if !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.ENOENT) || !pause(ctx, 50*time.Millisecond) {
			return nil, err
		}
	}
}

// owners finds the machine that a pod is on, by the VPC's routes.
type owners struct{ handle *netlink.Handle }

func newOwners(namespace *os.File) (*owners, error) {
	handle, err := netlink.NewHandleAt(netns.NsHandle(namespace.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("opening netlink socket for the VPC's routes: %w", err)
	}
	return &owners{handle: handle}, nil
}

// of is the machine with an address, or with a pod that has it. A pod whose route is gone stands for itself.
func (o *owners) of(address netip.Addr) netip.Addr {
	routes, err := o.handle.RouteGet(address.AsSlice())
	if err != nil || len(routes) != 1 {
		return address
	}
	if machine, ok := netip.AddrFromSlice(routes[0].Gw.To4()); ok {
		return machine
	}
	return address
}
