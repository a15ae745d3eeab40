// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
)

// Attach gives the network namespace of a machine an interface eth0 with an address in the VPC, and a way out by the
// router. The range of its pods in the VPC leads to it from then on. Its security groups are in force from the first
// packet on. The link, routes and tracked connections that an earlier machine with that address left behind are
// removed.
func (n *Network) Attach(machine *os.File, own Interface) error {
	ip := own.Address
	if err := n.free(ip); err != nil {
		return fmt.Errorf("attaching machine: %w", err)
	}
	if err := n.Detach(ip); err != nil {
		return err
	}
	if err := n.admit(own); err != nil {
		return fmt.Errorf("attaching machine: %w", err)
	}
	namespace, err := n.Open()
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()
	if err := withHandle(namespace, func(h *netlink.Handle) error { return n.plug(h, machine, attachmentOf(ip)) }); err != nil {
		return fmt.Errorf("attaching %s to the VPC: %w", ip, err)
	}
	if err := withHandle(machine, func(h *netlink.Handle) error { return n.equip(h, attachmentOf(ip)) }); err != nil {
		return fmt.Errorf("configuring network of %s: %w", ip, err)
	}
	return nil
}

// free checks that an address can be a machine's: it is in a subnet, and not one of the VPC's own, of an endpoint's or
// of a load balancer's.
func (n *Network) free(ip netip.Addr) error {
	subnet, err := n.subnetOf(ip)
	if err != nil {
		return err
	}
	if slices.Contains(n.own(), ip) || isReserved(subnet, ip) {
		return fmt.Errorf("the address %s is reserved", ip)
	}
	endpoints, err := n.Endpoints()
	if err != nil {
		return err
	}
	for _, e := range endpoints {
		if slices.Contains(e.Addresses, ip) {
			return fmt.Errorf("the address %s is that of the endpoint of cluster %s", ip, e.Cluster)
		}
	}
	balancers, err := n.Balancers()
	if err != nil {
		return err
	}
	for _, b := range balancers {
		if b.Address == ip {
			return fmt.Errorf("the address %s is that of the load balancer of Service %s/%s of cluster %s", ip, b.Namespace, b.Service, b.Cluster)
		}
	}
	return nil
}

// plug makes the attachment, and pins the machine's address to it.
func (n *Network) plug(h *netlink.Handle, machine *os.File, a Attachment) error {
	link, err := a.plug(h, machine, n.routerMAC(a.Address()))
	if err != nil {
		return err
	}
	return n.pin(h, link, a.Address())
}

// equip gives a machine its address and its way out.
func (n *Network) equip(h *netlink.Handle, a Attachment) error {
	if err := up(h, "lo"); err != nil {
		return err
	}
	link, err := a.machineEnd(h)
	if err != nil {
		return err
	}
	ip := a.Address()
	// The route knows only the router on the link: a machine that asks others for an address believes any answer, and
	// the router need not ask.
	if err := h.AddrReplace(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(ip, 32))}); err != nil {
		return fmt.Errorf("setting address: %w", err)
	}
	gateway := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.IP(n.routerOf(ip).AsSlice()), Flags: int(netlink.FLAG_ONLINK)}
	if err := h.RouteReplace(gateway); err != nil {
		return fmt.Errorf("setting default route: %w", err)
	}
	return n.knowGateways(h, link, ip)
}

// Detach removes the link of the machine with an address, and with it the routes over it, those to its pods too, and
// forgets the connections of that address and of its pods' in the VPC that security groups let through. A missing link
// or VPC is not an error.
func (n *Network) Detach(ip netip.Addr) error {
	pods, err := n.podRangeOf(ip)
	if err != nil {
		return fmt.Errorf("detaching %s from the VPC: %w", ip, err)
	}
	if err := n.dismiss(ip); err != nil {
		return fmt.Errorf("detaching %s from the VPC: %w", ip, err)
	}
	if held, err := isNamespace(n.mount()); err != nil || !held {
		return err
	}
	namespace, err := n.Open()
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()
	err = withHandle(namespace, attachmentOf(ip).unplug)
	if err == nil {
		err = forgetConnections(namespace, netip.PrefixFrom(ip, ip.BitLen()))
	}
	if err == nil && pods.IsValid() {
		err = forgetConnections(namespace, pods)
	}
	if err != nil {
		return fmt.Errorf("detaching %s from the VPC: %w", ip, err)
	}
	return nil
}

// Attached lists the attachments of the VPC.
func (n *Network) Attached() (all []Attachment, err error) {
	namespace, err := n.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = namespace.Close() }()
	err = withHandle(namespace, func(h *netlink.Handle) error {
		all, err = attachments(h)
		return err
	})
	return all, err
}
