// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"log/slog"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/policy"
	"muster.dev/muster/internal/trace"
)

// record tells what was decided: one metric, one log line with every check, and an Event unless the request was approved, which
// it says itself. What was said before about a request that still waits is not said again.
func (c *Controller) record(ctx context.Context, i item, csr *certificatesv1.CertificateSigningRequest, d decision) {
	c.metrics.decided(d)
	summary := d.Summary()
	if !c.ledger.news(i, summary) {
		return
	}
	c.config.Logger.LogAttrs(ctx, level(d.Verdict), "certificate request decided",
		slog.String("csr", i.name), slog.String("signer", d.request.SignerName), slog.String("requester", i.requester),
		slog.String("common_name", d.request.CSR.CommonName()), slog.String("phase", string(d.request.Phase)),
		slog.String("verdict", string(d.Verdict)), slog.String("rule", string(d.Rule)), slog.String("summary", clip(summary)),
		slog.String("checks", checks(d.Decision)))
	if d.Verdict == trace.Approve || d.Verdict == trace.Ignore && policy.Stops(d.Rule) {
		return
	}
	kind, reason := corev1.EventTypeNormal, "CertificateWaiting"
	switch {
	case d.Verdict == trace.Deny && d.request.Phase == policy.Approved:
		kind, reason = corev1.EventTypeWarning, "CertificateFailed"
	case d.Verdict == trace.Deny:
		kind, reason = corev1.EventTypeWarning, "CertificateDenied"
	case d.Verdict == trace.Ignore:
		reason = "CertificateLeftPending"
	}
	c.config.Events.Event(csr, kind, reason, clip(summary))
}

func level(v trace.Verdict) slog.Level {
	if v == trace.Deny {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// checks is every check in one string: rule=Outcome.
func checks(d trace.Decision) string {
	var b strings.Builder
	for n, c := range d.Checks {
		if n > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(c.Rule) + "=" + string(c.Outcome))
	}
	return b.String()
}

// clip keeps messages below what Events hold (1024 bytes): a request may ask for a thousand names.
func clip(s string) string {
	const most = 900
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
