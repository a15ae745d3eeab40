// SPDX-License-Identifier: Apache-2.0

package policyconfig

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

// value of a duration that was validated.
func (d Duration) value() time.Duration {
	parsed, _ := time.ParseDuration(string(d))
	return parsed
}

// Policy is what the file says about the rules. The file must come from Read.
func (c Configuration) Policy() policy.Policy {
	p := policy.Policy{
		AllowEd25519:  c.Rules.AllowEd25519,
		Signers:       map[string]pki.Profile{},
		MinExpiration: c.Rules.MinExpiration.value(),
		MaxExpiration: c.Rules.MaxExpiration.value(),
		MaxFactAge:    c.Rules.MaxFactAge.value(),
		ClusterDomain: c.Rules.Reserved.ClusterDomain,

		ApprovalReasons: c.Rules.ApprovalReasons, RequireCredential: c.Rules.Credential.Required,
		ServingRenewal: c.Rules.ServingRenewal != nil,
		Bootstrap:      policy.Bootstrap{UnboundTokens: c.Rules.Bootstrap.UnboundTokens == UnboundAllow, Window: c.Rules.Bootstrap.Window.value()},
	}
	for _, s := range c.Signers {
		if profile, err := s.PKIProfile(); err == nil {
			p.Signers[s.Name] = profile
		}
	}
	for _, name := range c.Rules.Reserved.Names {
		p.ReservedNames = append(p.ReservedNames, canonical(name))
	}
	for _, text := range c.Rules.Reserved.Addresses {
		if prefix, err := network(text); err == nil {
			p.ReservedAddresses = append(p.ReservedAddresses, prefix)
		}
	}
	for _, b := range c.Rules.Bootstrap.Bindings {
		p.Bootstrap.Bindings = append(p.Bootstrap.Bindings, policy.Binding(b))
	}
	return p
}

// SignerNames are the names of all signers that are served.
func (c Configuration) SignerNames() []string {
	var names []string
	for _, s := range c.Signers {
		names = append(names, s.Name)
	}
	return names
}

// Elects reports whether replicas elect the one that decides. They do unless the file says otherwise: two that both
// decide would do everything twice.
func (c Configuration) Elects() bool {
	enabled := c.LeaderElection.Enabled
	return enabled == nil || *enabled
}

// Grace is how long requests in hand may take to end.
func (c Configuration) Grace() time.Duration { return c.ShutdownGrace.value() }

// Life of the signer's certificates.
func (s Signer) Life() time.Duration { return s.Duration.value() }

// Kind is the name of the field that is set, "" if none is.
func (s Source) Kind() string {
	switch {
	case s.Machines != nil:
		return "machines"
	case s.Static != nil:
		return "static"
	case s.DNS != nil:
		return "dns"
	case s.ClusterAPI != nil:
		return "clusterAPI"
	case s.EC2 != nil:
		return "ec2"
	case s.NodeStatus != nil:
		return "nodeStatus"
	default:
		return ""
	}
}

// Wait is how long resolvers may take.
func (d DNS) Wait() time.Duration { return d.Timeout.value() }

// PKIProfile is the kind of certificates of the signer.
func (s Signer) PKIProfile() (pki.Profile, error) {
	if profile, ok := pki.ProfileFor(s.Name); ok {
		if s.Profile != "" {
			return profile, fmt.Errorf("the signer %s has a profile of its own; leave profile out", s.Name)
		}
		return profile, nil
	}
	if s.Profile == "" {
		return pki.Profile{}, fmt.Errorf("the signer %q is none of upstream's; give it a profile, %s or %s", s.Name, pki.KindServing, pki.KindClient)
	}
	return pki.CustomProfile(s.Name, s.Profile)
}

func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

func network(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}
