// SPDX-License-Identifier: Apache-2.0

package podwebhookcert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	authorityLife, certificateLife = 10 * 365 * 24 * time.Hour, 90 * 24 * time.Hour
	// ahead is how much earlier a certificate begins: clocks differ.
	ahead = 5 * time.Minute
	// maxAuthorities is how many the Secret may hold: one that signs, and those before it.
	maxAuthorities = 3
	typeCert       = "CERTIFICATE"
	typeKey        = "PRIVATE KEY"
)

// authority is what the Secret holds.
type authority struct {
	certificate *x509.Certificate // that signs
	key         *ecdsa.PrivateKey
	believed    []*x509.Certificate // first the one that signs, then those before it
}

// newAuthority makes an authority that is trusted beside the earlier authorities that are still valid.
func newAuthority(now time.Time, before []*x509.Certificate) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "pod-identity-webhook " + now.UTC().Format(time.DateOnly)},
		NotBefore: now.Add(-ahead), NotAfter: now.Add(authorityLife), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := sign(template, template, key, key)
	if err != nil {
		return authority{}, err
	}
	a := authority{certificate: certificate, key: key, believed: []*x509.Certificate{certificate}}
	for _, old := range before {
		if now.Before(old.NotAfter) && len(a.believed) < maxAuthorities {
			a.believed = append(a.believed, old)
		}
	}
	return a, nil
}

// readAuthority reads that of a Secret. The certificates are returned even if the key does not fit.
func readAuthority(certificates, key []byte) (authority, error) {
	var a authority
	for rest := certificates; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || block.Type != typeCert || !c.IsCA || len(a.believed) == maxAuthorities {
			return authority{}, errors.New("ca.crt is not up to three certificates of authorities in PEM")
		}
		a.believed = append(a.believed, c)
	}
	if len(a.believed) == 0 {
		return a, errors.New("ca.crt holds no certificate")
	}
	a.certificate = a.believed[0]
	block, _ := pem.Decode(key)
	if block == nil || block.Type != typeKey {
		return a, errors.New("ca.key is not a private key in PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return a, errors.New("ca.key is not a private key in PKCS #8")
	}
	var ok bool
	if a.key, ok = parsed.(*ecdsa.PrivateKey); !ok || !a.key.PublicKey.Equal(a.certificate.PublicKey) {
		return a, errors.New("ca.key is not the key of the first certificate in ca.crt")
	}
	return a, nil
}

// old reports whether the authority must be followed by another: a fifth of its life is left, or nothing.
func (a authority) old(now time.Time) bool {
	return now.Add(a.certificate.NotAfter.Sub(a.certificate.NotBefore)/5).After(a.certificate.NotAfter) || now.Before(a.certificate.NotBefore)
}

// bundle is what the API server believes.
func (a authority) bundle() []byte {
	var b bytes.Buffer
	for _, c := range a.believed {
		b.Write(encode(typeCert, c.Raw))
	}
	return b.Bytes()
}

func (a authority) keyPEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	return encode(typeKey, der), nil
}

// issue makes a serving certificate for a name, with its key.
func (a authority) issue(name string, now time.Time) (*x509.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	end := now.Add(certificateLife)
	if a.certificate.NotAfter.Before(end) {
		end = a.certificate.NotAfter
	}
	c, err := sign(&x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "pod-identity-webhook"}, DNSNames: []string{name},
		NotBefore: now.Add(-ahead), NotAfter: end, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.certificate, key, a.key)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return c, append(encode(typeCert, c.Raw), encode(typeKey, der)...), nil
}

func sign(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[0] &= 0x7f
	b[15] |= 1
	return new(big.Int).SetBytes(b[:])
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
