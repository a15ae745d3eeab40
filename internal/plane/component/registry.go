// SPDX-License-Identifier: Apache-2.0

package component

import "muster.dev/muster/internal/certificates/authority"

// registry is the account's image registry: for people on a loopback port, for machines by the relays of their VPCs. It
// runs without the service, and asks it about each request.
func registry(a Account) Spec {
	return Spec{
		Name: Registry,
		Path: a.program("muster-registry"),
		Args: flags(map[string]string{
			"account":     DefaultAccount,
			"certificate": a.Credential(Registry),
			"listen":      a.Places.Registry.Listen.String(),
			"region":      a.Region.Name,
			"state-dir":   string(a.State),
		}),
		Directories: []string{a.State.Run(), a.State.Registry()},
		Address:     a.Places.Registry.Listen.String(),
		Credentials: []string{a.Credential(Registry)},
		Probe:       &Probe{URL: "http://registry/readyz", Socket: a.State.RegistrySocket()},
	}
}

// registryCredential is the certificate of the registry, by the names that it has on this host and in VPCs.
func registryCredential(a Account) authority.Credential {
	return authority.Credential{
		Name: Registry, Authority: authority.Account, CommonName: "muster:registry", DNSNames: append(localhost(), a.Region.RegistryName(DefaultAccount)), Addresses: reached(a.Places.Registry),
	}
}
