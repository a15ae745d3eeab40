// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/netip"
	"sync"

	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
)

// issuersInVPC is where pods and machines reach the documents, and with which certificate, if issuers have a name
// there.
func (s *Service) issuersInVPC(account component.Account) (socket string, credentialOf func(netip.Addr, string) string) {
	if at, err := issuer.ReadEndpoint(account.State.Issuers()); err != nil || !account.VPC || at.InVPC() == "" {
		return "", nil
	}
	return account.State.IssuersSocket(), (&issuerClients{
		service: s, account: account, directories: map[string]*local.Directory{},
	}).credential
}

// issuerClients says whom the clients of issuers' documents in VPCs trust: a pod trusts its own cluster, everybody else
// the account.
type issuerClients struct {
	service *Service
	account component.Account

	mutex       sync.Mutex
	directories map[string]*local.Directory // by VPC
}

func (c *issuerClients) credential(source netip.Addr, vpc string) string {
	name, isPod := c.pod(source, vpc)
	for _, h := range c.service.clusters() {
		h.mu.Lock()
		own := h.specs
		h.mu.Unlock()
		if own.Network.VPCID == vpc && (isPod && own.Cluster.Spec.Name == name || own.Network.PodCIDR.Contains(source)) {
			return own.Credential(component.CredentialIssuer)
		}
	}
	return c.account.Credential(component.CredentialIssuer)
}

// pod is the cluster of a pod with an address of its machine's subnet. Records that cannot be read make it nobody's:
// the certificate is one that it does not trust, and it asks again.
func (c *issuerClients) pod(source netip.Addr, vpc string) (cluster string, ok bool) {
	c.mutex.Lock()
	directory := c.directories[vpc]
	if directory == nil {
		found, err := local.NewDirectory(c.account.State, vpc)
		if err != nil {
			c.mutex.Unlock()
			return "", false
		}
		directory = found
		c.directories[vpc] = directory
	}
	c.mutex.Unlock()
	cluster, ok, err := directory.ClusterOfPod(source)
	if err != nil {
		c.service.cfg.Log.Error("cannot tell which pod asks for an issuer's documents", "vpc", vpc, "source", source.String(), "error", err)
	}
	return cluster, ok && err == nil
}
