// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
)

// Users that are the control plane by convention, outside of the reserved prefixes: kubeadm's and those of widespread
// guides.
func controlPlaneUsers() []string {
	return []string{
		"kubernetes", "kube-apiserver", "kube-apiserver-kubelet-client", "front-proxy-client", "aggregator",
		"kubernetes-admin", "kubernetes-super-admin",
	}
}

// checkIdentityReserved refuses users and groups of nodes and of the control plane on certificates that no machine
// stands behind, even if a person approved: a person that reads "CN=system:node:a" in a hurry does not see that the
// signer skips every rule about nodes. Kubernetes keeps system: for itself, kubeadm binds kubeadm:cluster-admins to
// cluster-admin, and eks: and muster: are the prefixes of those control planes. Upstream refuses system:masters only,
// and for one signer.
func checkIdentityReserved(e evaluation) outcome {
	if e.profile.Node {
		return notApplicable("a node's identity is judged by the rules about nodes")
	}
	name := e.request.CSR.CommonName()
	if reservedIdentity(name) || slices.Contains(controlPlaneUsers(), plain(name)) {
		return refuse("nodes have a signer of their own", "the common name %q is one of nodes or the control plane", name)
	}
	for _, o := range e.request.CSR.Organization() {
		if reservedIdentity(o) {
			return refuse("bind a role to a group of your own", "the organization %q is one of nodes or the control plane", o)
		}
	}
	return pass("user %q, groups %q", name, e.request.CSR.Organization())
}

func reservedIdentity(name string) bool {
	return slices.ContainsFunc([]string{"system:", "kubeadm:", "eks:", "muster:"}, func(prefix string) bool {
		return strings.HasPrefix(plain(name), prefix)
	})
}

// plain is how a person in a hurry reads a name.
func plain(name string) string { return strings.ToLower(strings.TrimSpace(name)) }
