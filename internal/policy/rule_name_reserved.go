// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
)

// checkNamesReserved refuses names of the control plane and of Services, even if the inventory should assign one to a machine:
// whoever holds a certificate for kubernetes.default.svc is the API server to every pod.
func checkNamesReserved(e evaluation) outcome {
	names := e.request.CSR.DNSNames()
	if len(names) == 0 {
		return notApplicable("no DNS names")
	}
	for _, n := range names {
		if why := e.policy.reservedName(n); why != "" {
			return refuse("no node may have it", "the DNS name %q is %s", n, why)
		}
	}
	return pass("none is reserved")
}

func (p Policy) reservedName(n string) string {
	n = strings.ToLower(strings.TrimRight(n, "."))
	labels := strings.Split(n, ".")
	domain := strings.ToLower(p.ClusterDomain)
	switch {
	case labels[0] == "kubernetes":
		return "one of the API server's"
	case labels[len(labels)-1] == "localhost", labels[0] == "localhost":
		return "everybody's own"
	case slices.Contains(p.ReservedNames, n):
		return "one of the API server's"
	case labels[len(labels)-1] == "svc":
		return "a Service's"
	case domain != "" && (n == domain || strings.HasSuffix(n, "."+domain)):
		return "in the domain of the cluster's Services"
	}
	return ""
}
