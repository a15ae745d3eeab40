// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"slices"
	"strings"

	"muster.dev/muster/internal/certificates/pki"
)

// checkNamesReserved refuses names of the control plane and of Services, even if the inventory should assign one to a
// machine: the holder of a certificate for kubernetes.default.svc is the API server to every pod. Services' names are
// what other signers than the kubelet's are for, so only those of the API server are refused there, in the common name
// as well, which old clients take for a host.
func checkNamesReserved(e evaluation) outcome {
	names := e.request.CSR.DNSNames()
	for _, n := range names {
		if why := e.policy.reservedName(n, e.profile.Node); why != "" {
			return refuse("nobody but the control plane may have it", "the DNS name %q is %s", n, why)
		}
	}
	if !e.profile.Node && e.profile.Names != pki.NamesNone {
		if why := e.policy.reservedHost(e.request.CSR.CommonName()); why != "" {
			return refuse("old clients take it for the name of a host", "the common name %q is %s", e.request.CSR.CommonName(), why)
		}
	} else if len(names) == 0 {
		return notApplicable("no DNS names")
	}
	return pass("none is reserved")
}

// reservedHost looks at a common name as clients do that know no subject alternative names.
func (p Policy) reservedHost(name string) string {
	if a, err := netip.ParseAddr(name); err == nil {
		return p.reservedAddress(a)
	}
	if strings.Contains(name, "*") {
		return "a wildcard, which stands for reserved ones too"
	}
	return p.reservedName(plain(name), false)
}

// reservedName returns the owner of a reserved name, "" if it is free. Nodes may not have those of Services either.
func (p Policy) reservedName(n string, node bool) string {
	n = strings.ToLower(strings.TrimRight(n, "."))
	labels := strings.Split(n, ".")
	last := labels[len(labels)-1]
	domain := strings.ToLower(strings.Trim(p.ClusterDomain, "."))
	switch {
	case labels[0] == "kubernetes", strings.Contains("."+n+".", ".kubernetes.default."):
		return "one of the API server's"
	case last == "localhost", labels[0] == "localhost":
		return "everybody's own"
	case slices.ContainsFunc(p.ReservedNames, func(r string) bool { return strings.EqualFold(strings.TrimRight(r, "."), n) }):
		return "reserved"
	case domain != "" && n == domain:
		return "the domain of the cluster's Services"
	case node && last == "svc":
		return "a Service's"
	case node && domain != "" && strings.HasSuffix(n, "."+domain):
		return "in the domain of the cluster's Services"
	}
	return ""
}
