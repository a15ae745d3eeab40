// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// Object identifiers: constants that Go cannot say.
var (
	oidSubjectAltName   = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidKeyUsage         = asn1.ObjectIdentifier{2, 5, 29, 15}
	oidExtKeyUsage      = asn1.ObjectIdentifier{2, 5, 29, 37}
	oidBasicConstraints = asn1.ObjectIdentifier{2, 5, 29, 19}
	oidAuthorityKeyID   = asn1.ObjectIdentifier{2, 5, 29, 35}
)

// lint reads the bytes to be signed back and compares them with what was asked to be made. It looks at the bytes, not
// at the template: whatever stands between the two is under test.
func (p Prepared) lint() error {
	c, err := unsigned(p.signed.tbs)
	if err != nil {
		return fmt.Errorf("reading it back: %w", err)
	}
	p.algorithm = c.SignatureAlgorithm
	s, err := readSubject(c.RawSubject)
	if err != nil {
		return err
	}
	t := p.template
	switch {
	case c.Version != 3:
		return fmt.Errorf("its version is %d", c.Version)
	case c.IsCA || !c.BasicConstraintsValid:
		return errors.New("it could sign others")
	case c.SerialNumber.Cmp(t.SerialNumber) != 0:
		return errors.New("its serial number differs")
	case !bytes.Equal(c.RawIssuer, p.issuer.RawSubject):
		return errors.New("its issuer differs")
	case !s.equal(p.subject):
		return fmt.Errorf("its subject is %s", c.Subject)
	case !slices.Equal(c.DNSNames, t.DNSNames), !slices.EqualFunc(c.IPAddresses, t.IPAddresses, net.IP.Equal),
		len(c.EmailAddresses)+len(c.URIs) > 0:
		return errors.New("its names differ")
	case c.KeyUsage != t.KeyUsage, !slices.Equal(c.ExtKeyUsage, t.ExtKeyUsage), len(c.UnknownExtKeyUsage) > 0:
		return errors.New("its usages differ")
	case c.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0:
		return errors.New("it could sign certificates or revocation lists")
	case !c.NotBefore.Equal(t.NotBefore), !c.NotAfter.Equal(t.NotAfter):
		return errors.New("its validity differs")
	}
	if err := p.lintKey(c); err != nil {
		return err
	}
	if life := c.NotAfter.Sub(c.NotBefore); life <= 0 || c.NotAfter.After(p.issuer.NotAfter) {
		return fmt.Errorf("it would be good for %s, until %s", life, c.NotAfter.Format(time.RFC3339))
	}
	return p.lintExtensions(c)
}

func (p Prepared) lintKey(c *x509.Certificate) error {
	want, err := x509.MarshalPKIXPublicKey(p.publicKey)
	if err != nil {
		return fmt.Errorf("encoding the key: %w", err)
	}
	if !bytes.Equal(want, c.RawSubjectPublicKeyInfo) {
		return errors.New("its key differs")
	}
	return nil
}

func (p Prepared) lintExtensions(c *x509.Certificate) error {
	for _, e := range c.Extensions {
		switch {
		case e.Id.Equal(oidKeyUsage), e.Id.Equal(oidExtKeyUsage), e.Id.Equal(oidBasicConstraints), e.Id.Equal(oidAuthorityKeyID):
		case e.Id.Equal(oidSubjectAltName) && p.profile.Names != NamesNone:
			// crypto/x509 skips names of kinds that it does not know; readSAN refuses them.
			if _, _, err := readSAN(e.Value); err != nil {
				return err
			}
		default:
			return fmt.Errorf("it has extension %s", e.Id)
		}
	}
	return nil
}
