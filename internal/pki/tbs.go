// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"io"
)

// recorder stands in for the issuer's key. crypto/x509 gives it the bytes to be signed (crypto.MessageSigner) and gets an
// error, so that there are the very bytes and no signature, not even a worthless one that would have to be made and verified.
type recorder struct {
	public crypto.PublicKey
	tbs    *[]byte
}

var errRecorded = errors.New("the bytes were recorded, nothing was signed")

func (r recorder) Public() crypto.PublicKey { return r.public }

func (r recorder) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("only whole messages are recorded")
}

func (r recorder) SignMessage(_ io.Reader, message []byte, _ crypto.SignerOpts) ([]byte, error) {
	*r.tbs = bytes.Clone(message)
	return nil, errRecorded
}

// rehearse returns the bytes that the issuer would sign.
func (p Prepared) rehearse() ([]byte, error) {
	var tbs []byte
	if _, err := x509.CreateCertificate(nil, p.template, p.issuer, p.publicKey, recorder{p.issuer.PublicKey, &tbs}); !errors.Is(err, errRecorded) {
		return nil, errors.Join(errors.New("it could not be built for this issuer"), err)
	}
	return tbs, nil
}

// guard lets the key sign the bytes that were linted, and no others.
type guard struct {
	key crypto.Signer
	tbs []byte
}

func (g guard) Public() crypto.PublicKey { return g.key.Public() }

func (g guard) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("what is signed must be seen whole")
}

func (g guard) SignMessage(random io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	if !bytes.Equal(message, g.tbs) {
		return nil, errors.New("the bytes to be signed are not those that were checked")
	}
	return crypto.SignMessage(g.key, random, message, opts)
}

// unsigned reads the bytes to be signed as a certificate, whose signature is empty.
func unsigned(tbs []byte) (*x509.Certificate, error) {
	var fields struct {
		Version   asn1.RawValue
		Serial    asn1.RawValue
		Algorithm asn1.RawValue
	}
	if err := unmarshal(tbs, &fields, ""); err != nil {
		return nil, err
	}
	der, err := asn1.Marshal([]asn1.RawValue{
		{FullBytes: tbs}, {FullBytes: fields.Algorithm.FullBytes}, {Tag: asn1.TagBitString, Bytes: []byte{0}},
	})
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
