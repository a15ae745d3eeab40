// SPDX-License-Identifier: Apache-2.0

package policyconfig

// The words that modes and choices may have; the first of each is the default.
const (
	ModeApproveAndSign = "approve-and-sign"
	ModeApproveOnly    = "approve-only"
	ModeSignOnly       = "sign-only"
	ModeObserve        = "observe"

	UnboundRefuse = "refuse"
	UnboundAllow  = "allow"

	CombineAny = "any"
	CombineAll = "all"

	NodeNamesPrivateDNS = "private-dns-name"
	NodeNamesInstanceID = "instance-id"
	NodeNamesResource   = "resource-name"
)

func (c *Configuration) setDefaults() {
	const system = "muster-system"
	setDefault(&c.Mode, ModeApproveAndSign)
	setDefault(&c.ShutdownGrace, "10s")
	for i := range c.Signers {
		setDefault(&c.Signers[i].Duration, "168h")
		if len(c.Keys) == 1 {
			setDefault(&c.Signers[i].Key, c.Keys[0].Name)
		}
	}
	setDefault(&c.Rules.MinExpiration, "10m")
	setDefault(&c.Rules.MaxExpiration, "8760h")
	setDefault(&c.Rules.MaxFactAge, "2m")
	setDefault(&c.Rules.Reserved.ClusterDomain, "cluster.local")
	setDefault(&c.Rules.Bootstrap.UnboundTokens, UnboundRefuse)
	setDefault(&c.Inventory.Combine, CombineAny)
	for _, s := range c.Inventory.Sources {
		if s.DNS != nil {
			setDefault(&s.DNS.Timeout, "2s")
		}
		if s.EC2 != nil {
			setDefault(&s.EC2.NodeNames, NodeNamesPrivateDNS)
		}
	}
	setDefault(&c.Register.Namespace, system)
	setDefault(&c.Pruning.Keep, 2)
	setDefault(&c.LeaderElection.Namespace, system)
	setDefault(&c.LeaderElection.Name, "muster-certificate-controller")
	setDefault(&c.Health.BindAddress, "127.0.0.1:0")
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
