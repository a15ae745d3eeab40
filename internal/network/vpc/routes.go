// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// protocol marks the routes to pods, so that they are told from the kernel's own (rtnetlink(7), rtm_protocol; values
// above RTPROT_STATIC belong to nobody in particular).
const protocol = 77

// Route says that the addresses of some pods are behind the machine with an address.
type Route struct {
	PodCIDR netip.Prefix
	Machine netip.Addr
}

// SetRoute routes a range of pod addresses by a machine that is attached, in place of any other machine. Doing it twice
// changes nothing. The route goes with the machine's link. A route to anything but a range of pods is refused: a route
// to a machine's own address would lead its answers, credentials among them, to another machine. Within the VPC's own
// range, a machine gets only the route to the range that it was attached with.
func (n *Network) SetRoute(route Route) error {
	to := route.PodCIDR.Masked()
	if !route.Machine.Is4() {
		return fmt.Errorf("setting route to pods %s: the machine has no IPv4 address", route.PodCIDR)
	}
	own, err := n.podRangeOf(route.Machine)
	if err != nil {
		return fmt.Errorf("setting route to pods %s: %w", route.PodCIDR, err)
	}
	if !to.Addr().Is4() || to.Bits() == 0 || to.Overlaps(n.cidr) && to != own || !to.Addr().IsGlobalUnicast() || to.Overlaps(netip.PrefixFrom(Metadata(), 32)) {
		return fmt.Errorf("setting route to pods %s: the range is not one of pods", route.PodCIDR)
	}
	return n.routes("setting", route.PodCIDR, func(h *netlink.Handle) error {
		link, err := attachmentOf(route.Machine).find(h)
		if isNotFound(err) {
			return fmt.Errorf("the machine %s is not attached to the VPC", route.Machine)
		}
		if err != nil {
			return err
		}
		return n.lead(h, link, route.Machine, to)
	})
}

// lead leads packets for a range of pods to a machine.
func (n *Network) lead(h *netlink.Handle, link netlink.Link, machine netip.Addr, pods netip.Prefix) error {
	return h.RouteReplace(&netlink.Route{
		LinkIndex: link.Attrs().Index, Dst: ipNet(pods), Gw: net.IP(machine.AsSlice()), Src: n.routerOf(machine).AsSlice(), Protocol: protocol,
	})
}

// DeleteRoute removes the route to a range of pod addresses, if there is one.
func (n *Network) DeleteRoute(podCIDR netip.Prefix) error {
	return n.routes("removing", podCIDR, func(h *netlink.Handle) error {
		err := h.RouteDel(&netlink.Route{Dst: ipNet(podCIDR.Masked()), Protocol: protocol})
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		return err
	})
}

// Routes lists the routes to pods.
func (n *Network) Routes() ([]Route, error) {
	var found []Route
	err := n.routes("listing", netip.Prefix{}, func(h *netlink.Handle) error {
		routes, err := h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: protocol}, netlink.RT_FILTER_PROTOCOL)
		if err != nil {
			return err
		}
		for _, route := range routes {
			if route.Dst == nil {
				continue
			}
			bits, _ := route.Dst.Mask.Size()
			destination, ok := netip.AddrFromSlice(route.Dst.IP.To4())
			gateway, hasGateway := netip.AddrFromSlice(route.Gw.To4())
			if ok && hasGateway {
				found = append(found, Route{PodCIDR: netip.PrefixFrom(destination, bits), Machine: gateway})
			}
		}
		return nil
	})
	return found, err
}

func (n *Network) routes(verb string, podCIDR netip.Prefix, fn func(*netlink.Handle) error) error {
	namespace, err := n.Open()
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()
	if err := withHandle(namespace, fn); err != nil {
		if !podCIDR.IsValid() {
			return fmt.Errorf("%s routes to pods: %w", verb, err)
		}
		return fmt.Errorf("%s route to pods %s: %w", verb, podCIDR, err)
	}
	return nil
}
