// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

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

// pin fixes which port of the bridge a machine's hardware address is behind, and which hardware address its address has. A bridge
// that learned, or a router that asked, would believe a machine that says it is another, and send it the other's answers. Frames
// for hardware addresses that nobody has go nowhere, instead of everywhere.
func pin(h *netlink.Handle, bridge, port netlink.Link, ip netip.Addr) error {
	if err := h.LinkSetLearning(port, false); err != nil {
		return fmt.Errorf("keeping the bridge from learning: %w", err)
	}
	if err := h.LinkSetFlood(port, false); err != nil {
		return fmt.Errorf("keeping the bridge from flooding: %w", err)
	}
	// NUD_NOARP is what bridge(8) calls static; NUD_PERMANENT would make it an address of the bridge itself.
	err := h.NeighSet(&netlink.Neigh{
		LinkIndex: port.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER, HardwareAddr: MAC(ip),
	})
	if err != nil {
		return fmt.Errorf("fixing the port of its hardware address: %w", err)
	}
	if err := h.NeighSet(neighbour(bridge, ip, MAC(ip))); err != nil {
		return fmt.Errorf("fixing its hardware address: %w", err)
	}
	return nil
}

func neighbour(link netlink.Link, ip netip.Addr, hardware net.HardwareAddr) *netlink.Neigh {
	return &netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT, IP: ip.AsSlice(), HardwareAddr: hardware,
	}
}

// unpin forgets the hardware address of a machine that has gone; its port took the rest along.
func unpin(h *netlink.Handle, ip netip.Addr) error {
	bridge, err := h.LinkByName(bridgeName)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding bridge %s to unpin a machine: %w", bridgeName, err)
	}
	if err := h.NeighDel(neighbour(bridge, ip, MAC(ip))); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("forgetting its hardware address: %w", err)
	}
	return nil
}

// Pin makes sure that every machine is pinned: an attachment may have been cut short, or be older than this rule.
func (n *Network) Pin() error {
	namespace, err := n.Open()
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()
	err = withHandle(namespace, func(h *netlink.Handle) error {
		bridge, err := h.LinkByName(bridgeName)
		if err != nil {
			return fmt.Errorf("finding bridge %s to pin machines: %w", bridgeName, err)
		}
		links, err := h.LinkList()
		if err != nil {
			return fmt.Errorf("listing links to pin: %w", err)
		}
		for _, link := range links {
			if ip, ok := linkAddress(link.Attrs().Name); ok && link.Attrs().MasterIndex == bridge.Attrs().Index {
				if err := pin(h, bridge, link, ip); err != nil && !isGone(err) {
					return fmt.Errorf("%s: %w", ip, err)
				}
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
func isGone(err error) bool { return errors.Is(err, unix.ENODEV) || errors.Is(err, os.ErrNotExist) }

// linkAddress reads the name that linkName made.
func linkAddress(name string) (netip.Addr, bool) {
	digits, ok := strings.CutPrefix(name, linkPrefix)
	if !ok {
		return netip.Addr{}, false
	}
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != net.IPv4len {
		return netip.Addr{}, false
	}
	return netip.AddrFromSlice(raw)
}

// knowGateways tells a machine, once and for all, where the router, the API server, STS and IAM, and the metadata service are: another machine
// that answered for them would be told what only they should hear. The service is reached without the router, as on EC2.
func (n *Network) knowGateways(h *netlink.Handle, link netlink.Link, own netip.Addr) error {
	router := Router(n.cidr)
	for _, ip := range []netip.Addr{router, ENI(n.cidr), Services(n.cidr), Metadata()} {
		if err := h.NeighSet(neighbour(link, ip, mac(0x06, router))); err != nil {
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
