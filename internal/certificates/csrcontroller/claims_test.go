// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"crypto/rand"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

// held keys, and by how many requests that wait for somebody else's signature.
func (w *world) claimed() (held, kept int) {
	w.claims.mu.Lock()
	defer w.claims.mu.Unlock()
	return len(w.claims.held), len(w.claims.kept)
}

// Another program signs, and takes its time: until then the register knows nothing of the key, and no other node gets
// it.
func TestApproveOnlyHoldsTheKeyUntilItIsIssued(t *testing.T) {
	key := pkitest.Key(t)
	with := func(name string, n int) *certificatesv1.CertificateSigningRequest {
		csr := serving(t, name, n, address(n))
		csr.Spec.Request = pkitest.Encode(t, key, pkitest.Template(nodeName(n), address(n)))
		return csr
	}
	issue := func(t *testing.T, w *world) {
		t.Helper()
		csr := w.get("a")
		csr.Status.Certificate = w.certify(t, csr)
		if _, err := w.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(t.Context(), csr, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	setUp := func(t *testing.T) *world {
		t.Helper()
		return newWorld(t, func(w *world) {
			w.config.Mode = ApproveOnly
			for name := range w.config.Signers {
				w.issuance(name, func(i *Issuance) { i.Signer = nil })
			}
			w.machine(12)
		})
	}
	approvedAndContended := func(t *testing.T, w *world) {
		t.Helper()
		w.create(with("a", 11))
		w.becomes("a", "Approved/AutoApproved")
		w.create(with("b", 12))
		w.settled("b", "")
	}
	t.Run("issued", func(t *testing.T) {
		w := setUp(t)
		approvedAndContended(t, w)
		issue(t, w)
		w.becomes("b", "Denied/key-owner")
		w.until("the key is given back", func() bool { held, kept := w.claimed(); return held+kept == 0 })
	})
	t.Run("failed", func(t *testing.T) {
		w := setUp(t)
		approvedAndContended(t, w)
		csr := w.get("a")
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateFailed, Status: "True", Reason: "x"})
		if _, err := w.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(t.Context(), csr, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.becomes("b", "Approved/AutoApproved")
	})
	t.Run("deleted", func(t *testing.T) {
		w := setUp(t)
		approvedAndContended(t, w)
		if err := w.client.CertificatesV1().CertificateSigningRequests().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.becomes("b", "Approved/AutoApproved")
	})
	t.Run("another controller takes over", func(t *testing.T) {
		w := setUp(t)
		w.create(with("a", 11))
		w.becomes("a", "Approved/AutoApproved")
		w.stop()
		w.create(with("b", 12))
		w.run()
		w.settled("b", "")
		if _, kept := w.claimed(); kept != 1 {
			t.Errorf("%d claims", kept)
		}
		issue(t, w)
		w.becomes("b", "Denied/key-owner")
	})
	t.Run("somebody else approves", func(t *testing.T) {
		w := setUp(t)
		w.create(approved(with("a", 11)))
		w.until("its key is claimed", func() bool { _, kept := w.claimed(); return kept == 1 })
		w.create(with("b", 12))
		w.settled("b", "")
	})
}

// certify is what another signer does.
func (w *world) certify(t *testing.T, csr *certificatesv1.CertificateSigningRequest) []byte {
	t.Helper()
	r, err := pki.Parse(csr.Spec.Request)
	if err != nil {
		t.Fatal(err)
	}
	profile, _ := pki.ProfileFor(csr.Spec.SignerName)
	serial, err := pki.NewSerial(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pki.Prepare(r, pki.Order{Profile: profile, Usages: profile.Usages, Serial: serial, Issuer: w.ca, Duration: time.Hour, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := w.signer.Sign(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}
