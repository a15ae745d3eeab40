// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

// attempts is how often a pass starts over because the object changed under it.
const attempts = 5

// errChanged means that a fact changed between judging and writing.
var errChanged = errors.New("a fact changed meanwhile")

// handle makes one pass over a request. The informer's objects may be old, so an object that was finished is left
// alone, and one that changed meanwhile is read again and judged again from the start.
func (c *Controller) handle(ctx context.Context, i item) (again when, err error) {
	finished, deleted := c.ledger.finishedOrDeleted(i) // asked before the informer is: it is forgotten once that shows it
	o, _, err := c.informer.GetStore().GetByKey(i.name)
	if err != nil {
		return onEvent, fmt.Errorf("looking the request up: %w", err)
	}
	h, ok := o.(*held)
	if !ok || h.item != i || h.uid == deleted {
		return onEvent, nil // it is gone, or another requester uses the name by now and has an item of its own
	}
	if !c.observes() && c.lineages.superseded(h) {
		return c.prune(ctx, h, h.uid == finished)
	}
	csr := h.csr.Load()
	if csr == nil || h.uid == finished {
		return onEvent, nil
	}
	if c.observes() {
		return c.observe(ctx, h, csr)
	}
	stale := c.ledger.takeStale(i)
	for range attempts {
		if stale {
			if csr, err = c.config.Client.CertificatesV1().CertificateSigningRequests().Get(ctx, i.name, metav1.GetOptions{}); err != nil {
				c.ledger.markStale(i)
				break
			}
		}
		again, err = c.pass(ctx, i, csr)
		if stale = apierrors.IsConflict(err); !stale {
			break
		}
	}
	if again == left {
		h.csr.Store(nil) // any requester may leave any number of them to people; the decision of a person comes with all of it
		return onEvent, nil
	}
	switch {
	case apierrors.IsNotFound(err):
		c.unclaim(h.uid)
		c.ledger.stopWaiting(i)
		return onEvent, nil
	case errors.Is(err, errChanged):
		return onEvent, nil // the sender of the change has queued it again
	}
	return again, err
}

func (c *Controller) pass(ctx context.Context, i item, csr *certificatesv1.CertificateSigningRequest) (again when, err error) {
	if !i.is(csr) || c.ledger.isFinished(csr.UID) {
		return onEvent, nil
	}
	r := policy.Read(csr, c.config.Policy)
	if r.Phase != policy.Pending && r.Phase != policy.Approved { // which the informer does not show yet
		if r.Phase == policy.Issued {
			c.config.Register.Observe(csr)
		}
		c.unclaim(csr.UID)
		c.ledger.stopWaiting(i)
		return onEvent, nil
	}
	if r.Phase == policy.Approved && !c.signs() {
		c.awaitSignature(i, csr.UID, r)
	}
	switch { // somebody else's turn
	case r.Phase == policy.Pending && !c.approves():
		c.ledger.stopWaiting(i)
		return left, nil
	case r.Phase == policy.Approved && !c.signs():
		c.ledger.stopWaiting(i)
		c.budget.forget(i, last)
		return onEvent, nil // it may have to wait for its key
	}
	d, release := c.judge(ctx, i, r)
	defer release()
	switch d.Verdict {
	case decision.Approve:
		err = c.approve(ctx, i, csr, d)
	case decision.Deny:
		err = c.refuse(ctx, i, csr, d)
	case decision.Wait:
		c.record(ctx, i, csr, d)
		if d.own { // until it is decided, nothing in the request shows it
			if old, ok := c.lineages.move(csr.UID, lineageOf(i.signer, nodeUserPrefix+d.node)); ok {
				c.wake(old)
			}
		}
		return afterAWhile, nil
	case decision.Ignore:
		c.record(ctx, i, csr, d)
		c.ledger.stopWaiting(i)
		return left, nil
	default:
		err = fmt.Errorf("the verdict %q is not known here", d.Verdict)
	}
	return onEvent, err
}

// observe decides as if nobody had yet, and tells. Where another approver is quick the request is decided when we see
// it; the facts are still those of that moment.
func (c *Controller) observe(ctx context.Context, h *held, csr *certificatesv1.CertificateSigningRequest) (again when, err error) {
	undecided := *csr
	undecided.Status = certificatesv1.CertificateSigningRequestStatus{}
	if c.config.Signers[h.item.signer].Profile.Manual && !decidedAgainst(csr) {
		undecided.Status.Conditions = csr.Status.Conditions // approval is a person's, and the rest is ours
	}
	d, release := c.judge(ctx, h.item, policy.Read(&undecided, c.config.Policy))
	defer release()
	c.record(ctx, h.item, csr, d)
	switch {
	case h.finished:
		h.csr.Store(nil)
		c.ledger.stopWaiting(h.item)
	case d.Verdict == decision.Wait:
		return afterAWhile, nil
	case d.Verdict == decision.Ignore:
		c.ledger.stopWaiting(h.item)
	default:
		c.ledger.markFinished(h.item, h.uid)
	}
	return onEvent, nil
}

// prune deletes a request that newer ones of the same requester supersede. A certificate must be on record first,
// because until then the object is the record.
func (c *Controller) prune(ctx context.Context, h *held, finished bool) (again when, err error) {
	switch {
	case finished && !h.finished:
		return afterRecheck, nil // the informer does not show yet what became of it
	case h.issued && !c.config.Register.Flushed(string(h.uid)):
		return afterRecheck, nil
	}
	if err := c.tenure.Check(); err != nil {
		return onEvent, err
	}
	// Exactly the object that was looked at: it may have been issued meanwhile, or its name be another's.
	exactly := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &h.uid, ResourceVersion: &h.version}}
	err = c.config.Client.CertificatesV1().CertificateSigningRequests().Delete(ctx, h.item.name, exactly)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return onEvent, nil // the informer will show it
	case err != nil:
		c.metrics.errors.WithLabelValues(h.item.signer, "prune").Inc()
		return onEvent, fmt.Errorf("deleting a superseded request: %w", err)
	}
	c.ledger.markDeleted(h.item, h.uid)
	c.metrics.pruned.WithLabelValues(h.item.signer).Inc()
	c.config.Logger.DebugContext(ctx, "superseded certificate request deleted", "csr", h.item.name, "signer", h.item.signer, "requester", h.item.requester)
	return onEvent, nil
}
