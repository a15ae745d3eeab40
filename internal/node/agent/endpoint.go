// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/nodeconfig"
)

// apiServers tells where a machine reaches API servers of its VPC.
type apiServers interface {
	Metadata(ctx context.Context, path string) (string, error)
}

// reachable replaces an endpoint on a loopback address by the one that leads to the same API server from the machine:
// DescribeCluster answers the host's, which is what people copy and Terraform writes into a NodeConfig. An endpoint of
// which nobody knows another stays: this may be the API server's own host. Whoever is found there has to prove itself
// by the cluster's authority.
func reachable(ctx context.Context, spec nodeconfig.Spec, machine apiServers, say func(string)) (nodeconfig.Spec, error) {
	told := spec.Cluster.APIServerEndpoint
	address, ok := loopback(told)
	if !ok {
		return spec, nil
	}
	endpoint, err := machine.Metadata(ctx, imds.APIServerPath(address))
	switch {
	case errors.Is(err, imds.ErrNotFound):
		return spec, nil
	case err != nil:
		return spec, fmt.Errorf("spec.cluster.apiServerEndpoint: %s is on a loopback address: asking for that of this VPC: %w", told, err)
	}
	say("the API server at " + told + " on the host is at " + endpoint + " here")
	spec.Cluster.APIServerEndpoint = endpoint
	return spec, nil
}

// loopback is the address of an endpoint that is on a loopback address, with its port.
func loopback(endpoint string) (netip.AddrPort, bool) {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "https" {
		return netip.AddrPort{}, false
	}
	address, err := netip.ParseAddrPort(parsed.Host)
	return address, err == nil && address.Addr().IsLoopback()
}
