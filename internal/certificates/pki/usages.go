// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"maps"
	"slices"
)

// Names of usages in the certificates API.
const (
	UsageDigitalSignature = "digital signature"
	UsageKeyEncipherment  = "key encipherment"
	UsageClientAuth       = "client auth"
	UsageServerAuth       = "server auth"
)

// keyUsages and extKeyUsages say what the API's names of usages mean (upstream:
// pkg/controller/certificates/authority/policies.go and k8s.io/api/certificates/v1). Left out are those that let a
// certificate speak for its issuer, cert sign, crl sign and ocsp signing, and any, which is all of them.
func keyUsages() map[string]x509.KeyUsage {
	return map[string]x509.KeyUsage{
		"signing":             x509.KeyUsageDigitalSignature,
		UsageDigitalSignature: x509.KeyUsageDigitalSignature,
		"content commitment":  x509.KeyUsageContentCommitment,
		UsageKeyEncipherment:  x509.KeyUsageKeyEncipherment,
		"data encipherment":   x509.KeyUsageDataEncipherment,
		"key agreement":       x509.KeyUsageKeyAgreement,
		"encipher only":       x509.KeyUsageEncipherOnly,
		"decipher only":       x509.KeyUsageDecipherOnly,
	}
}

func extKeyUsages() map[string]x509.ExtKeyUsage {
	return map[string]x509.ExtKeyUsage{
		UsageServerAuth:    x509.ExtKeyUsageServerAuth,
		UsageClientAuth:    x509.ExtKeyUsageClientAuth,
		"code signing":     x509.ExtKeyUsageCodeSigning,
		"email protection": x509.ExtKeyUsageEmailProtection,
		"s/mime":           x509.ExtKeyUsageEmailProtection,
		"ipsec end system": x509.ExtKeyUsageIPSECEndSystem,
		"ipsec tunnel":     x509.ExtKeyUsageIPSECTunnel,
		"ipsec user":       x509.ExtKeyUsageIPSECUser,
		"timestamping":     x509.ExtKeyUsageTimeStamping,
		"microsoft sgc":    x509.ExtKeyUsageMicrosoftServerGatedCrypto,
		"netscape sgc":     x509.ExtKeyUsageNetscapeServerGatedCrypto,
	}
}

func harmlessUsages() []string {
	return append(slices.Sorted(maps.Keys(keyUsages())), slices.Sorted(maps.Keys(extKeyUsages()))...)
}

// AllowsUsages reports whether usages are all that the profile wants and none that it does not know, each once
// (upstream: pkg/apis/certificates/helpers.go, ValidateKubeletClientCSR and ValidateKubeletServingCSR).
func (p Profile) AllowsUsages(usages []string) bool {
	if len(usages) == 0 {
		return false
	}
	seen := map[string]bool{}
	for _, u := range usages {
		if seen[u] || !slices.Contains(p.Usages, u) && !slices.Contains(p.MayUse, u) {
			return false
		}
		seen[u] = true
	}
	return !slices.ContainsFunc(p.Usages, func(u string) bool { return !seen[u] })
}

// encode turns usages into what stands in the certificate, nothing if none of the sort was asked for. Only an RSA key
// can encipher another: RFC 8813, 3 forbids the bit for the others.
func encode(usages []string, k Key) (x509.KeyUsage, []x509.ExtKeyUsage) {
	var usage x509.KeyUsage
	var extended []x509.ExtKeyUsage
	bits, extensions := keyUsages(), extKeyUsages()
	for _, u := range usages {
		bit := bits[u]
		if bit&(x509.KeyUsageKeyEncipherment|x509.KeyUsageDataEncipherment) != 0 && k.Algorithm != RSA {
			continue
		}
		usage |= bit
		if e, ok := extensions[u]; ok && !slices.Contains(extended, e) {
			extended = append(extended, e)
		}
	}
	slices.Sort(extended)
	return usage, extended
}
