// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/imds"
)

// MetadataPort is where the instance metadata service answers, on [Metadata].
const MetadataPort = 80

// Metadata is the address of the instance metadata service, which machines are known to by their addresses alone.
func Metadata() netip.Addr { return netip.MustParseAddr(imds.Address) }

// MAC is the hardware address of the machine with an address.
func MAC(ip netip.Addr) net.HardwareAddr { return mac(0x0a, ip) }

// routerOf is the router of a machine's subnet.
func (n *Network) routerOf(ip netip.Addr) netip.Addr {
	subnet, ok := n.SubnetOf(ip)
	if !ok {
		subnet = n.cidr // the machine's subnet has gone before it
	}
	return Router(subnet)
}

// routerMAC is the hardware address of the router, at the links of all machines of a subnet.
func (n *Network) routerMAC(ip netip.Addr) net.HardwareAddr { return mac(0x06, n.routerOf(ip)) }

// pin fixes that the address of a machine, and the range of its pods in the VPC, is at its link and nowhere else, and
// which hardware address it has there, whatever the machine says by ARP. The route comes last: until it is there
// rp_filter drops everything from the link.
func (n *Network) pin(h *netlink.Handle, link netlink.Link, ip netip.Addr) error {
	if err := h.NeighSet(neighbour(link, ip, MAC(ip))); err != nil {
		return fmt.Errorf("fixing its hardware address: %w", err)
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("setting link %s up: %w", link.Attrs().Name, err)
	}
	err := h.RouteReplace(&netlink.Route{
		LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: ipNet(netip.PrefixFrom(ip, 32)), Src: n.routerOf(ip).AsSlice(),
	})
	if err != nil {
		return fmt.Errorf("fixing its link: %w", err)
	}
	pods, err := n.podRangeOf(ip)
	if err != nil || !pods.IsValid() {
		return err
	}
	if err := n.lead(h, link, ip, pods); err != nil {
		return fmt.Errorf("leading %s to its pods: %w", pods, err)
	}
	return nil
}

func neighbour(link netlink.Link, ip netip.Addr, hardware net.HardwareAddr) *netlink.Neigh {
	return &netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT, IP: ip.AsSlice(), HardwareAddr: hardware,
	}
}

// Pin makes sure that every machine is pinned: an attachment may have been cut short.
func (n *Network) Pin() error {
	namespace, err := n.Open()
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()
	err = withHandle(namespace, func(h *netlink.Handle) error {
		all, err := attachments(h)
		if err != nil {
			return err
		}
		for _, a := range all {
			link, err := a.find(h)
			if err == nil {
				err = n.pin(h, link, a.Address())
			}
			if err != nil && !isGone(err) {
				return fmt.Errorf("%s: %w", a.Address(), err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("fixing addresses of machines: %w", err)
	}
	return nil
}

// isGone reports whether a machine was detached in the meantime.
func isGone(err error) bool {
	return errors.Is(err, unix.ENODEV) || errors.Is(err, os.ErrNotExist) || isNotFound(err)
}

// knowGateways tells a machine, once and for all, where the router and the metadata service are. The service is reached
// without the router, as on EC2; all the rest, endpoints and other machines, by the router.
func (n *Network) knowGateways(h *netlink.Handle, link netlink.Link, own netip.Addr) error {
	for _, ip := range []netip.Addr{n.routerOf(own), Metadata()} {
		if err := h.NeighSet(neighbour(link, ip, n.routerMAC(own))); err != nil {
			return fmt.Errorf("fixing the hardware address of %s: %w", ip, err)
		}
	}
	err := h.RouteReplace(&netlink.Route{
		LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: ipNet(netip.PrefixFrom(Metadata(), 32)), Src: own.AsSlice(),
	})
	if err != nil {
		return fmt.Errorf("setting the route to the metadata service: %w", err)
	}
	return nil
}
