// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// resolvePatience is how long the host's resolver may take. A name in /etc/hosts takes nothing.
const resolvePatience = 5 * time.Second

// ThisHost returns the host's own name for the URLs of issuers, and the loopback address at which programs of the host
// look for it and which must be listened on, too. An error says why the name does not do.
func ThisHost(ctx context.Context) (string, netip.Addr, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", netip.Addr{}, fmt.Errorf("reading the host's name: %w", err)
	}
	return hostName(ctx, name, DefaultPort, Resolve)
}

// Resolve returns the addresses of a name as programs of this host find them.
func Resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, resolvePatience)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found, err
}

// hostName decides whether a host's name does for issuers. Names of one label alone do: a VPC asks nobody outside about
// them, so nothing is hidden from pods. By a name with a domain, pods may reach the host itself today, and would not
// any more.
func hostName(ctx context.Context, hostname string, port int, resolve func(context.Context, string) ([]netip.Addr, error)) (string, netip.Addr, error) {
	name := strings.ToLower(hostname)
	refused := func(format string, args ...any) (string, netip.Addr, error) {
		return "", netip.Addr{}, fmt.Errorf("this host's name %q "+format, append([]any{hostname}, args...)...)
	}
	switch {
	case !validName(name):
		return refused("is not a DNS name")
	case strings.Contains(name, "."):
		return refused("has more than one label, by which pods may look for the host itself")
	case name == "localhost" || name == "kubernetes":
		return refused("is another thing to pods")
	}
	found, err := resolve(ctx, name)
	if err != nil {
		return refused("is not known to this host's resolver: %w", err)
	}
	for _, address := range found {
		if !address.IsLoopback() {
			return refused("leads to %s, which is not a loopback address", address)
		}
		if err := listenable(address, port); err != nil {
			return refused("leads to %s, which cannot be listened on: %w", address, err)
		}
	}
	first := slices.IndexFunc(found, netip.Addr.Is4)
	if first < 0 {
		return refused("leads to no IPv4 loopback address")
	}
	return name, found[first], nil
}

// listenable reports what keeps this process from listening on a port. An address that the host does not have, as ::1
// without IPv6, is nobody's.
func listenable(address netip.Addr, port int) error {
	at := netip.AddrPortFrom(address, uint16(port)) //nolint:gosec // G115: a port
	listener, err := net.Listen("tcp", at.String()) //nolint:noctx // it does not block
	switch {
	case err == nil:
		return listener.Close()
	case address.Is6() && (errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT)):
		return nil
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("port %d is in use by %s", port, holder(at))
	}
	return err
}
