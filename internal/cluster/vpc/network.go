// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// Config says which network to make, and where its namespace is held.
type Config struct {
	// Dir is a directory of the network's own, below the state directory.
	Dir string
	// CIDR is the range of addresses of machines, the router and the ENI.
	CIDR netip.Prefix
}

// Network is one VPC.
type Network struct {
	dir  string
	cidr netip.Prefix
}

const bridgeName = "vpc0"

// New checks the configuration. It makes nothing.
func New(config Config) (*Network, error) {
	switch {
	case !filepath.IsAbs(config.Dir):
		return nil, fmt.Errorf("VPC directory %q is not an absolute path", config.Dir)
	case !config.CIDR.IsValid() || !config.CIDR.Addr().Is4() || config.CIDR.Masked() != config.CIDR:
		return nil, fmt.Errorf("VPC CIDR %s is not a range of IPv4 addresses: write one like 192.168.64.0/18", config.CIDR)
	case config.CIDR.Bits() > 28:
		return nil, fmt.Errorf("VPC CIDR %s is too small for machines: choose a /28 or larger", config.CIDR)
	}
	return &Network{dir: config.Dir, cidr: config.CIDR}, nil
}

// Router is the machines' default gateway, the first address of the range.
func Router(cidr netip.Prefix) netip.Addr { return cidr.Masked().Addr().Next() }

// ENI is the API server's address in the VPC, the second address of the range.
func ENI(cidr netip.Prefix) netip.Addr { return Router(cidr).Next() }

// Services is the address of STS and IAM in the VPC, the third of the range.
func Services(cidr netip.Prefix) netip.Addr { return ENI(cidr).Next() }

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

// configure makes the bridge with its addresses, and has the namespace forward between machines.
func (n *Network) configure() error {
	file, err := n.Open()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := host.InNetwork(file, setForwarding); err != nil {
		return err
	}
	return withHandle(file, func(h *netlink.Handle) error {
		if err := up(h, "lo"); err != nil {
			return err
		}
		router := Router(n.cidr)
		attributes := netlink.NewLinkAttrs()
		attributes.Name = bridgeName
		// Without an address of its own a bridge takes its lowest port's, and changes it as machines come and go.
		attributes.HardwareAddr = mac(0x06, router)
		err := h.LinkAdd(&netlink.Bridge{LinkAttrs: attributes})
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("making bridge: %w", err)
		}
		bridge, err := h.LinkByName(bridgeName)
		if err != nil {
			return fmt.Errorf("finding bridge %s that was made: %w", bridgeName, err)
		}
		for _, prefix := range []netip.Prefix{
			netip.PrefixFrom(router, n.cidr.Bits()), netip.PrefixFrom(ENI(n.cidr), 32), netip.PrefixFrom(Services(n.cidr), 32),
			netip.PrefixFrom(Metadata(), 32),
		} {
			if err := h.AddrReplace(bridge, &netlink.Addr{IPNet: ipNet(prefix)}); err != nil {
				return fmt.Errorf("setting address %s: %w", prefix, err)
			}
		}
		return up(h, bridgeName)
	})
}

// setForwarding sets the switches of the calling thread's network namespace. A router that forwards to the interface it
// received from would tell the sender of a shorter way, by a redirect; here that is how every packet goes.
func setForwarding() error {
	for _, setting := range []struct{ name, value string }{
		{"ip_forward", "1"},
		{"conf/all/send_redirects", "0"},
		{"conf/default/send_redirects", "0"},
	} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+setting.name, []byte(setting.value), 0); err != nil {
			return fmt.Errorf("setting net.ipv4.%s: %w", setting.name, err)
		}
	}
	return nil
}

// withHandle gives fn a netlink handle in a network namespace.
func withHandle(namespace *os.File, fn func(*netlink.Handle) error) error {
	h, err := netlink.NewHandleAt(netns.NsHandle(namespace.Fd()), unix.NETLINK_ROUTE)
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
