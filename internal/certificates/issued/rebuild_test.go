// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

// issued is a request that got a certificate now, and the fingerprint of its key.
func issued(t *testing.T, name, signer, commonName, username string, groups ...string) (*certificatesv1.CertificateSigningRequest, pki.Fingerprint) {
	t.Helper()
	ca, caKey := pkitest.Authority(t, "kubernetes", time.Now(), 24*time.Hour)
	key := pkitest.Key(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(0xabc), Subject: pkix.Name{CommonName: commonName},
		NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{}
	csr.Name, csr.UID = name, types.UID("uid of "+name)
	csr.Spec.SignerName, csr.Spec.Username, csr.Spec.Groups = signer, username, groups
	csr.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return csr, sha256.Sum256(c.RawSubjectPublicKeyInfo)
}

// Killed between issuing and writing: nothing but the requests tells what was issued.
func TestKilledBeforeTheFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boot, bootKey := issued(t, "boot", pki.SignerKubeletClient, "system:node:a", "system:bootstrap:abcdef", "system:bootstrappers:muster:i-1")
		renewal, renewalKey := issued(t, "renewal", pki.SignerKubeletClient, "system:node:b", "system:node:b", "system:nodes")
		loose, _ := issued(t, "loose", pki.SignerKubeletClient, "system:node:c", "system:bootstrap:abcdef", "system:bootstrappers")
		person, personKey := issued(t, "person", pki.SignerKubeletClient, "alice", "alice")
		other, otherKey := issued(t, "other", "example.com/other", "system:node:d", "alice")
		broken, _ := issued(t, "broken", pki.SignerKubeletClient, "system:node:e", "alice")
		broken.Status.Certificate = []byte("no certificate")
		pending := &certificatesv1.CertificateSigningRequest{}
		pending.Name, pending.Spec.SignerName = "pending", pki.SignerKubeletClient
		s := newServer(t, boot, renewal, loose, person, other, broken, pending)

		r := start(t, s)
		known(t, "a bootstrap", r.KeyOwner(bootKey), "a")
		known(t, "the machine of its token", r.LastMachine("a"), "i-1")
		known(t, "a renewal", r.KeyOwner(renewalKey), "b")
		absent(t, "a renewal of a machine that nobody knew", r.LastMachine("b"))
		absent(t, "a token that names no machine", r.LastMachine("c"))
		known(t, "a person", r.KeyOwner(personKey), "user:alice")
		absent(t, "another signer", r.KeyOwner(otherKey))
		if !strings.Contains(r.log.String(), "csr=broken") {
			t.Errorf("the log says\n%s", r.log)
		}
		elapse(3 * time.Second)
		r.Observe(boot)
		elapse(3 * time.Second)
		uids, _ := s.stored()
		if len(uids) != 4 || uids["uid of boot"] != 1 || s.written() != 1 {
			t.Errorf("stored by %d writes: %v", s.written(), uids)
		}
		now := time.Now().UTC()
		block, _ := pem.Decode(boot.Status.Certificate)
		want := Entry{
			UID: "uid of boot", CSR: "boot", Signer: pki.SignerKubeletClient, Node: "a", Machine: "i-1", Requester: "system:bootstrap:abcdef", Key: bootKey,
			Certificate: sha256.Sum256(block.Bytes),
			Serial:      "abc", Issuer: "kubernetes", NotBefore: now.Add(-6 * time.Second), NotAfter: now.Add(time.Hour - 6*time.Second),
		}
		list := r.List()
		if n := slices.IndexFunc(list, func(e Entry) bool { return e.UID == want.UID }); n < 0 || list[n] != want {
			t.Errorf("got %+v\nwant %+v", list, want)
		}
	})
}

func TestRenewalsStayOnTheirMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		first := start(t, s)
		first.Add(entry(1, "a", "i-1"))
		first.stop()
		elapse(time.Hour)
		renewal, renewalKey := issued(t, "renewal", pki.SignerKubeletClient, "system:node:a", "system:node:a", "system:nodes")
		r := start(t, s)
		r.Observe(renewal)
		known(t, "observed", r.KeyOwner(renewalKey), "a")
		known(t, "its machine", r.LastMachine("a"), "i-1")
		loose, looseKey := issued(t, "loose", pki.SignerKubeletClient, "system:node:a", "system:bootstrap:abcdef", "system:bootstrappers")
		r.Observe(loose)
		known(t, "by a token that names no machine", r.KeyOwner(looseKey), "a")
		absent(t, "which machine that was", r.LastMachine("a"))
		takeover, _ := issued(t, "takeover", pki.SignerKubeletClient, "system:node:a", "system:bootstrap:abcdef", "system:bootstrappers:muster:name:a")
		elapse(time.Second)
		takeover.Status.Certificate = renewal.Status.Certificate
		asked := start(t, newServer(t, takeover), func(c *Config) {
			c.MachineOf = func(csr *certificatesv1.CertificateSigningRequest) string { return "machine of " + csr.Name }
		})
		known(t, "as the configuration says", asked.LastMachine("a"), "machine of takeover")
	})
}

// Of a certificate that expired long ago only the key is kept: it is not recorded anew at each start because its
// request lives.
func TestExpiredRequestsAreNotRecordedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boot, bootKey := issued(t, "boot", pki.SignerKubeletClient, "system:node:a", "system:bootstrap:abcdef", "system:bootstrappers:muster:i-1")
		s := newServer(t, boot)
		first := start(t, s)
		elapse(keepExpired + 3*time.Hour)
		first.stop()
		writes := s.written()
		if _, keys := s.stored(); len(keys) != 3 { // its key, that its token was used, and that somebody joined by it
			t.Fatalf("%d keys are stored", len(keys))
		}
		r := start(t, s)
		elapse(2 * time.Hour)
		known(t, "its key", r.KeyOwner(bootKey), "a")
		if s.written() != writes || !r.Flushed("uid of boot") {
			t.Errorf("%d more writes", s.written()-writes)
		}
	})
}

func TestRequestsThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boot, bootKey := issued(t, "boot", pki.SignerKubeletClient, "system:node:a", "system:bootstrap:abcdef", "system:bootstrappers:muster:i-1")
		s := newServer(t, boot)
		fails := 3
		s.client.PrependReactor("list", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
			fails--
			return fails >= 0, nil, errors.New("too old")
		})
		r := start(t, s)
		unknown(t, "until they are read", r.KeyOwner(bootKey), "reading certificate signing requests: too old")
		if r.HasSynced() || r.Flushed("x") {
			t.Error("synced all the same")
		}
		elapse(time.Minute)
		known(t, "after that", r.KeyOwner(bootKey), "a")
	})
}

func TestEntryOfRefuses(t *testing.T) {
	csr, _ := issued(t, "x", pki.SignerKubeletClient, "system:node:a", "alice")
	for name, data := range map[string][]byte{
		"no PEM certificate": nil,
		"PEM certificate":    pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1}}),
		"reading":            pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}}),
	} {
		csr.Status.Certificate = data
		if _, err := EntryOf(csr, ""); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
