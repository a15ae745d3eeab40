// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Kind is which of a kubelet's two certificates.
type Kind string

// The two certificates of a kubelet: the one that it shows to the API server, and the one that it serves.
const (
	Client  Kind = "client"
	Serving Kind = "server" // the word in upstream's file names
)

// Kinds are both.
func Kinds() []Kind { return []Kind{Client, Serving} }

// SignerName is the signer from which such a certificate is requested.
func (k Kind) SignerName() string {
	if k == Serving {
		return certificatesv1.KubeletServingSignerName
	}
	return certificatesv1.KubeAPIServerClientKubeletSignerName
}

// usage is what such a certificate is for.
func (k Kind) usage() (certificatesv1.KeyUsage, x509.ExtKeyUsage) {
	if k == Serving {
		return certificatesv1.UsageServerAuth, x509.ExtKeyUsageServerAuth
	}
	return certificatesv1.UsageClientAuth, x509.ExtKeyUsageClientAuth
}

func (k Kind) prefix() string { return "kubelet-" + string(k) }

// link is the name of the link to the pair in use.
func (k Kind) link() string { return k.prefix() + "-current.pem" }

// updated is the name that upstream's store gives a link before it becomes the current link. If a crash left such a
// link and there is no current link, the store takes it up.
func (k Kind) updated() string { return k.prefix() + "-updated.pem" }

// Pair is a certificate and its key, as one file holds them.
type Pair struct {
	// Chain is the node's certificate and those of intermediate authorities, if any.
	Chain []*x509.Certificate
	Key   crypto.Signer
}

// Leaf is the node's certificate.
func (p Pair) Leaf() *x509.Certificate { return p.Chain[0] }

// Matches reports whether the key is the certificate's.
func (p Pair) Matches() bool {
	key, ok := p.Key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && key.Equal(p.Leaf().PublicKey)
}

// A pair of an upstream kubelet is less than two thousand bytes long. A pair with a long chain of RSA certificates
// still fits.
const (
	maxPair  = 64 << 10
	maxChain = 8
)

// Parse reads a pair in PEM: certificates, the node's first, and one key, in the order in which upstream writes them or
// the other. Anything else in the file is an error. The error never repeats the content of the file, which may be a
// key.
func Parse(raw []byte) (Pair, error) {
	if len(raw) > maxPair {
		return Pair{}, fmt.Errorf("it has %d bytes, more than %d", len(raw), maxPair)
	}
	var p Pair
	rest := raw
	for n := 1; len(bytes.TrimSpace(rest)) > 0; n++ {
		trimmed := bytes.TrimSpace(rest)
		block, after := pem.Decode(trimmed)
		// pem.Decode passes over what it does not understand.
		if block == nil || !bytes.HasPrefix(trimmed, []byte("-----BEGIN "+block.Type+"-----")) {
			return Pair{}, fmt.Errorf("block %d is not PEM", n)
		}
		if len(block.Headers) > 0 {
			return Pair{}, fmt.Errorf("block %d has PEM headers; an encrypted key cannot be read", n)
		}
		if err := p.add(block); err != nil {
			return Pair{}, fmt.Errorf("block %d: %w", n, err)
		}
		rest = after
	}
	switch {
	case len(p.Chain) == 0:
		return Pair{}, errors.New("it has no certificate")
	case p.Key == nil:
		return Pair{}, errors.New("it has no key")
	}
	return p, nil
}

func (p *Pair) add(block *pem.Block) error {
	var key any
	var err error
	switch block.Type {
	case "CERTIFICATE":
		if len(p.Chain) == maxChain {
			return fmt.Errorf("there are more than %d certificates", maxChain)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("reading the certificate: %w", err)
		}
		p.Chain = append(p.Chain, certificate)
		return nil
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	default:
		return errors.New("it is neither a certificate nor a private key")
	}
	if err != nil {
		return errors.New("the private key cannot be read")
	}
	if p.Key != nil {
		return errors.New("it is a second private key")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return errors.New("the private key cannot sign")
	}
	p.Key = signer
	return nil
}
