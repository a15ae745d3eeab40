// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// MaxRequestSize is the most bytes a request may have. An RSA 8192 request with a dozen names has 4 KiB.
const MaxRequestSize = 16 << 10

// Request is a certificate signing request that was read completely. It cannot be changed.
type Request struct {
	subject     subject
	dnsNames    []string
	addresses   []netip.Addr
	publicKey   any
	key         Key
	fingerprint Fingerprint
}

// Fingerprint of a public key: SHA-256 of its SubjectPublicKeyInfo.
type Fingerprint [sha256.Size]byte

// CommonName is the one common name.
func (r Request) CommonName() string { return r.subject.commonName }

// Organization returns the organizations in the order of the request.
func (r Request) Organization() []string { return slices.Clone(r.subject.organization) }

// OtherAttributes names what the subject has beside these, in the order of the request: C, ST, L or OU. They mean
// nothing to Kubernetes, and stand in the certificate as well.
func (r Request) OtherAttributes() []string {
	var names []string
	for _, a := range r.subject.other {
		names = append(names, a.name)
	}
	return names
}

// DNSNames returns the DNS names exactly as they stand in the request: nothing has checked their syntax yet.
func (r Request) DNSNames() []string { return slices.Clone(r.dnsNames) }

// Addresses returns the IP addresses, IPv4-in-IPv6 ones as the IPv4 addresses that they are to every TLS client.
func (r Request) Addresses() []netip.Addr { return slices.Clone(r.addresses) }

// Key describes the public key.
func (r Request) Key() Key { return r.key }

// Fingerprint of the public key.
func (r Request) Fingerprint() Fingerprint { return r.fingerprint }

// Parse reads a PEM encoded request and refuses everything that it does not know.
func Parse(data []byte) (Request, error) {
	der, err := decodePEM(data)
	if err != nil {
		return Request{}, err
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return Request{}, fmt.Errorf("reading the request: %w", err)
	}
	if csr.Version != 0 {
		return Request{}, fmt.Errorf("the request has version %d; only version 0 (v1) exists", csr.Version)
	}
	r := Request{publicKey: csr.PublicKey, fingerprint: sha256.Sum256(csr.RawSubjectPublicKeyInfo)}
	if r.key, err = describeKey(csr.PublicKey); err != nil {
		return Request{}, err
	}
	if err := checkKeyEncoding(csr); err != nil {
		return Request{}, err
	}
	if err := checkSelfSignature(csr); err != nil {
		return Request{}, err
	}
	if r.subject, err = readSubject(csr.RawSubject); err != nil {
		return Request{}, err
	}
	san, err := readAttributes(csr.RawTBSCertificateRequest)
	if err != nil {
		return Request{}, err
	}
	if san != nil {
		if r.dnsNames, r.addresses, err = readSAN(san); err != nil {
			return Request{}, err
		}
	}
	return r, agree(r, csr)
}

// agree compares what this package read with what crypto/x509 read: two readers that differ are two opinions of what is
// signed.
func agree(r Request, csr *x509.CertificateRequest) error {
	ips := make([]netip.Addr, 0, len(csr.IPAddresses))
	for _, ip := range csr.IPAddresses {
		a, ok := netip.AddrFromSlice(ip)
		if !ok {
			return errors.New("the request holds an invalid IP address: must be 4 or 16 bytes")
		}
		ips = append(ips, a.Unmap())
	}
	switch {
	case csr.Subject.CommonName != r.subject.commonName, !slices.Equal(csr.Subject.Organization, r.subject.organization),
		len(csr.Subject.Names) != 1+len(r.subject.organization)+len(r.subject.other):
		return errors.New("the subject can be read in two ways")
	case !slices.Equal(csr.DNSNames, r.dnsNames), !slices.Equal(ips, r.addresses),
		len(csr.EmailAddresses) > 0, len(csr.URIs) > 0:
		return errors.New("the subject alternative names can be read in two ways")
	}
	return nil
}

// checkKeyEncoding refuses a key that is not written in the one way that certificates have it. crypto/x509 reads others
// as well (unused bits, something behind the exponent), and one key with several fingerprints could be certified for
// several nodes.
func checkKeyEncoding(csr *x509.CertificateRequest) error {
	canonical, err := x509.MarshalPKIXPublicKey(csr.PublicKey)
	if err != nil {
		return fmt.Errorf("encoding the key: %w", err)
	}
	if !bytes.Equal(canonical, csr.RawSubjectPublicKeyInfo) {
		return errors.New("the key is encoded in another way than certificates have it")
	}
	return nil
}

// checkSelfSignature proves that the requester holds the private key.
func checkSelfSignature(csr *x509.CertificateRequest) error {
	switch csr.SignatureAlgorithm {
	case x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512, x509.PureEd25519,
		x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA,
		x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS:
	default: // crypto/x509 still accepts SHA-1 on requests
		return fmt.Errorf("the request is signed with %s; use SHA-256 or better", csr.SignatureAlgorithm)
	}
	if err := csr.CheckSignature(); err != nil {
		return fmt.Errorf("the request's own signature is wrong: %w", err)
	}
	return nil
}

// unmarshal reads exactly one value: trailing bytes are refused.
func unmarshal(der []byte, into any, params string) error {
	rest, err := asn1.UnmarshalWithParams(der, into, params)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d bytes follow the value", len(rest))
	}
	return nil
}
