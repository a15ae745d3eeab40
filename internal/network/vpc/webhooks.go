// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"muster.dev/muster/internal/platform/connectproxy"
)

const (
	// maxWebhooks bounds the connections to what users name by URL, so that a webhook that does not answer leaves
	// kubelets reachable.
	maxWebhooks = maxCalls / 4
	// webhookTimeout is how long finding a name and connecting to it may take: an API server waits 30 seconds at most
	// for a webhook.
	webhookTimeout = 15 * time.Second
)

// serveWebhooks answers on the unix socket to what the API server dials because somebody named it by URL: webhooks and
// conversions of custom resources. It leaves from the API server's address in the VPC, under its security groups.
func (d *door) serveWebhooks(ctx context.Context, listener net.Listener) error {
	proxy := connectproxy.Server{Dial: d.dialWebhook, Take: d.takeWebhook, Give: d.giveWebhook}
	return proxy.Serve(ctx, listener)
}

func (d *door) takeWebhook() bool {
	if d.webhooks.Add(1) > maxWebhooks || !d.takeCall() {
		d.webhooks.Add(-1)
		return false
	}
	return true
}

func (d *door) giveWebhook() {
	d.giveCall()
	d.webhooks.Add(-1)
}

// dialWebhook connects to the first address of a host that may be dialled and answers. The host is an address or a name
// of the VPC's name server.
func (d *door) dialWebhook(ctx context.Context, hostPort string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	targets, err := d.resolve(ctx, hostPort)
	if err != nil {
		return nil, err
	}
	network, err := d.network.reload()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, target := range targets {
		if err := network.admitWebhook(target); err != nil {
			errs = append(errs, err)
			continue
		}
		connection, err := dialVPC(ctx, d.sockets.namespace, d.Addresses[0], target)
		if err == nil {
			return connection, nil
		}
		errs = append(errs, fmt.Errorf("security groups, routes or the server do not let cluster %s connect: %w", d.Cluster, err))
	}
	return nil, errs[0]
}

// resolve finds the addresses of a host, and a port.
func (d *door) resolve(ctx context.Context, hostPort string) ([]netip.AddrPort, error) {
	host, portText, err := net.SplitHostPort(hostPort)
	port, portErr := strconv.ParseUint(portText, 10, 16)
	if err != nil || portErr != nil || port == 0 || host == "" {
		return nil, connectproxy.Refuse("CONNECT needs a host and a port, not %q", hostPort)
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(address.Unmap(), uint16(port))}, nil
	}
	if d.relay.config.Names == nil {
		return nil, connectproxy.Refuse("the VPC has no name server: %q has to be an address", host)
	}
	addresses, err := d.relay.config.Names.Lookup(ctx, d.Addresses[0], host)
	if err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, connectproxy.Refuse("the name server of the VPC %s has no IPv4 address of %q: name a Service by clientConfig.service, anything else as machines of the VPC do", d.network.id, host)
	}
	targets := make([]netip.AddrPort, 0, len(addresses))
	for _, address := range addresses {
		targets = append(targets, netip.AddrPortFrom(address.Unmap(), uint16(port)))
	}
	return targets, nil
}

// admitWebhook decides about an address that a user of a cluster has its API server dial. Machines, pods and load
// balancers of the VPC are the business of security groups, as is everything outside, which the way out decides about
// once more. Addresses of the host, of the VPC itself and of API servers are refused: servers there serve machines, and
// this request is not a machine's.
func (n *Network) admitWebhook(target netip.AddrPort) error {
	address := target.Addr()
	switch {
	case !address.Is4():
		return connectproxy.Refuse("%s is not an IPv4 address: a VPC has no IPv6", target)
	case address.IsLoopback(), address.IsUnspecified():
		return connectproxy.Refuse("%s is a loopback address: API servers dial from their address in the VPC: name an address there, or outside", target)
	case slices.Contains(n.own(), address):
		return connectproxy.Refuse("%s is an address of the VPC itself, for its machines alone", target)
	}
	endpoints, err := n.Endpoints()
	if err != nil {
		return err
	}
	for _, e := range endpoints {
		if slices.Contains(e.Addresses, address) {
			return connectproxy.Refuse("%s is the API server of cluster %s: an API server is no webhook of another", target, e.Cluster)
		}
		if e.PodCIDR.Contains(address) {
			return nil
		}
	}
	if n.cidr.Contains(address) {
		return nil
	}
	policy, own, err := n.Egress()
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a network that nobody described has no way out
		return err
	}
	if refusal := policy.Refuse(address, own); refusal != "" {
		return connectproxy.Refuse("%s is outside the VPC %s, whose way out refuses it (%s): see spec.egress of the VPC", target, n.id, refusal)
	}
	return nil
}
