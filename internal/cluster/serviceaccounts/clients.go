// SPDX-License-Identifier: Apache-2.0

package serviceaccounts

import (
	"net/netip"
	"sync"

	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/plane/component"
)

// Clients says whom the clients of issuers' documents in VPCs trust: a pod trusts its own cluster, everybody else the
// account.
type Clients struct {
	Clusters

	// Account is the file of the account's credential for issuers.
	Account string

	mutex       sync.Mutex
	directories map[string]*local.Directory // by VPC
}

// Credential is the file of the credential for a client with an address in a VPC.
func (c *Clients) Credential(source netip.Addr, vpc string) string {
	name, isPod := c.pod(source, vpc)
	for _, known := range c.Running() {
		if network := known.Specs.Network; network.VPCID == vpc && (isPod && known.name() == name || network.PodCIDR.Contains(source)) {
			return known.Specs.Credential(component.CredentialIssuer)
		}
	}
	return c.Account
}

// pod is the cluster of a pod with an address of its machine's subnet. Records that cannot be read make it nobody's:
// the certificate is one that it does not trust, and it asks again.
func (c *Clients) pod(source netip.Addr, vpc string) (cluster string, ok bool) {
	c.mutex.Lock()
	directory := c.directories[vpc]
	if directory == nil {
		found, err := local.NewDirectory(c.State, vpc)
		if err != nil {
			c.mutex.Unlock()
			return "", false
		}
		if c.directories == nil {
			c.directories = map[string]*local.Directory{}
		}
		directory = found
		c.directories[vpc] = directory
	}
	c.mutex.Unlock()
	cluster, ok, err := directory.ClusterOfPod(source)
	if err != nil {
		c.Log.Error("cannot tell which pod asks for an issuer's documents", "vpc", vpc, "source", source.String(), "error", err)
	}
	return cluster, ok && err == nil
}
