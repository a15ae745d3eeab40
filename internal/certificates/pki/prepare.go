// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"slices"
	"sync/atomic"
	"time"
)

// Order is what Prepare needs beside the request itself.
type Order struct {
	Profile Profile
	// Usages as the certificates API names them; they must be those of the profile.
	Usages []string
	// Serial number, positive and at most 128 bits: see NewSerial.
	Serial *big.Int
	// Issuer is the certificate that will sign.
	Issuer *x509.Certificate
	// Duration of the profile's certificates.
	Duration time.Duration
	// ExpirationSeconds asked for, if any.
	ExpirationSeconds *int32
	Now               time.Time
}

// Prepared is a certificate that was checked and waits for its signature. Only Prepare makes one, and it signs once.
type Prepared struct{ *prepared }

type prepared struct {
	template  *x509.Certificate
	subject   subject
	publicKey any
	issuer    *x509.Certificate
	profile   Profile
	signed    recording               // the message that was linted; no other is ever signed
	algorithm x509.SignatureAlgorithm // as it says itself
	used      atomic.Bool
}

// NewSerial draws 128 bits for a serial number. It is positive, and has 17 of the 20 octets that RFC 5280, 4.1.2.2,
// allows at most.
func NewSerial(random io.Reader) (*big.Int, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	if b == [16]byte{} {
		return nil, errors.New("drawing a serial number: it was zero, so the source of random bits is broken")
	}
	return new(big.Int).SetBytes(b[:]), nil
}

// Prepare builds a certificate from the checked fields of a request and lints the very bytes that are to be signed: a
// mistake must show before the key is touched.
func Prepare(r Request, o Order) (Prepared, error) {
	if r.publicKey == nil {
		return Prepared{}, errors.New("the request is empty: only what Parse returned can be prepared")
	}
	if err := o.check(r); err != nil {
		return Prepared{}, err
	}
	notBefore, notAfter, err := Validity(o.Now, o.Duration, o.ExpirationSeconds, o.Issuer.NotAfter)
	if err != nil {
		return Prepared{}, err
	}
	rawSubject, err := r.subject.encode()
	if err != nil {
		return Prepared{}, err
	}
	usage, extended := encode(o.Usages, r.key)
	t := &x509.Certificate{
		SerialNumber:          new(big.Int).Set(o.Serial),
		RawSubject:            rawSubject,
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		KeyUsage:              usage,
		ExtKeyUsage:           extended,
		BasicConstraintsValid: true,
		DNSNames:              r.DNSNames(),
	}
	for _, a := range r.addresses {
		t.IPAddresses = append(t.IPAddresses, net.IP(a.AsSlice()))
	}
	p := Prepared{&prepared{template: t, subject: r.subject, publicKey: r.publicKey, issuer: o.Issuer, profile: o.Profile}}
	if p.signed, err = p.rehearse(); err != nil {
		return Prepared{}, fmt.Errorf("encoding the certificate: %w", err)
	}
	if err := p.lint(); err != nil {
		return Prepared{}, fmt.Errorf("linting the certificate before signing: %w", err)
	}
	return p, nil
}

func (o Order) check(r Request) error {
	names := len(r.dnsNames) + len(r.addresses)
	switch {
	case !o.Profile.Valid():
		return fmt.Errorf("the profile %q is not one of this package", o.Profile.Name)
	case o.Issuer == nil || !o.Issuer.IsCA:
		return errors.New("the issuer is not a certificate authority")
	case o.Now.Before(o.Issuer.NotBefore): // a certificate by a clock that was set back would have ended before anybody gets it
		return fmt.Errorf("the signing certificate is not valid before %s, and it is %s: is the clock right?",
			o.Issuer.NotBefore.UTC().Format(time.RFC3339), o.Now.UTC().Format(time.RFC3339))
	case o.Serial == nil || o.Serial.Sign() <= 0 || o.Serial.BitLen() > 128:
		return errors.New("the serial number must be positive and have at most 128 bits")
	case !o.Profile.AllowsUsages(o.Usages):
		return fmt.Errorf("the usages %q are not those of a %s certificate", o.Usages, o.Profile.Name)
	case !o.Profile.AllowsNames(names):
		return fmt.Errorf("a %s certificate with %d names cannot be made", o.Profile.Name, names)
	case o.Profile.Node && (!slices.Equal(r.subject.organization, []string{nodesOrganization}) || len(r.subject.other) > 0):
		return fmt.Errorf("the subject of a %s certificate must be the organization %s and the common name of its node, and nothing else", o.Profile.Name, nodesOrganization)
	}
	return nil
}

// nodesOrganization is the one group of nodes.
const nodesOrganization = "system:nodes"

// IssuedBy reports whether it was prepared for this issuer.
func (p Prepared) IssuedBy(issuer *x509.Certificate) bool {
	return p.prepared != nil && issuer != nil && bytes.Equal(p.issuer.Raw, issuer.Raw)
}
