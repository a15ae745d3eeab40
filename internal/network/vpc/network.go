// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// Config says which network to make, and where its namespace is held.
type Config struct {
	// Dir is a directory of the network's own, below the state directory.
	Dir string
	// ID is the VPC's; machines' connections to STS and IAM carry it.
	ID string
	// CIDR is the range of all its addresses.
	CIDR netip.Prefix
	// Subnets are the ranges in which machines are; if empty, all of CIDR is one.
	Subnets []netip.Prefix
}

// Network is one VPC.
type Network struct {
	dir     string
	id      string
	cidr    netip.Prefix
	subnets []netip.Prefix
}

// New checks the configuration. It makes nothing.
func New(config Config) (*Network, error) {
	if !filepath.IsAbs(config.Dir) {
		return nil, fmt.Errorf("VPC directory %q is not an absolute path", config.Dir)
	}
	if config.ID != "" {
		if err := ValidateID(config.ID); err != nil {
			return nil, err
		}
	}
	if err := validateRange("VPC CIDR", config.CIDR); err != nil {
		return nil, err
	}
	if len(config.Subnets) == 0 {
		config.Subnets = []netip.Prefix{config.CIDR}
	}
	for i, subnet := range config.Subnets {
		if err := validateRange("subnet", subnet); err != nil {
			return nil, err
		}
		if !within(subnet, config.CIDR) || slices.ContainsFunc(config.Subnets[:i], subnet.Overlaps) {
			return nil, fmt.Errorf("subnet %s is not a part of the VPC's range %s of its own", subnet, config.CIDR)
		}
	}
	return &Network{dir: config.Dir, id: config.ID, cidr: config.CIDR, subnets: slices.Clone(config.Subnets)}, nil
}

// ID is the VPC's id.
func (n *Network) ID() string { return n.id }

// CIDR is the range of the VPC's addresses.
func (n *Network) CIDR() netip.Prefix { return n.cidr }

// SubnetOf is the subnet that an address is in.
func (n *Network) SubnetOf(address netip.Addr) (netip.Prefix, bool) {
	for _, subnet := range n.subnets {
		if subnet.Contains(address) {
			return subnet, true
		}
	}
	return netip.Prefix{}, false
}

// Router is the machines' default gateway, the first address of their subnet.
func Router(subnet netip.Prefix) netip.Addr { return subnet.Masked().Addr().Next() }

// Resolver is the address of the VPC's name server, the second address of its range; [LinkLocalResolver] is another.
func Resolver(cidr netip.Prefix) netip.Addr { return Router(cidr).Next() }

// Services is the address of STS and IAM in the VPC, the third of the range.
func Services(cidr netip.Prefix) netip.Addr { return Resolver(cidr).Next() }

// LinkLocalResolver is where the VPC's name server answers in every VPC, as Amazon's resolver does.
func LinkLocalResolver() netip.Addr { return netip.AddrFrom4([4]byte{169, 254, 169, 253}) }

// isReserved reports whether an address of a subnet is for no machine and no endpoint: the first four, as on EC2.
func isReserved(subnet netip.Prefix, ip netip.Addr) bool {
	return netip.PrefixFrom(subnet.Masked().Addr(), 30).Contains(ip)
}

// subnetOf is the subnet of an address that may be a machine's or an endpoint's.
func (n *Network) subnetOf(ip netip.Addr) (netip.Prefix, error) {
	subnet, ok := n.SubnetOf(ip)
	if !ok {
		return netip.Prefix{}, fmt.Errorf("the address %s is not in a subnet of the VPC (%s)", ip, n.cidr)
	}
	if !subnet.Contains(ip.Next()) {
		return netip.Prefix{}, fmt.Errorf("the address %s is the last one of its subnet %s, which belongs to nobody", ip, subnet)
	}
	return subnet, nil
}

// mountName is the file that the namespace is bound to.
const mountName = "netns"

func (n *Network) mount() string { return filepath.Join(n.dir, mountName) }

// Ensure makes the namespace if there is none, and everything in it that is missing. It changes nothing that is right.
func (n *Network) Ensure() error {
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return fmt.Errorf("making VPC directory: %w", err)
	}
	unlock, err := n.lock()
	if err != nil {
		return err
	}
	defer unlock()
	held, err := isNamespace(n.mount())
	if err != nil {
		return err
	}
	if !held {
		if err := n.hold(); err != nil {
			return fmt.Errorf("making network namespace of the VPC: %w", err)
		}
	}
	if err := n.configure(); err != nil {
		return fmt.Errorf("configuring the VPC: %w", err)
	}
	return nil
}

// lock keeps two processes from making the namespace at once.
func (n *Network) lock() (func(), error) {
	file, err := os.OpenFile(filepath.Join(n.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the VPC: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the VPC: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// isNamespace reports whether a namespace is mounted at path. After a reboot only the empty file is there.
func isNamespace(path string) (bool, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(path, &stat)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at %s: %w", path, err)
	}
	return stat.Type == unix.NSFS_MAGIC, nil
}

// hold makes a network namespace and mounts it, so that it lives without any process in it.
func (n *Network) hold() error {
	file, err := os.OpenFile(n.mount(), os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go host.OnThread(func() { // the thread ends with this goroutine, and with it its part in the namespace
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- unix.Mount("/proc/thread-self/ns/net", n.mount(), "", unix.MS_BIND, "")
	})
	return <-done
}

// Delete removes the network: its namespace goes with the last process in it.
func (n *Network) Delete() error { return Remove(n.dir) }

// Remove removes the network that is held in a directory, if there is one, and the directory.
func Remove(dir string) error {
	mount := filepath.Join(dir, mountName)
	for {
		held, err := isNamespace(mount)
		if err != nil {
			return err
		}
		if !held {
			break
		}
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting network namespace of the VPC: %w", err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing VPC directory: %w", err)
	}
	return nil
}

// Open opens the namespace, for [host.InNetwork].
func (n *Network) Open() (*os.File, error) {
	held, err := isNamespace(n.mount())
	if err != nil {
		return nil, err
	}
	if !held {
		return nil, fmt.Errorf("there is no network namespace at %s: the VPC has not been made", n.mount())
	}
	file, err := os.Open(n.mount())
	if err != nil {
		return nil, fmt.Errorf("opening network namespace of the VPC: %w", err)
	}
	return file, nil
}

// configure gives the namespace its own addresses, and has it forward between machines what security groups let
// through. The addresses are on lo, so that every machine finds them at its link.
func (n *Network) configure() error {
	file, err := n.Open()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := n.enforce(); err != nil { // first: nothing is forwarded before rules say what
		return err
	}
	if err := host.InNetwork(file, setRouting); err != nil {
		return err
	}
	return withHandle(file, func(h *netlink.Handle) error {
		if err := up(h, "lo"); err != nil {
			return err
		}
		return n.address(h, n.own())
	})
}

// address gives the namespace addresses.
func (n *Network) address(h *netlink.Handle, addresses []netip.Addr) error {
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding link lo: %w", err)
	}
	for _, ip := range addresses {
		if err := h.AddrReplace(lo, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(ip, 32))}); err != nil {
			return fmt.Errorf("setting address %s: %w", ip, err)
		}
	}
	return nil
}

// unaddress takes all addresses but its own and some others from the namespace.
func (n *Network) unaddress(h *netlink.Handle, but []netip.Addr) error {
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding link lo: %w", err)
	}
	addresses, err := h.AddrList(lo, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("listing addresses: %w", err)
	}
	for _, address := range addresses {
		ip, ok := netip.AddrFromSlice(address.IP.To4())
		if !ok || ip.IsLoopback() || slices.Contains(n.own(), ip) || slices.Contains(but, ip) {
			continue
		}
		if err := h.AddrDel(lo, &address); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("removing address %s: %w", ip, err)
		}
	}
	return nil
}

// own are the addresses that the namespace itself has; no machine gets one of them.
func (n *Network) own() []netip.Addr {
	return append([]netip.Addr{Resolver(n.cidr), Services(n.cidr), Metadata(), LinkLocalResolver()}, routersOf(n)...)
}

// routersOf are the gateways of all subnets of a network.
func routersOf(n *Network) []netip.Addr {
	all := make([]netip.Addr, 0, len(n.subnets))
	for _, subnet := range n.subnets {
		all = append(all, Router(subnet))
	}
	return all
}

// setRouting sets the switches of the calling thread's network namespace. rp_filter drops every packet that comes from
// another link than the one that answers to its source address would take (RFC 3704, strict), and so all packets of a
// link to which no route leads.
func setRouting() error {
	for _, setting := range []struct{ name, value string }{
		{"ipv4/conf/all/rp_filter", "1"},
		{"ipv4/conf/default/rp_filter", "1"},
		{"ipv4/conf/all/accept_source_route", "0"},
		{"ipv4/conf/default/accept_source_route", "0"},
		{"ipv4/conf/all/send_redirects", "0"},
		{"ipv4/conf/default/send_redirects", "0"},
		{"ipv4/conf/all/accept_redirects", "0"},
		{"ipv4/conf/default/accept_redirects", "0"},
		{"ipv4/conf/all/route_localnet", "0"},
		{"ipv4/conf/default/route_localnet", "0"},
		{"ipv4/conf/all/accept_local", "0"},
		{"ipv4/conf/default/accept_local", "0"},
		{"ipv4/conf/all/proxy_arp", "0"},
		{"ipv4/conf/default/proxy_arp", "0"},
		{"ipv6/conf/all/disable_ipv6", "1"},
		{"ipv6/conf/default/disable_ipv6", "1"},
		{"ipv4/ip_forward", "1"}, // last: nothing is forwarded before the checks are in place
	} {
		err := os.WriteFile("/proc/sys/net/"+setting.name, []byte(setting.value), 0)
		if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(setting.name, "ipv6/") {
			continue // a kernel without IPv6
		}
		if err != nil {
			return fmt.Errorf("setting net.%s: %w", strings.ReplaceAll(setting.name, "/", "."), err)
		}
	}
	return nil
}

// withHandle gives fn a netlink handle in a network namespace.
func withHandle(namespace *os.File, fn func(*netlink.Handle) error) error {
	return withFamily(namespace, unix.NETLINK_ROUTE, fn)
}

// withNetfilter gives fn one for tracked connections.
func withNetfilter(namespace *os.File, fn func(*netlink.Handle) error) error {
	return withFamily(namespace, unix.NETLINK_NETFILTER, fn)
}

func withFamily(namespace *os.File, family int, fn func(*netlink.Handle) error) error {
	h, err := netlink.NewHandleAt(netns.NsHandle(namespace.Fd()), family)
	if err != nil {
		return fmt.Errorf("opening netlink socket in %s: %w", namespace.Name(), err)
	}
	defer h.Close()
	return fn(h)
}

func up(h *netlink.Handle, name string) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding link %s: %w", name, err)
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("setting link %s up: %w", name, err)
	}
	return nil
}

// mac makes a hardware address out of an address, which is unique within the VPC. The first byte says that it is
// administered locally (bit 1), and which end of a pair it is.
func mac(first byte, ip netip.Addr) net.HardwareAddr {
	b := ip.As4()
	return net.HardwareAddr{first, 'm', b[0], b[1], b[2], b[3]}
}

func ipNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), 32)}
}
