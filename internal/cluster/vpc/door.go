// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
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
	relay     *Relay
	namespace *os.File
	owners    *owners
	network   *Network // as it was described last
	open      map[string]*door
	said      string // the last error logged
}

// door is one cluster's: the addresses of its API server, and the socket by which the API server reaches its machines and pods.
type door struct {
	Endpoint
	relay     *Relay
	network   *Network
	namespace *os.File
	owners    *owners
	// slots bounds the connections to the API server and of it together, so that one cluster takes nothing of another's.
	slots chan struct{}
	// calls are those of the API server among them.
	calls atomic.Int32

	cancel  context.CancelFunc
	running sync.WaitGroup
	ended   chan struct{} // closed when a part of it ended
}

// follow opens and closes doors as the file says, until the context ends. It calls first after the first look.
func (d *doors) follow(ctx context.Context, first func()) {
	file := watchfile.File{Path: endpointsFile.path(d.network), What: "endpoints of the VPC", Poll: lookAgain, MaxSize: maxEndpoints, Logger: d.relay.config.Log}
	file.Run(ctx, func() {
		err := d.look(ctx)
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
	if err := network.EnsureAddresses(d.namespace); err != nil {
		return err
	}
	var errs []error
	for _, e := range wanted {
		if d.open[e.Cluster] != nil {
			continue
		}
		opened := &door{
			Endpoint: e, relay: d.relay, network: network, namespace: d.namespace, owners: d.owners,
			slots: make(chan struct{}, maxConnections), ended: make(chan struct{}),
		}
		if err := opened.serve(ctx); err != nil {
			errs = append(errs, fmt.Errorf("opening the endpoint of cluster %s: %w", e.Cluster, err))
			continue
		}
		d.open[e.Cluster] = opened
		d.relay.config.Log.Info("endpoint is open", "cluster", e.Cluster, "addresses", e.Addresses, "api_server", e.APIServer.String(), "egress", e.EgressSocket)
	}
	return errors.Join(errs...)
}

func (d *doors) closeAll() {
	for _, door := range d.open {
		door.close()
	}
}

// serve opens a door: the API server's addresses, at port 443 and at its own port, by which the Endpoints of the Service "kubernetes"
// name it, and the egress socket.
func (d *door) serve(ctx context.Context) (err error) {
	var listeners []net.Listener
	defer func() {
		if err != nil {
			for _, listener := range listeners {
				_ = listener.Close()
			}
		}
	}()
	ports := []uint16{endpointPort}
	if own := d.APIServer.Port(); own != endpointPort {
		ports = append(ports, own)
	}
	for _, address := range d.Addresses {
		for _, port := range ports {
			listener, err := listenAt(ctx, d.namespace, netip.AddrPortFrom(address, port))
			if err != nil {
				return err
			}
			listeners = append(listeners, listener)
		}
	}
	egress, err := listenPrivate(ctx, d.EgressSocket)
	if err != nil {
		return err
	}
	ctx, d.cancel = context.WithCancel(ctx)
	over := sync.OnceFunc(func() { close(d.ended) })
	begin := func(serve func() error) {
		d.running.Go(func() {
			defer over()
			if err := serve(); err != nil {
				d.relay.config.Log.Error("an endpoint has ended", "cluster", d.Cluster, "error", err)
			}
		})
	}
	shares := d.shares()
	for _, listener := range listeners {
		e := endpoint{what: "API server of " + d.Cluster, listener: listener, dial: d.dialAPIServer, slots: d.slots, shares: shares}
		begin(func() error { return d.relay.serveEndpoint(ctx, e, d.owners) })
	}
	begin(func() error { return d.serveEgress(ctx, egress) })
	return nil
}

// shares are those that machines have of the connections: a part of what is left, so that a few machines do not take all.
func (d *door) shares() *shares {
	s := newShares(maxPerMachine)
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
