// SPDX-License-Identifier: Apache-2.0

package csrview

import (
	"strings"

	"muster.dev/muster/internal/certificates/pki"
)

// ShortSigner is the last part of a signer's name, which is what people tell signers apart by.
func ShortSigner(name string) string {
	switch name {
	case pki.SignerKubeletClient:
		return "kubelet-client"
	case pki.SignerKubeletServing:
		return "kubelet-serving"
	}
	return strings.TrimPrefix(name, "kubernetes.io/")
}

// LongSigner returns the name of a signer that may be given as ShortSigner has it.
func LongSigner(name string) string {
	for _, long := range []string{pki.SignerKubeletClient, pki.SignerKubeletServing} {
		if name == ShortSigner(long) {
			return long
		}
	}
	if !strings.Contains(name, "/") {
		return "kubernetes.io/" + name
	}
	return name
}
