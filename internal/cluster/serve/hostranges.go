// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/netip"

	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/platform/statedir"
)

// hostRanges are the addresses of the host that no VPC has.
func hostRanges(dir statedir.Dir) ([]netip.Prefix, error) { return balancerrange.OfHost(dir) }
