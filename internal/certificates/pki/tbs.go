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

// recorder stands in for the issuer's key. crypto/x509 gives it the bytes to be signed (crypto.MessageSigner) and gets
// an error, so that there are the very bytes and no signature, not even a worthless one that would have to be made and
// verified.
type recorder struct {
	public crypto.PublicKey
	into   *recording
}

// recording is what a signature takes: the message, and how it is hashed.
type recording struct {
	tbs  []byte
	opts crypto.SignerOpts
}

var errRecorded = errors.New("the bytes were recorded, nothing was signed")

func (r recorder) Public() crypto.PublicKey { return r.public }

func (r recorder) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("only whole messages are recorded")
}

func (r recorder) SignMessage(_ io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	*r.into = recording{bytes.Clone(message), opts}
	return nil, errRecorded
}

// rehearse returns the bytes that the issuer would sign.
func (p Prepared) rehearse() (recording, error) {
	var r recording
	if _, err := x509.CreateCertificate(nil, p.template, p.issuer, p.publicKey, recorder{p.issuer.PublicKey, &r}); !errors.Is(err, errRecorded) {
		return recording{}, errors.Join(errors.New("it could not be built for this issuer"), err)
	}
	return r, nil
}

// unsigned reads the bytes to be signed as a certificate, whose signature is empty.
func unsigned(tbs []byte) (*x509.Certificate, error) {
	der, err := assemble(tbs, nil)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// assemble puts a signature to what was signed (RFC 5280, 4.1): the algorithm behind it is the one in it.
func assemble(tbs, signature []byte) ([]byte, error) {
	var fields struct {
		Version   asn1.RawValue
		Serial    asn1.RawValue
		Algorithm asn1.RawValue
	}
	if err := unmarshal(tbs, &fields, ""); err != nil {
		return nil, err
	}
	return asn1.Marshal([]asn1.RawValue{
		{FullBytes: tbs}, {FullBytes: fields.Algorithm.FullBytes}, {Tag: asn1.TagBitString, Bytes: append([]byte{0}, signature...)},
	})
}
