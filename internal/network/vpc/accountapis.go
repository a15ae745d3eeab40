// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"muster.dev/muster/internal/platform/connectproxy"
)

// accountAPIsPort is clusternetwork.AccountAPIsPort. This package repeats it to stay as small as the programs that import it.
const accountAPIsPort = 10260

// isAccountAPIs reports whether a target is that of the APIs which the account serves in the cluster.
func (d *door) isAccountAPIs(target netip.AddrPort) bool {
	return target.Port() == accountAPIsPort && slices.Contains(d.Addresses, target.Addr())
}

// dialAccountAPIs connects the API server to what serves the account's APIs in its cluster. The server there knows the
// API server by a certificate, since users can have it connect to any address of the VPC.
func (d *door) dialAccountAPIs(ctx context.Context) (net.Conn, error) {
	all, err := d.network.Endpoints()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(e Endpoint) bool { return e.Cluster == d.Cluster })
	if at < 0 || all[at].AccountAPIsSocket == "" { // described by an earlier version
		return nil, connectproxy.Refuse("the account serves no APIs in cluster %s", d.Cluster)
	}
	connection, err := new(net.Dialer).DialContext(ctx, "unix", all[at].AccountAPIsSocket)
	if err != nil {
		return nil, fmt.Errorf("connecting to the account's APIs in cluster %s: %w", d.Cluster, err)
	}
	return connection, nil
}
