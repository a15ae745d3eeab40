// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/host"
)

const (
	// egressLink is the link in the VPC's namespace over which packets leave.
	egressLink = "egress"
	// egressMTU is that of machines' links.
	egressMTU = 1500
	// egressLock is the lock that the one way out of a network holds, in its directory.
	egressLock = "egress.lock"
)

// WayOut is the VPC's end of its way out: a link that everything is routed to that is not in the VPC. Reads from the
// file return the packets that security groups let through, each behind a virtio_net_hdr (linux/virtio_net.h) of 10
// bytes; large TCP packets are whole. Answers are written to the file. The link, and with it the route, goes with the
// file: a VPC whose way out has ended has none.
type WayOut struct {
	network   *Network
	file      *os.File
	namespace *os.File
	owners    *owners
	release   func()
}

// OpenWayOut makes the network if need be, and its way out. Only one at a time can be open.
func (n *Network) OpenWayOut() (*WayOut, error) {
	if err := n.Ensure(); err != nil {
		return nil, err
	}
	release, err := filelock.Take(n.dir, egressLock)
	if errors.Is(err, filelock.ErrTaken) {
		return nil, fmt.Errorf("the way out of this VPC is open already: %w", err)
	}
	if err != nil {
		return nil, err
	}
	w := &WayOut{network: n, release: release}
	if err := w.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the way out of the VPC: %w", err), w.Close())
	}
	return w, nil
}

func (w *WayOut) open() (err error) {
	if w.namespace, err = w.network.Open(); err != nil {
		return err
	}
	if w.owners, err = newOwners(w.namespace); err != nil {
		return err
	}
	if err := host.InNetwork(w.namespace, func() (err error) {
		w.file, err = openTun(egressLink)
		return err
	}); err != nil {
		return err
	}
	return withHandle(w.namespace, w.route)
}

// openTun makes a link in the calling thread's namespace whose other end is a file.
func openTun(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /dev/net/tun, which the kernel's module tun has: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making link %s: %w", name, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}

// route has everything leave by the link that is not in the VPC. An address of the VPC that nothing has is unreachable
// as before.
func (w *WayOut) route(h *netlink.Handle) error {
	link, err := h.LinkByName(egressLink)
	if err != nil {
		return fmt.Errorf("finding link %s: %w", egressLink, err)
	}
	if err := h.LinkSetMTU(link, egressMTU); err != nil {
		return fmt.Errorf("setting the size of packets on link %s: %w", egressLink, err)
	}
	if err := up(h, egressLink); err != nil {
		return err
	}
	nothing := &netlink.Route{Dst: ipNet(w.network.cidr), Type: unix.RTN_UNREACHABLE}
	if err := h.RouteReplace(nothing); err != nil {
		return fmt.Errorf("keeping what is for %s in the VPC: %w", w.network.cidr, err)
	}
	out := &netlink.Route{LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: ipNet(netip.PrefixFrom(netip.IPv4Unspecified(), 0))}
	if err := h.RouteReplace(out); err != nil {
		return fmt.Errorf("setting the default route: %w", err)
	}
	return nil
}

// File is where packets come out and answers go in.
func (w *WayOut) File() *os.File { return w.file }

// MTU is the largest packet on the link, in bytes; packets of TCP may be larger, as parts of one.
func (w *WayOut) MTU() uint32 { return egressMTU }

// Machine is the machine that a packet with a source address comes from: the one that has it, or the one of the pod
// that has it. The kernel has dropped what comes from elsewhere.
func (w *WayOut) Machine(source netip.Addr) netip.Addr { return w.owners.of(source) }

// Settings reads what may leave, and the ranges of the VPC and of its clusters' pods, as they are now.
func (w *WayOut) Settings() (egresspolicy.Policy, []netip.Prefix, error) {
	return w.network.Egress()
}

// Egress reads what may leave, and the ranges of the VPC and of its clusters' pods, as they are now.
func (n *Network) Egress() (egresspolicy.Policy, []netip.Prefix, error) {
	description, err := readDescription(n.dir)
	if err != nil {
		return egresspolicy.Policy{}, nil, err
	}
	endpoints, err := n.Endpoints()
	if err != nil {
		return egresspolicy.Policy{}, nil, err
	}
	own := []netip.Prefix{n.cidr}
	for _, e := range endpoints {
		if !slices.Contains(own, e.PodCIDR) {
			own = append(own, e.PodCIDR)
		}
	}
	return description.Egress, own, nil
}

// Close ends the way out.
func (w *WayOut) Close() error {
	var err error
	for _, file := range []*os.File{w.file, w.namespace} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	if w.owners != nil {
		w.owners.handle.Close()
	}
	w.release()
	return err
}
