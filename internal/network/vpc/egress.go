// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"muster.dev/muster/internal/platform/connectproxy"
)

// kubeletPort is where kubelets listen.
const kubeletPort = 10250

// serveEgress answers the API server on the unix socket of its network "cluster" (package connectproxy): kubelets,
// pods, aggregated APIs, the account's own among them, and webhooks that are Services.
func (d *door) serveEgress(ctx context.Context, listener net.Listener) error {
	proxy := connectproxy.Server{Dial: d.dialMachine, Take: d.takeCall, Give: d.giveCall}
	return proxy.Serve(ctx, listener)
}

// dialMachine connects to a machine or a pod of the cluster, or to the account's APIs.
func (d *door) dialMachine(ctx context.Context, hostPort string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if target, err := netip.ParseAddrPort(hostPort); err == nil && d.isAccountAPIs(target) {
		return d.dialAccountAPIs(ctx)
	}
	target, err := d.admit(hostPort)
	if err != nil {
		return nil, err
	}
	return dialVPC(ctx, d.sockets.namespace, d.Addresses[0], target)
}

// maxCalls of the API server's connections leave a quarter to machines: whoever may follow the log of one pod has the
// API server connect as often as he asks.
const maxCalls = maxConnections / 4 * 3

// takeCall takes a place for a connection of the API server.
func (d *door) takeCall() bool {
	if d.calls.Add(1) > maxCalls {
		d.calls.Add(-1)
		return false
	}
	select {
	case d.slots <- struct{}{}:
		return true
	default:
		d.calls.Add(-1)
		return false
	}
}

// giveCall gives it back.
func (d *door) giveCall() {
	<-d.slots
	d.calls.Add(-1)
}

// admit decides where an API server may connect to: the machines that were launched for its cluster and the cluster's
// pods, by address, so that it is worth nothing at another cluster's machines. Of a host that joined by itself nobody
// knows which cluster it is in: it is reached at its kubelet's port, and the kubelet asks for a certificate. Names are
// not resolved, and the VPC's own addresses are refused since they lead back to API servers.
func (d *door) admit(hostPort string) (netip.AddrPort, error) {
	target, err := netip.ParseAddrPort(hostPort)
	if err != nil {
		return netip.AddrPort{}, connectproxy.Refuse("CONNECT needs an address and a port, not %q", hostPort)
	}
	reachable, err := d.network.reaches(d.Endpoint, d.owners, d.relay.config.Machines, target, true)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if !reachable {
		return netip.AddrPort{}, connectproxy.Refuse("%s is neither a machine nor a pod of cluster %s: machines are in %s, pods in %s", target, d.Cluster, d.network.cidr, d.PodCIDR)
	}
	return target, nil
}

// reaches reports whether a target is a machine or a pod of a machine of the cluster that an endpoint is of, or, if
// strangers may be meant, the kubelet's port of a machine of which nobody knows the cluster.
func (n *Network) reaches(e Endpoint, owners *owners, machines Machines, target netip.AddrPort, strangers bool) (bool, error) {
	address := target.Addr()
	switch {
	case target.Port() == 0:
	case n.cidr.Contains(address):
		if n.free(address) != nil {
			break
		}
		cluster, known, err := machines.Cluster(owners.of(address))
		if err != nil {
			return false, fmt.Errorf("finding the machine with the address %s: %w", address, err)
		}
		return known && cluster == e.Cluster || strangers && !known && target.Port() == kubeletPort, nil
	case e.PodCIDR.Contains(address):
		cluster, known, err := machines.Cluster(owners.of(address))
		if err != nil {
			return false, fmt.Errorf("finding the machine of the pod with the address %s: %w", address, err)
		}
		return !known || cluster == e.Cluster, nil
	}
	return false, nil //nolint:nilerr // an address that no machine can have
}
