// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"muster.dev/muster/internal/platform/watchfile"
)

// lookAgain is how often endpoints that could not be opened are tried again.
const lookAgain = 5 * time.Second

// doors are the endpoints that are open. A change of one is not noticed at the others.
type doors struct {
	relay   *Relay
	sockets *sockets
	owners  *owners
	network *Network // as it was described last
	open    map[string]*door
	said    string // the last error logged
}

// door is one cluster's: the addresses of its API server, and the socket by which the API server reaches its machines
// and pods.
type door struct {
	Endpoint
	relay   *Relay
	network *Network
	sockets *sockets
	owners  *owners
	// slots bounds the connections to the API server and of it together, so that one cluster takes nothing of
	// another's.
	slots chan struct{}
	// calls are those of the API server among them, and webhooks those of these calls that its users named by URL.
	calls, webhooks atomic.Int32

	cancel  context.CancelFunc
	running sync.WaitGroup
	ended   chan struct{} // closed when a part of it ended
}

// follow opens and closes doors as the file says, until the context ends. Their connections have a context of their
// own. It calls first after the first look.
func (d *doors) follow(ctx, connections context.Context, first func()) {
	file := watchfile.File{Path: endpointsFile.path(d.network), What: "endpoints of the VPC", Poll: lookAgain, MaxSize: maxEndpoints, Logger: d.relay.config.Log}
	file.Run(ctx, func() {
		err := d.look(connections)
		if err != nil && err.Error() != d.said {
			d.relay.config.Log.Error("endpoints of the VPC are not as they should be", "error", err)
		}
		d.said = ""
		if err != nil {
			d.said = err.Error()
		}
		first()
	})
}

// look has the doors that the file names open, and no other. While the file cannot be read they are as they were.
func (d *doors) look(ctx context.Context) error {
	network, err := d.network.reload()
	if err != nil {
		return err
	}
	wanted, err := network.Endpoints()
	if err != nil {
		return err
	}
	d.network = network
	for name, door := range d.open {
		keep := slices.ContainsFunc(wanted, door.sameDoor)
		select {
		case <-door.ended:
			keep = false
		default:
		}
		if !keep {
			door.close()
			delete(d.open, name)
		}
	}
	if err := network.EnsureAddresses(d.sockets.namespace); err != nil {
		return err
	}
	var errs []error
	for _, e := range wanted {
		if d.open[e.Cluster] != nil {
			continue
		}
		opened := &door{
			Endpoint: e, relay: d.relay, network: network, sockets: d.sockets, owners: d.owners,
			slots: make(chan struct{}, maxConnections), ended: make(chan struct{}),
		}
		if err := opened.serve(ctx); err != nil {
			errs = append(errs, fmt.Errorf("opening the endpoint of cluster %s: %w", e.Cluster, err))
			continue
		}
		d.open[e.Cluster] = opened
		d.relay.config.Log.Info("endpoint is open", "cluster", e.Cluster, "addresses", e.Addresses, "api_server", e.APIServer.String(), "egress", e.EgressSocket)
	}
	if len(errs) == 0 {
		d.sockets.drop()
	}
	return errors.Join(errs...)
}

// wait waits for the connections of doors whose listeners were handed over.
func (d *doors) wait() {
	for _, door := range d.open {
		door.running.Wait()
	}
}

func (d *doors) closeAll() {
	for _, door := range d.open {
		door.close()
	}
}

// part is a listener of a door, with what answers at it.
type part struct {
	listener net.Listener
	serve    func(context.Context, net.Listener) error
}

// serve opens a door: the API server's addresses, at port 443, the egress socket, and the webhook socket.
func (d *door) serve(ctx context.Context) error {
	parts, err := d.listen(ctx)
	if err != nil {
		for _, part := range parts {
			_ = part.listener.Close()
		}
		return err
	}
	d.begin(ctx, parts)
	return nil
}

// begin has the parts of a door answer.
func (d *door) begin(ctx context.Context, parts []part) {
	ctx, d.cancel = context.WithCancel(ctx)
	over := sync.OnceFunc(func() { close(d.ended) })
	for _, part := range parts {
		d.running.Go(func() {
			defer over()
			defer func() { _ = part.listener.Close() }() // the door is opened anew then
			if err := part.serve(ctx, part.listener); err != nil {
				d.relay.config.Log.Error("an endpoint has ended", "cluster", d.Cluster, "error", err)
			}
		})
	}
}

// listen opens the parts of a door. With an error it returns those that are open.
func (d *door) listen(ctx context.Context) (parts []part, err error) {
	shares := d.shares()
	apiServer := func(ctx context.Context, listener net.Listener) error {
		e := endpoint{what: "API server of " + d.Cluster, listener: listener, dial: d.dialAPIServer, slots: d.slots, shares: shares}
		return d.relay.serveEndpoint(ctx, e, d.owners)
	}
	for _, address := range d.Addresses {
		listener, err := listenAt(ctx, d.sockets, netip.AddrPortFrom(address, endpointPort))
		if err != nil {
			return parts, err
		}
		parts = append(parts, part{listener, apiServer})
	}
	for socket, serve := range map[string]func(context.Context, net.Listener) error{d.EgressSocket: d.serveEgress, d.WebhookSocket: d.serveWebhooks} {
		listen := d.sockets.private
		if socket == d.EgressSocket { // the API server's, which may be another user
			listen = d.sockets.shown
		}
		if socket == "" { // described by an earlier version
			continue
		}
		listener, err := listen(ctx, socket)
		if err != nil {
			return parts, err
		}
		parts = append(parts, part{listener, serve})
	}
	return parts, nil
}

// podFraction is that of what is left for a machine's pods which one pod may have, as the machine's pod identity agent
// has it: a pod alone gets 43 connections.
const podFraction = 8

// shares are those that machines have of the connections, and pods of those of their machine: a part of what is left,
// so that a few do not take all.
func (d *door) shares() *shares {
	s := newShares(maxPerMachine)
	s.podFraction = podFraction
	s.room = func() int { return cap(d.slots) - len(d.slots) }
	return s
}

// close ends all connections and waits for them.
func (d *door) close() {
	d.cancel()
	d.running.Wait()
}

// dialAPIServer connects to the API server, with patience while it is being restarted.
func (d *door) dialAPIServer(ctx context.Context, _ net.Conn) (net.Conn, error) {
	return dialPatiently(ctx, "tcp4", d.APIServer.String())
}
