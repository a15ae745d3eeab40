// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/aws/arn"
)

// listenPort is the port that connections to [Port] are led to (see [Redirect]), so that port 80 is free for programs
// of the host network that listen on all addresses. Nothing is registered for it, and only root may listen there.
const listenPort = 303

// Listen gives the machine the agent's addresses, on lo, and listens there. Pods reach an address of their machine by
// their default route, which leads to it. Where the kernel has no IPv6 there is one listener. [Redirect] comes first:
// an address that the machine has and that does not lead to the agent would lead pods, with their tokens, to whoever
// has port 80.
func Listen(ctx context.Context, log *slog.Logger, run Run) ([]net.Listener, error) {
	if err := Redirect(ctx, run); err != nil {
		return nil, err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("finding link lo: %w", err)
	}
	var listeners []net.Listener
	for _, at := range []struct {
		address, network string
		bits, family     int
	}{{AddressIPv4, "tcp4", 32, unix.AF_INET}, {AddressIPv6, "tcp6", 128, unix.AF_INET6}} {
		listener, err := listenAt(ctx, lo, at.address, at.network, at.bits)
		if err != nil && at.family == unix.AF_INET6 {
			log.Info("pods have no pod identity agent by IPv6", "error", err)
			continue
		}
		if err != nil {
			for _, l := range listeners {
				err = errors.Join(err, l.Close())
			}
			return nil, err
		}
		listeners = append(listeners, listener)
	}
	return listeners, nil
}

func listenAt(ctx context.Context, lo netlink.Link, address, network string, bits int) (net.Listener, error) {
	// Scope host: nobody takes it for an address by which others reach the machine.
	own := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(bits, bits)}, Scope: int(netlink.SCOPE_HOST)}
	if bits == 128 {
		own.Flags = unix.IFA_F_NODAD // nobody else can have it, and it is there at once
	}
	if err := netlink.AddrReplace(lo, own); err != nil {
		return nil, fmt.Errorf("setting address %s of the pod identity agent: %w", address, err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, network, net.JoinHostPort(address, strconv.Itoa(listenPort)))
	if err != nil {
		return nil, fmt.Errorf("listening for pods: %w", err)
	}
	return listener, nil
}

// accountOf is the account of a session; empty if the text is not an ARN.
func accountOf(session string) string {
	a, err := arn.Parse(session)
	if err != nil {
		return ""
	}
	return a.Account
}
