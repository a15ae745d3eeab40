// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/pki"
	"muster.dev/muster/internal/policy"
	"muster.dev/muster/internal/trace"
)

// decision is a verdict on a request, with the request.
type decision struct {
	trace.Decision
	request policy.Request
}

// conflicts is how often a pass starts over because the object changed under it.
const conflicts = 5

// handle makes one pass over a request; again tells that it waits. What the informer shows may be old, so an object that was
// finished is left alone, and one that changed meanwhile is read again and judged again from the start.
func (c *Controller) handle(ctx context.Context, i item) (again bool, err error) {
	o, ok, err := c.informer.GetStore().GetByKey(i.name)
	if err != nil {
		return false, fmt.Errorf("looking the request up: %w", err)
	}
	csr, isCSR := o.(*certificatesv1.CertificateSigningRequest)
	if !ok || !isCSR {
		return false, nil
	}
	for range conflicts {
		if again, err = c.pass(ctx, i, csr.DeepCopy()); !apierrors.IsConflict(err) {
			break
		}
		csr, err = c.config.Client.CertificatesV1().CertificateSigningRequests().Get(ctx, i.name, metav1.GetOptions{})
		if err != nil {
			break
		}
	}
	if apierrors.IsNotFound(err) {
		c.ledger.settle(i)
		return false, nil
	}
	return again, err
}

func (c *Controller) pass(ctx context.Context, i item, csr *certificatesv1.CertificateSigningRequest) (again bool, err error) {
	if itemOf(csr) != i {
		return false, nil // another requester uses the name by now, and has an item of its own
	}
	r := policy.Read(csr)
	if c.ledger.isFinished(csr.UID, r.Phase != policy.Pending && r.Phase != policy.Approved) {
		c.ledger.settle(i)
		return false, nil
	}
	d := c.judge(ctx, i, r)
	switch d.Verdict {
	case trace.Approve:
		err = c.approve(ctx, i, csr, d)
	case trace.Deny:
		err = c.refuse(ctx, i, csr, d)
	case trace.Wait:
		c.record(ctx, i, csr, d)
		return true, nil
	case trace.Ignore:
		c.record(ctx, i, csr, d)
		c.ledger.settle(i)
	default:
		err = fmt.Errorf("the verdict %q is not known here", d.Verdict)
	}
	return false, err
}

// approve approves what is pending and signs it.
func (c *Controller) approve(ctx context.Context, i item, csr *certificatesv1.CertificateSigningRequest, d decision) error {
	prepared, err := c.prepare(ctx, d.request)
	if err != nil {
		return c.failed("prepare", d, err)
	}
	client := c.config.Client.CertificatesV1().CertificateSigningRequests()
	if d.request.Phase == policy.Pending {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: "True", Reason: "AutoApproved", Message: policy.ApprovalMessage(d.request),
		})
		if csr, err = client.UpdateApproval(ctx, i.name, csr, metav1.UpdateOptions{}); err != nil {
			return c.failed("approve", d, err)
		}
	}
	certificate, err := c.config.Signer.Sign(ctx, prepared)
	if errors.Is(err, pki.ErrIssuerChanged) {
		if prepared, err = c.prepare(ctx, d.request); err == nil {
			certificate, err = c.config.Signer.Sign(ctx, prepared)
		}
	}
	if err != nil {
		return c.failed("sign", d, err)
	}
	csr.Status.Certificate = certificate
	if _, err = client.UpdateStatus(ctx, csr, metav1.UpdateOptions{}); err != nil {
		return c.failed("issue", d, err)
	}
	c.record(ctx, i, csr, d)
	seen := c.ledger.finish(i, csr.UID)
	c.metrics.issued(d.request.SignerName, c.config.Now().Sub(seen))
	return nil
}

// prepare builds and lints the certificate. Usages and duration come from the request that was judged.
func (c *Controller) prepare(ctx context.Context, r policy.Request) (pki.Prepared, error) {
	profile, _ := pki.ProfileFor(r.SignerName)
	duration := c.config.ClientDuration
	if profile.Names {
		duration = c.config.ServingDuration
	}
	issuer, err := c.config.Signer.Issuer(ctx)
	if err != nil {
		return pki.Prepared{}, fmt.Errorf("reading the signing certificate: %w", err)
	}
	serial, err := pki.NewSerial(c.config.Random)
	if err != nil {
		return pki.Prepared{}, err
	}
	return pki.Prepare(r.CSR, pki.Order{
		Profile: profile, Usages: r.Usages, Serial: serial, Issuer: issuer,
		Duration: duration, ExpirationSeconds: r.ExpirationSeconds, Now: c.config.Now(),
	})
}

// refuse denies what is pending. What was approved cannot be denied any more: it fails, as at upstream's signer
// (pkg/controller/certificates/signer/signer.go).
func (c *Controller) refuse(ctx context.Context, i item, csr *certificatesv1.CertificateSigningRequest, d decision) error {
	check, _ := d.Deciding()
	client := c.config.Client.CertificatesV1().CertificateSigningRequests()
	condition := certificatesv1.CertificateSigningRequestCondition{Status: "True", Message: clip(check.Sentence())}
	if d.request.Phase == policy.Pending {
		condition.Type, condition.Reason = certificatesv1.CertificateDenied, string(d.Rule)
		csr.Status.Conditions = append(csr.Status.Conditions, condition)
		if _, err := client.UpdateApproval(ctx, i.name, csr, metav1.UpdateOptions{}); err != nil {
			return c.failed("deny", d, err)
		}
	} else {
		condition.Type, condition.Reason = certificatesv1.CertificateFailed, "SignerValidationFailure"
		condition.Message = clip(string(d.Rule) + ": " + check.Sentence())
		csr.Status.Conditions = append(csr.Status.Conditions, condition)
		if _, err := client.UpdateStatus(ctx, csr, metav1.UpdateOptions{}); err != nil {
			return c.failed("fail", d, err)
		}
	}
	c.record(ctx, i, csr, d)
	c.ledger.finish(i, csr.UID)
	return nil
}

// failed counts an error by the step it happened in. Conflicts are nobody's failure.
func (c *Controller) failed(step string, d decision, err error) error {
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		c.metrics.errors.WithLabelValues(d.request.SignerName, step).Inc()
	}
	return fmt.Errorf("%s: %w", stepWords()[step], err)
}

func stepWords() map[string]string {
	return map[string]string{
		"prepare": "preparing the certificate", "approve": "writing the approval", "sign": "signing the certificate",
		"issue": "writing the certificate", "deny": "writing the denial", "fail": "writing the failure",
	}
}
