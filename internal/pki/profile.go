// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"slices"
)

// Names of usages in the certificates API.
const (
	UsageDigitalSignature = "digital signature"
	UsageKeyEncipherment  = "key encipherment"
	UsageClientAuth       = "client auth"
	UsageServerAuth       = "server auth"
)

// Names of the signers that profiles belong to.
const (
	SignerKubeletClient  = "kubernetes.io/kube-apiserver-client-kubelet"
	SignerKubeletServing = "kubernetes.io/kubelet-serving"
)

// Profile is a kind of certificate.
type Profile struct {
	// Name in logs and metrics.
	Name string
	// SignerName of the requests that it serves.
	SignerName string
	// Usages that a request must name. Key encipherment may be named as well, because kubelets with RSA keys do.
	Usages []string
	// Names tells whether certificates carry subject alternative names: then at least one, else none.
	Names bool

	extKeyUsage x509.ExtKeyUsage
}

// ProfileFor returns the profile of a signer name.
func ProfileFor(signerName string) (Profile, bool) {
	switch signerName {
	case SignerKubeletClient:
		return ClientProfile(), true
	case SignerKubeletServing:
		return ServingProfile(), true
	default:
		return Profile{}, false
	}
}

// ClientProfile is what a kubelet shows to the API server.
func ClientProfile() Profile {
	return Profile{
		Name: "client", SignerName: SignerKubeletClient,
		Usages: []string{UsageDigitalSignature, UsageClientAuth}, extKeyUsage: x509.ExtKeyUsageClientAuth,
	}
}

// ServingProfile is what a kubelet shows to those who connect to it.
func ServingProfile() Profile {
	return Profile{
		Name: "serving", SignerName: SignerKubeletServing, Names: true,
		Usages: []string{UsageDigitalSignature, UsageServerAuth}, extKeyUsage: x509.ExtKeyUsageServerAuth,
	}
}

// AllowsUsages tells whether usages are exactly those of the profile, with or without key encipherment, each once
// (upstream: pkg/apis/certificates/helpers.go, ValidateKubeletClientCSR and ValidateKubeletServingCSR).
func (p Profile) AllowsUsages(usages []string) bool {
	have := slices.Sorted(slices.Values(usages))
	want := slices.Sorted(slices.Values(p.Usages))
	wider := slices.Sorted(slices.Values(append(slices.Clone(p.Usages), UsageKeyEncipherment)))
	return slices.Equal(have, want) || slices.Equal(have, wider)
}

// keyUsage is what stands in the certificate. Only an RSA key can encipher another: RFC 8813, 3 forbids the bit for the others.
func (p Profile) keyUsage(usages []string, k Key) x509.KeyUsage {
	u := x509.KeyUsageDigitalSignature
	if k.Algorithm == RSA && slices.Contains(usages, UsageKeyEncipherment) {
		u |= x509.KeyUsageKeyEncipherment
	}
	return u
}
