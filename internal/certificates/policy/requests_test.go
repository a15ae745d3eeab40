// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"testing"

	"muster.dev/muster/internal/certificates/pki/pkitest"
)

type pkitestTemplate = x509.CertificateRequest

func rawNames(t testing.TB, names ...pkitest.GeneralName) []byte {
	t.Helper()
	template := pkitest.Template(nodeA)
	template.ExtraExtensions = []pkix.Extension{pkitest.SAN(t, names...)}
	return pkitest.Encode(t, pkitest.Key(t), template)
}

func ed25519Request(t testing.TB) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return pkitest.Encode(t, key, pkitest.Template(nodeA))
}

func twoNames(t testing.TB) []byte {
	t.Helper()
	attr := func(v string, oid ...int) pkix.RelativeDistinguishedNameSET {
		return pkix.RelativeDistinguishedNameSET{{Type: asn1.ObjectIdentifier(oid), Value: v}}
	}
	return pkitest.Raw(t, pkix.RDNSequence{
		attr("system:node:"+nodeB, 2, 5, 4, 3), attr("system:node:"+nodeA, 2, 5, 4, 3), attr("system:nodes", 2, 5, 4, 10),
	})
}
