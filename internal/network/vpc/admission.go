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

	"muster.dev/muster/internal/platform/host"
)

// Dialer connects, in the namespace of a VPC, to machines and pods of the cluster that it is for, and to nothing else:
// what somebody writes into an EndpointSlice leads neither to another cluster nor to the VPC's own services. Use it
// from several goroutines.
type Dialer struct {
	network   *Network
	namespace *os.File
	owners    *owners
	machines  Machines
}

// NewDialer opens the namespace.
func (n *Network) NewDialer(machines Machines) (*Dialer, error) {
	namespace, err := n.Open()
	if err != nil {
		return nil, err
	}
	owners, err := newOwners(namespace)
	if err != nil {
		return nil, errors.Join(err, namespace.Close())
	}
	return &Dialer{network: n, namespace: namespace, owners: owners, machines: machines}, nil
}

// Close closes what NewDialer opened.
func (d *Dialer) Close() {
	d.owners.handle.Close()
	_ = d.namespace.Close()
}

// Namespace is that of the VPC.
func (d *Dialer) Namespace() *os.File { return d.namespace }

// ErrForbidden means that a target is neither a machine nor a pod of the cluster.
var ErrForbidden = errors.New("neither a machine nor a pod of the cluster")

// Admit reports by an error that is [ErrForbidden] that an address is not one of a cluster's machines or pods.
func (d *Dialer) Admit(cluster string, target netip.AddrPort) error {
	network, err := d.network.reload()
	if err != nil {
		return err
	}
	endpoints, err := network.Endpoints()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(endpoints, func(e Endpoint) bool { return e.Cluster == cluster })
	if at < 0 {
		return fmt.Errorf("%s: cluster %s has no endpoint in the VPC: %w", target, cluster, ErrForbidden)
	}
	known, err := network.reaches(endpoints[at], d.owners, d.machines, target, false)
	if err == nil && !known {
		err = fmt.Errorf("%s: %w", target, ErrForbidden)
	}
	return err
}

// Dial connects over TCP to an admitted target from an address of the VPC, by which security groups know the sender.
func (d *Dialer) Dial(ctx context.Context, source netip.Addr, target netip.AddrPort) (net.Conn, error) {
	return dialVPC(ctx, d.namespace, source, target)
}

// DialUDP makes a socket for packets to an admitted target.
func (d *Dialer) DialUDP(source netip.Addr, target netip.AddrPort) (connection *net.UDPConn, err error) {
	err = host.InNetwork(d.namespace, func() (err error) {
		connection, err = net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(source, 0)), net.UDPAddrFromAddrPort(target))
		return err
	})
	return connection, err
}
