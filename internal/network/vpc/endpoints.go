// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster.dev/muster/internal/network/securitygroup"
)

// Endpoint is what a cluster has in a VPC: addresses of its API server, as EKS's network interfaces are, and a door for
// the API server to the cluster's machines and pods.
type Endpoint struct {
	// Cluster is the cluster's name.
	Cluster string `json:"cluster"`
	// Addresses are the API server's in the VPC.
	Addresses []netip.Addr `json:"addresses"`
	// APIServer is where it listens on the host, on a loopback address.
	APIServer netip.AddrPort `json:"apiServer"`
	// EgressSocket is the unix socket by which it reaches machines and pods.
	EgressSocket string `json:"egressSocket"`
	// WebhookSocket is the unix socket by which it reaches what its users name by URL. An earlier version wrote none.
	WebhookSocket string `json:"webhookSocket,omitempty"`
	// AccountAPIsSocket is the unix socket at which the account serves APIs in the cluster, for its API server alone. An
	// earlier version wrote none. It is read with each connection.
	AccountAPIsSocket string `json:"accountAPIsSocket,omitempty"`
	// PodCIDR holds the addresses of the cluster's pods: webhooks and aggregated API servers run there. Clusters of one
	// VPC have ranges of their own.
	PodCIDR netip.Prefix `json:"podCIDR"`
	// PodSubnets are the ids of the subnets that the cluster keeps for its pods.
	PodSubnets []string `json:"podSubnets,omitempty"`
	// SecurityGroups decide which machines reach the API server, and which ones it reaches.
	SecurityGroups []string `json:"securityGroups,omitempty"`
}

// URL is where machines of the VPC reach the API server; empty if it has no address there.
func (e Endpoint) URL() string {
	if len(e.Addresses) == 0 {
		return ""
	}
	return "https://" + netip.AddrPortFrom(e.Addresses[0], endpointPort).String()
}

func (e Endpoint) equal(other Endpoint) bool {
	return e.Cluster == other.Cluster && slices.Equal(e.Addresses, other.Addresses) && e.APIServer == other.APIServer &&
		e.EgressSocket == other.EgressSocket && e.WebhookSocket == other.WebhookSocket && e.AccountAPIsSocket == other.AccountAPIsSocket && e.PodCIDR == other.PodCIDR && slices.Equal(e.PodSubnets, other.PodSubnets) && slices.Equal(e.SecurityGroups, other.SecurityGroups)
}

// sameDoor reports whether an endpoint is served as another one is: groups are the kernel's business, and who may have
// a subnet is that of its controller.
func (e Endpoint) sameDoor(other Endpoint) bool {
	e.SecurityGroups, other.SecurityGroups = nil, nil
	e.PodSubnets, other.PodSubnets = nil, nil
	e.AccountAPIsSocket, other.AccountAPIsSocket = "", ""
	return e.equal(other)
}

// maxEndpoints is how many bytes the file with the endpoints of a VPC may have.
const maxEndpoints = 1 << 20

// endpointsFile has the endpoints of clusters in a VPC, sorted by cluster.
var endpointsFile = listFile[Endpoint]{
	name: "endpoints.json", key: "endpoints", what: "endpoints of the VPC", most: maxEndpoints,
	compare:  func(a, b Endpoint) int { return strings.Compare(a.Cluster, b.Cluster) },
	equal:    Endpoint.equal,
	validate: (*Network).validateEndpoints,
}

// Endpoints reads which clusters have endpoints in the VPC.
func (n *Network) Endpoints() ([]Endpoint, error) { return endpointsFile.read(n) }

// SetEndpoint adds the endpoint of a cluster, or replaces it. The VPC's process follows within a moment.
func (n *Network) SetEndpoint(endpoint Endpoint) error {
	return n.changeEndpoints(func(all []Endpoint) []Endpoint {
		for i, other := range all {
			if other.Cluster == endpoint.Cluster {
				all[i] = endpoint
				return all
			}
		}
		return append(all, endpoint)
	})
}

// SetEndpointGroups says which security groups the endpoints of clusters are in, by the cluster's name. Endpoints of
// other clusters keep theirs.
func (n *Network) SetEndpointGroups(groups map[string][]string) error {
	return n.changeEndpoints(func(all []Endpoint) []Endpoint {
		for i := range all {
			if own, ok := groups[all[i].Cluster]; ok {
				all[i].SecurityGroups = own
			}
		}
		return all
	})
}

// RemoveEndpoint removes the endpoint of a cluster, if there is one.
func (n *Network) RemoveEndpoint(cluster string) error {
	return n.changeEndpoints(func(all []Endpoint) []Endpoint {
		return slices.DeleteFunc(all, func(e Endpoint) bool { return e.Cluster == cluster })
	})
}

func (n *Network) changeEndpoints(change func([]Endpoint) []Endpoint) error {
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return fmt.Errorf("making VPC directory: %w", err)
	}
	unlock, err := n.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := endpointsFile.change(n, change); err != nil {
		return err
	}
	return n.enforce()
}

// validateEndpoints checks endpoints, each alone and beside the others: nothing of one is another's.
func (n *Network) validateEndpoints(all []Endpoint) error {
	for i, e := range all {
		if err := n.validateEndpoint(e); err != nil {
			return fmt.Errorf("endpoint of cluster %q: %w", e.Cluster, err)
		}
		for _, other := range all[:i] {
			var what string
			switch {
			case other.Cluster == e.Cluster:
				return fmt.Errorf("cluster %q has two endpoints", e.Cluster)
			case slices.ContainsFunc(e.Addresses, func(a netip.Addr) bool { return slices.Contains(other.Addresses, a) }):
				what = "an address"
			case other.EgressSocket == e.EgressSocket:
				what = "the egress socket"
			case e.WebhookSocket != "" && other.WebhookSocket == e.WebhookSocket:
				what = "the webhook socket"
			case e.AccountAPIsSocket != "" && other.AccountAPIsSocket == e.AccountAPIsSocket:
				what = "the socket of the account's APIs"
			case other.APIServer == e.APIServer:
				what = "the API server's address"
			case other.PodCIDR.Overlaps(e.PodCIDR):
				what = "a part of its podCIDR " + e.PodCIDR.String()
			default:
				continue
			}
			return fmt.Errorf("endpoint of cluster %q: cluster %q of this VPC has %s", e.Cluster, other.Cluster, what)
		}
	}
	return nil
}

// validateSockets checks the sockets of an endpoint.
func (e Endpoint) validateSockets() error {
	switch {
	case !filepath.IsAbs(e.EgressSocket):
		return fmt.Errorf("egress socket %q is not an absolute path", e.EgressSocket)
	case e.WebhookSocket != "" && (!filepath.IsAbs(e.WebhookSocket) || e.WebhookSocket == e.EgressSocket):
		return fmt.Errorf("webhook socket %q is not an absolute path of its own", e.WebhookSocket)
	case e.AccountAPIsSocket != "" && (!filepath.IsAbs(e.AccountAPIsSocket) || e.AccountAPIsSocket == e.EgressSocket || e.AccountAPIsSocket == e.WebhookSocket):
		return fmt.Errorf("socket of the account's APIs %q is not an absolute path of its own", e.AccountAPIsSocket)
	}
	return nil
}

func (n *Network) validateEndpoint(e Endpoint) error {
	if err := e.validateSockets(); err != nil {
		return err
	}
	switch {
	case e.Cluster == "":
		return errors.New("the cluster has no name")
	case len(e.Addresses) == 0:
		return errors.New("it has no address")
	case !e.APIServer.Addr().IsLoopback() || e.APIServer.Port() == 0:
		return fmt.Errorf("API server's address %s is not on the host's loopback", e.APIServer)
	case !e.PodCIDR.IsValid() || !e.PodCIDR.Addr().Is4() || e.PodCIDR.Masked() != e.PodCIDR || e.PodCIDR.Bits() == 0:
		return fmt.Errorf("podCIDR %s is not a range of IPv4 addresses", e.PodCIDR)
	case e.PodCIDR.Overlaps(n.cidr):
		return fmt.Errorf("podCIDR %s overlaps the VPC's range %s", e.PodCIDR, n.cidr)
	}
	for _, id := range e.SecurityGroups {
		if err := securitygroup.ValidateID(id); err != nil {
			return err
		}
	}
	for _, id := range e.PodSubnets {
		if !subnetPattern.MatchString(id) {
			return fmt.Errorf("invalid subnet id %q: must be subnet- and 17 hexadecimal digits", id)
		}
	}
	for i, address := range e.Addresses {
		if slices.Contains(e.Addresses[:i], address) {
			return fmt.Errorf("address %s is there twice", address)
		}
		subnet, err := n.subnetOf(address)
		if err != nil {
			return err
		}
		if isReserved(subnet, address) || slices.Contains(n.own(), address) {
			return fmt.Errorf("the address %s is reserved", address)
		}
	}
	return nil
}

// Taken lists the addresses of the VPC that are for no machine because clusters' endpoints or load balancers have them.
func (n *Network) Taken() ([]netip.Addr, error) {
	endpoints, err := n.Endpoints()
	if err != nil {
		return nil, err
	}
	var taken []netip.Addr
	for _, e := range endpoints {
		taken = append(taken, e.Addresses...)
	}
	balancers, err := n.Balancers()
	for _, b := range balancers {
		taken = append(taken, b.Address)
	}
	return taken, err
}
