// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/pki"
)

// Entry is one issued certificate. Nothing in it is secret.
type Entry struct {
	// UID and CSR are the UID and the name of the request that it was issued for.
	UID, CSR string
	Signer   string
	// Node it was issued to, "" if it is not a node's.
	Node string
	// Subject is the common name of a certificate that is not a node's, "" otherwise.
	Subject string
	// Machine that the node was at that time, "" if nobody knew.
	Machine string
	// Requester is the user who asked for it, "" in lines that were written before it was recorded.
	Requester string
	// Key is the certified public key.
	Key pki.Fingerprint
	// Certificate is the fingerprint of a node's client certificate, zero of others and in lines that were written
	// before it was recorded.
	Certificate pki.Fingerprint
	// Serial number in hexadecimal.
	Serial string
	// Issuer is the common name of the authority.
	Issuer              string
	NotBefore, NotAfter time.Time
}

const (
	nodePrefix = "system:node:"
	// userPrefix begins owners that are not nodes: no node name has a colon.
	userPrefix = "user:"
	// maxField is the most bytes of one field: longer ones are cut off. It is more than any valid name has.
	maxField = 600
)

// EntryOf makes the Entry of a request that was issued. Its facts about the certificate come from the certificate.
func EntryOf(csr *certificatesv1.CertificateSigningRequest, machine string) (Entry, error) {
	block, _ := pem.Decode(csr.Status.Certificate)
	if block == nil || block.Type != "CERTIFICATE" {
		return Entry{}, errors.New("status.certificate holds no PEM certificate")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return Entry{}, fmt.Errorf("reading status.certificate: %w", err)
	}
	e := Entry{
		UID: string(csr.UID), CSR: csr.Name, Signer: csr.Spec.SignerName, Machine: machine, Requester: csr.Spec.Username,
		Key: sha256.Sum256(c.RawSubjectPublicKeyInfo), Serial: fmt.Sprintf("%x", c.SerialNumber), Issuer: c.Issuer.CommonName,
		NotBefore: c.NotBefore, NotAfter: c.NotAfter,
	}
	if node, ok := strings.CutPrefix(c.Subject.CommonName, nodePrefix); ok && node != "" {
		e.Node = node
		if isClient(e.Signer) {
			e.Certificate = sha256.Sum256(c.Raw)
		}
	} else {
		e.Subject = c.Subject.CommonName
	}
	return e, nil
}

// owner is the owner of the key: a node or another user.
func (e Entry) owner() string {
	if e.Node != "" {
		return e.Node
	}
	return clip(userPrefix + e.Subject)
}

func clip(s string) string { return s[:min(len(s), maxField)] }

// normal returns the entry as it will be read from a segment: whole seconds, fields that fit in a line, memory of its
// own.
func (e Entry) normal() Entry {
	for _, s := range []*string{&e.UID, &e.CSR, &e.Signer, &e.Node, &e.Subject, &e.Machine, &e.Requester, &e.Serial, &e.Issuer} {
		*s = strings.Clone(clip(*s))
	}
	if e.UID == "" { // no API server does that, and every line needs one
		e.UID = fmt.Sprintf("key:%x", shorten(e.Key))
	}
	if e.Node != "" {
		e.Subject = ""
	}
	e.NotBefore, e.NotAfter = instant(e.NotBefore), instant(e.NotAfter)
	return e
}

// instant is a time as lines tell it: whole seconds, within the years that have four digits.
func instant(t time.Time) time.Time {
	t = t.UTC().Truncate(time.Second)
	if t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}
