// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

// approve approves what is pending and signs it, as far as the mode goes. Killed anywhere in between, the next
// controller goes on from what the object says: it is pending, or approved, or issued; and an issued certificate goes
// on record when it is seen.
func (c *Controller) approve(ctx context.Context, i item, csr *certificatesv1.CertificateSigningRequest, d judgement) error {
	var prepared prepared
	var err error
	if c.signs() {
		if prepared, err = c.prepare(ctx, d.request); err != nil {
			return c.failed("prepare", d, err)
		}
	}
	var out *certificatesv1.CertificateSigningRequest
	if d.request.Phase == policy.Approved {
		out = writable(csr, d)
	} else {
		if !c.signs() {
			c.claims.keep(csr.UID, d.request.CSR.Fingerprint())
		}
		if out, err = c.writeApproval(ctx, i, csr, d); err != nil {
			return err
		}
	}
	if c.signs() {
		return c.issue(ctx, i, out, d, prepared)
	}
	c.record(ctx, i, out, d)
	c.ledger.markFinished(i, csr.UID)
	return nil
}

func (c *Controller) writeApproval(ctx context.Context, i item, csr *certificatesv1.CertificateSigningRequest, d judgement) (*certificatesv1.CertificateSigningRequest, error) {
	if err := c.upToDate(i); err != nil {
		return nil, err
	}
	out := writable(csr, d, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: "True", Reason: policy.ReasonAutoApproved, Message: policy.ApprovalMessage(d.request),
	})
	out, err := c.config.Writer.UpdateApproval(ctx, i.name, out, metav1.UpdateOptions{})
	if err != nil {
		return nil, c.unsure("approve", i, d, err)
	}
	now := c.config.Now()
	c.metrics.approved(d, now.Sub(began(out, c.ledger.markApproved(i, now))))
	out.ManagedFields = nil // the next write is smaller without, and they are kept
	return out, nil
}

func (c *Controller) issue(ctx context.Context, i item, out *certificatesv1.CertificateSigningRequest, d judgement, p prepared) error {
	certificate, p, err := c.sign(ctx, d, p)
	if err != nil {
		return c.failed("sign", d, err)
	}
	if err := c.upToDate(i); err != nil {
		return err // the signature took its time; the certificate is thrown away
	}
	out.Status.Certificate = certificate
	uid := out.UID
	out, err = c.config.Writer.UpdateStatus(ctx, out, metav1.UpdateOptions{})
	if err != nil {
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			c.claims.keep(uid, d.request.CSR.Fingerprint())
		}
		return c.unsure("issue", i, d, err)
	}
	c.config.Register.Add(entryOf(out, certificate, d, p))
	c.record(ctx, i, out, d)
	seen, approved := c.ledger.markFinished(i, out.UID)
	now := c.config.Now()
	if !approved.IsZero() {
		c.metrics.signed(d, now.Sub(approved))
		c.metrics.issued(d, now.Sub(began(out, seen)))
	} else if !seen.IsZero() {
		c.metrics.signed(d, now.Sub(seen))
	}
	return nil
}

// entryOf is what issued.EntryOf would read in the certificate, without reading it.
func entryOf(csr *certificatesv1.CertificateSigningRequest, certificate []byte, d judgement, p prepared) issued.Entry {
	e := issued.Entry{
		UID: string(csr.UID), CSR: csr.Name, Signer: csr.Spec.SignerName, Subject: d.request.CSR.CommonName(), Machine: string(d.machine),
		Requester: csr.Spec.Username, Key: d.request.CSR.Fingerprint(), Serial: p.serial.Text(16), Issuer: p.issuer.Subject.CommonName,
		NotBefore: p.notBefore, NotAfter: p.notAfter,
	}
	if node, ok := strings.CutPrefix(e.Subject, nodeUserPrefix); ok && node != "" {
		e.Node, e.Subject = node, ""
	}
	if block, _ := pem.Decode(certificate); block != nil && e.Signer == pki.SignerKubeletClient {
		e.Certificate = sha256.Sum256(block.Bytes)
	}
	return e
}

// sign signs what was prepared, once more if the authority was replaced in between.
func (c *Controller) sign(ctx context.Context, d judgement, p prepared) ([]byte, prepared, error) {
	signer := c.config.Signers[d.request.SignerName].Signer
	certificate, err := signer.Sign(ctx, p.Prepared)
	if errors.Is(err, pki.ErrIssuerChanged) {
		if p, err = c.prepare(ctx, d.request); err == nil {
			certificate, err = signer.Sign(ctx, p.Prepared)
		}
	}
	return certificate, p, err
}

// prepared is a certificate that waits for its signature, and the register's facts about it.
type prepared struct {
	pki.Prepared
	serial              *big.Int
	issuer              *x509.Certificate
	notBefore, notAfter time.Time
}

// prepare builds and lints the certificate. Usages and duration come from the request that was judged.
func (c *Controller) prepare(ctx context.Context, r policy.Request) (p prepared, err error) {
	issuance, now := c.config.Signers[r.SignerName], c.config.Now()
	if p.issuer, err = issuance.Signer.Issuer(ctx); err != nil {
		return p, fmt.Errorf("reading the signing certificate: %w", err)
	}
	if p.serial, err = pki.NewSerial(c.config.Random); err != nil {
		return p, err
	}
	if p.notBefore, p.notAfter, err = pki.Validity(now, issuance.Duration, r.ExpirationSeconds, p.issuer.NotAfter); err != nil {
		return p, err
	}
	p.Prepared, err = pki.Prepare(r.CSR, pki.Order{
		Profile: issuance.Profile, Usages: r.Usages, Serial: p.serial, Issuer: p.issuer,
		Duration: issuance.Duration, ExpirationSeconds: r.ExpirationSeconds, Now: now,
	})
	return p, err
}

// refuse denies what is pending. An approved request cannot be denied any more: it fails, as at upstream's signer
// (pkg/controller/certificates/signer/signer.go).
func (c *Controller) refuse(ctx context.Context, i item, csr *certificatesv1.CertificateSigningRequest, d judgement) error {
	check, _ := d.Deciding()
	condition := certificatesv1.CertificateSigningRequestCondition{Status: "True", Message: csrview.Clip(check.Sentence(), longestMessage)}
	if err := c.upToDate(i); err != nil {
		return err
	}
	var out *certificatesv1.CertificateSigningRequest
	if d.request.Phase == policy.Pending {
		condition.Type, condition.Reason = certificatesv1.CertificateDenied, string(d.Rule)
		out = writable(csr, d, condition)
		if _, err := c.config.Writer.UpdateApproval(ctx, i.name, out, metav1.UpdateOptions{}); err != nil {
			return c.unsure("deny", i, d, err)
		}
	} else {
		condition.Type, condition.Reason = certificatesv1.CertificateFailed, "SignerValidationFailure"
		condition.Message = csrview.Clip(string(d.Rule)+": "+check.Sentence(), longestMessage)
		out = writable(csr, d, condition)
		if _, err := c.config.Writer.UpdateStatus(ctx, out, metav1.UpdateOptions{}); err != nil {
			return c.unsure("fail", i, d, err)
		}
	}
	c.record(ctx, i, out, d)
	c.ledger.markFinished(i, csr.UID)
	return nil
}

// writable is the request to be written, with what is to be said by a condition and, after that, the decision in it:
// many look at the first condition only. The one in the cache is everybody's: a copy is changed.
func writable(csr *certificatesv1.CertificateSigningRequest, d judgement, verdict ...certificatesv1.CertificateSigningRequestCondition) *certificatesv1.CertificateSigningRequest {
	out := *csr
	out.ManagedFields = nil
	told := d.Decision
	// Our record of the approval says more than the decision about an approved request. Where the certificate goes is
	// decided anew.
	if before, _, ok := csrview.Decided(csr); ok && before.Verdict == decision.Approve && d.Verdict == decision.Approve && d.request.Phase == policy.Approved {
		told = before
	}
	out.Status.Conditions = decide(slices.Concat(csr.Status.Conditions, verdict), told, string(d.machine))
	return &out
}

// failed counts an error by the step it happened in. Conflicts are nobody's failure.
func (c *Controller) failed(step string, d judgement, err error) error {
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		c.metrics.errors.WithLabelValues(d.request.SignerName, step).Inc()
	}
	return fmt.Errorf("%s: %w", stepWords()[step], err)
}

// unsure is failed for a write that may have succeeded: perhaps only its answer was lost. The request is marked to be
// read again.
func (c *Controller) unsure(step string, i item, d judgement, err error) error {
	if !apierrors.IsConflict(err) {
		c.ledger.markStale(i)
	}
	return c.failed(step, d, err)
}

func stepWords() map[string]string {
	return map[string]string{
		"prepare": "preparing the certificate", "approve": "writing the approval", "sign": "signing the certificate",
		"issue": "writing the certificate", "deny": "writing the denial", "fail": "writing the failure",
	}
}
