// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
)

const (
	pinPrefix = "sha256:"
	// maxAuthorities is far more than a cluster has while it replaces one.
	maxAuthorities = 32
	maxPins        = 32
)

// Pin is the hash that an authority is pinned by: of its public key, so that it stays when the certificate is renewed.
func Pin(authority *x509.Certificate) string {
	sum := sha256.Sum256(authority.RawSubjectPublicKeyInfo)
	return pinPrefix + hex.EncodeToString(sum[:])
}

// Pins are the hashes of the authorities in PEM.
func Pins(ca []byte) ([]string, error) {
	authorities, err := parseAuthorities(ca)
	if err != nil {
		return nil, err
	}
	var pins []string
	for _, authority := range authorities {
		if pin := Pin(authority); !slices.Contains(pins, pin) {
			pins = append(pins, pin)
		}
	}
	return pins, nil
}

// checkPins returns hashes as Pin writes them.
func checkPins(hashes []string) ([]string, error) {
	if len(hashes) > maxPins {
		return nil, refuse(BadPin, fmt.Sprintf("%d hashes of authorities are given and at most %d are taken", len(hashes), maxPins))
	}
	pins := make([]string, 0, len(hashes))
	for _, hash := range hashes {
		kind, value, ok := strings.Cut(strings.ToLower(hash), ":")
		raw, err := hex.DecodeString(value)
		if !ok || kind+":" != pinPrefix || err != nil || len(raw) != sha256.Size {
			return nil, refuse(BadPin, fmt.Sprintf("the CA hash %.100q is not of the form sha256:<64 hexadecimal digits>; muster token create --print-join-command tells the right one", hash))
		}
		pins = append(pins, pinPrefix+value)
	}
	return pins, nil
}

// parseAuthorities reads PEM that must hold certificates and nothing else.
func parseAuthorities(ca []byte) ([]*x509.Certificate, error) {
	var authorities []*x509.Certificate
	for block, rest := pem.Decode(ca); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it holds a PEM block %.40q among its authorities", block.Type)
		}
		if len(authorities) == maxAuthorities {
			return nil, fmt.Errorf("it names more than %d authorities", maxAuthorities)
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("its authority %d is not a certificate: %w", len(authorities)+1, err)
		}
		authorities = append(authorities, authority)
	}
	if len(authorities) == 0 {
		return nil, fmt.Errorf("it names no authority in PEM")
	}
	return authorities, nil
}

// pinned are those of the authorities that a pin names.
func pinned(authorities []*x509.Certificate, pins []string) ([]*x509.Certificate, error) {
	var found []*x509.Certificate
	var seen []string
	for _, authority := range authorities {
		pin := Pin(authority)
		if slices.Contains(pins, pin) {
			found = append(found, authority)
		}
		seen = append(seen, fmt.Sprintf("%s (%s)", pin, authority.Subject))
	}
	if len(found) == 0 {
		return nil, refuse(WrongCA, fmt.Sprintf("the cluster's authority is not the pinned one: it shows %s, and pinned is %s; ask who runs the cluster for the hash: if it differs from what is shown here, somebody else answered",
			strings.Join(seen, " and "), strings.Join(pins, " or ")))
	}
	return found, nil
}

// encode writes authorities as PEM, in their order.
func encode(authorities []*x509.Certificate) []byte {
	var out []byte
	for _, authority := range authorities {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})...)
	}
	return out
}
