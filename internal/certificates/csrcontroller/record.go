// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"log/slog"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

// record tells what was decided: metrics, one log line with every check, and Events unless the request was approved,
// which it says itself. A reason that was told before about a request that still waits is not told again, and a fact
// that will be known in a moment is not told at all.
func (c *Controller) record(ctx context.Context, i item, csr *certificatesv1.CertificateSigningRequest, d judgement) {
	if d.Soon() {
		return
	}
	if summary := d.Summary(); c.ledger.isNewMessage(i, summary) {
		c.metrics.decided(d)
		c.log(ctx, i, d, summary)
		c.tell(i, csr, d, summary)
	}
}

func (c *Controller) log(ctx context.Context, i item, d judgement, summary string) {
	_, reason := c.event(d)
	c.config.Logger.LogAttrs(ctx, level(d.Verdict), "certificate request decided",
		slog.String("csr", i.name), slog.String("signer", i.signer), slog.String("requester", i.requester),
		slog.String("common_name", csrview.Clip(d.request.CSR.CommonName(), longestName)), slog.String("phase", string(d.request.Phase)),
		slog.String("verdict", string(d.Verdict)), slog.String("rule", string(d.Rule)), slog.String("cause", cause(d, reason)), slog.String("machine", string(d.machine)),
		slog.String("summary", csrview.Clip(summary, longestMessage)), slog.String("checks", checks(d.Decision)))
}

// word is what Events say about a request.
type word struct {
	about                           item
	uid                             types.UID
	kind, reason, message, decision string
	cause                           string                  // its identifier; empty if there is none
	node                            *corev1.ObjectReference // that it is said of, too; nil if none
	last                            bool                    // it is worth saying when the request is finished, too
}

// tell records Events, or has them recorded later if the requester has caused too many already.
func (c *Controller) tell(i item, csr *certificatesv1.CertificateSigningRequest, d judgement, summary string) {
	kind, reason := c.event(d)
	if reason == "" {
		c.budget.forget(i, never) // it says itself what came of it
		return
	}
	w := word{
		about: i, uid: csr.UID, kind: kind, reason: reason, message: csrview.Clip(summary, longestMessage), decision: compact(d.Decision), cause: cause(d, reason),
		last: d.Verdict == decision.Deny || c.observes(),
	}
	if d.Verdict == decision.Deny {
		w.node = c.concernedNode(i, d)
	}
	if c.budget.offer(w, c.config.Now()) {
		c.say(w)
	}
}

// tellLater says what was too much before.
func (c *Controller) tellLater() {
	for _, w := range c.budget.next(c.config.Now()) {
		c.say(w)
	}
}

func (c *Controller) say(w word) {
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: w.about.name, UID: w.uid}}
	c.config.Events.AnnotatedEventf(csr, map[string]string{csrview.Annotation: w.decision}, w.kind, w.reason, "%s", w.text(""))
	if w.node != nil {
		c.config.Events.AnnotatedEventf(w.node, nil, w.kind, w.reason, "%s", w.text("certificate request "+w.about.name+": "))
	}
}

// text is the message behind a beginning, with the identifier of the cause at its end, which is never cut off.
func (w word) text(begin string) string {
	if w.cause == "" {
		return csrview.Clip(begin+w.message, longestMessage)
	}
	end := " (" + w.cause + ")"
	return csrview.Clip(begin+w.message, longestMessage-len(end)) + end
}

// cause is the identifier of the cause of a denial, by the reason of its Event; empty for other decisions, for those that
// are only observed, and where a person had approved the request.
func cause(d judgement, reason string) string {
	if reason != reasonDenied {
		return ""
	}
	return policy.CauseOf(d.Rule)
}

// The words that are kept of those that are held: those about a request that is finished are worth saying if they are
// its last ones.
func never(word) bool  { return false }
func last(w word) bool { return w.last }

// reasonDenied is the reason of Events that tell of a denial.
const reasonDenied = "CertificateDenied"

// event returns the type and the reason of the Event that tells of a decision; no reason if none does.
func (c *Controller) event(d judgement) (kind, reason string) {
	kind = corev1.EventTypeNormal
	if d.Verdict == decision.Deny {
		kind = corev1.EventTypeWarning
	}
	approved := d.request.Phase == policy.Approved
	switch {
	case d.Verdict == decision.Ignore && policy.Stops(d.Rule):
		return kind, ""
	case c.observes() && d.Verdict == decision.Approve && approved:
		return kind, "WouldSign"
	case c.observes() && d.Verdict == decision.Deny && approved:
		return kind, "WouldFail"
	case c.observes() && d.Verdict == decision.Ignore:
		return kind, "WouldLeavePending"
	case c.observes():
		return kind, "Would" + string(d.Verdict)
	case d.Verdict == decision.Approve:
		return kind, ""
	case d.Verdict == decision.Deny && approved:
		return kind, "CertificateFailed"
	case d.Verdict == decision.Deny:
		return kind, reasonDenied
	case d.Verdict == decision.Ignore:
		return kind, "CertificateLeftPending"
	default:
		return kind, "CertificateWaiting"
	}
}

// concernedNode refers to the Node on which people look for the reason of a denial: the one that asks, or whose first
// certificate was asked for. Its UID is its name, as in the kubelet's own Events, which is what kubectl describe node
// looks for.
func (c *Controller) concernedNode(i item, d judgement) *corev1.ObjectReference {
	node, ok := strings.CutPrefix(i.requester, nodeUserPrefix)
	if !ok {
		node = d.node
	}
	if node == "" || c.config.Nodes.Exists(node).State == policy.Absent {
		return nil
	}
	return &corev1.ObjectReference{Kind: "Node", Name: node, UID: types.UID(node)}
}

func level(v decision.Verdict) slog.Level {
	if v == decision.Deny {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// checks is every check in one string: rule=Outcome.
func checks(d decision.Decision) string {
	var b strings.Builder
	b.Grow(24 * len(d.Checks))
	for n, c := range d.Checks {
		if n > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(c.Rule))
		b.WriteByte('=')
		b.WriteString(string(c.Outcome))
	}
	return b.String()
}

// longestMessage stays below what Events hold (1024 bytes): a request may ask for a thousand names.
const longestMessage = 900

// began returns when a request was created, as well as can be told: the API server tells whole seconds, so what we saw
// within the first ones began when we saw it.
func began(csr *certificatesv1.CertificateSigningRequest, seen time.Time) time.Time {
	if created := csr.CreationTimestamp.Time; !created.IsZero() && seen.Sub(created) > 2*time.Second {
		return created
	}
	return seen
}
