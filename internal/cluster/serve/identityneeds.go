// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"net"
	"net/netip"

	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/statedir"
)

// The identity service calls these by the names that they had in this package.

// hostRanges are the addresses of the host that no VPC has.
func hostRanges(dir statedir.Dir) ([]netip.Prefix, error) { return balancerrange.OfHost(dir) }

func listenPrivate(ctx context.Context, path string) (net.Listener, error) {
	return socketdir.ListenPrivate(ctx, path)
}
