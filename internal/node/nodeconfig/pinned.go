// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
)

// Pinned are those authorities of a bundle whose public key has one of these hashes; nothing vouches for the others.
// That there is none is an error. Without hashes it is the bundle.
func Pinned(bundle []byte, hashes []string) ([]byte, error) {
	if len(hashes) == 0 {
		return bundle, nil
	}
	var pinned []byte
	var seen []string
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading spec.cluster.certificateAuthority: %w", err)
		}
		sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
		hash := "sha256:" + hex.EncodeToString(sum[:])
		if slices.Contains(hashes, hash) {
			pinned = append(pinned, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})...)
		}
		seen = append(seen, hash)
	}
	if len(pinned) == 0 {
		return nil, fmt.Errorf("spec.cluster.certificateAuthority has the hash %s, which is none of these: one of the two is another cluster's", strings.Join(seen, " and "))
	}
	return pinned, nil
}
